/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frames.h"
#include "guard.h"
#include "tree.h"

#define GRACE_MS 2000
#define PATIENCE_MS 30000 /* for killed processes that stay in the kernel, or that this user may not kill */
#define RETRY_US 20000
#define CANNOT_START 126
#define NO_COMMAND 127

struct tree {
	pid_t command;
	int status;        /* of the command; -1 while it runs */
	int64_t limit_ms;  /* when to send SIGTERM; -1: never */
	int64_t kill_ms;   /* when to kill after that; -1: SIGTERM was not sent */
	bool over;
};

_Noreturn static void exec_command(const struct launch_request *launch_request)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (launch_request->scratch[0])
		unshare(CLONE_NEWIPC); /* if permitted: System V objects of a load end with its last process */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	lseek(launch_request->input, 0, SEEK_SET);
	dup2(launch_request->input, STDIN_FILENO);
	dup2(launch_request->output, STDOUT_FILENO);
	dup2(launch_request->errors, STDERR_FILENO);
	if (launch_request->own_name && strcmp(launch_request->arguments[0], launch_request->own_name) == 0)
		execv("/proc/self/exe", launch_request->arguments);
	else
		execvp(launch_request->arguments[0], launch_request->arguments);
	dprintf(STDERR_FILENO, "%s: %s\n", launch_request->arguments[0], strerror(errno));
	_exit(NO_COMMAND);
}

/* Loads and probes start as ordinary tasks, whatever the agent's scheduling; a probe sets its own. */
static void reset_scheduling(void)
{
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
}

static void reap(struct tree *tree)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == tree->command)
			tree->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	tree->over = tree->over || tree->status >= 0;
}

static void terminate(struct tree *tree)
{
	if (tree->kill_ms >= 0)
		return;
	kill(tree->command, SIGTERM);
	tree->kill_ms = now_ms() + GRACE_MS;
}

/* Handles requests of the agent; the end of the lifeline is the end of the agent. */
static void read_lifeline(struct tree *tree, struct pollfd *lifeline)
{
	unsigned char numbers[64];
	ssize_t got = read(lifeline->fd, numbers, sizeof(numbers));

	for (ssize_t i = 0; i < got; i++) {
		if (numbers[i] == GUARD_KILL)
			tree->over = true;
		else
			kill(tree->command, numbers[i]);
	}
	if (got == 0) {
		lifeline->fd = -1;
		terminate(tree);
	}
}

static int left_ms(const struct tree *tree)
{
	int64_t next = tree->kill_ms >= 0 ? tree->kill_ms : tree->limit_ms, left = next - now_ms();

	return next < 0 ? -1 : left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static void watch(struct tree *tree, int lifeline, int signals)
{
	struct pollfd polled[] = { { lifeline, POLLIN, 0 }, { signals, POLLIN, 0 } };
	struct signalfd_siginfo signal_info;

	while (!tree->over) {
		if (poll(polled, 2, left_ms(tree)) == 0 && left_ms(tree) == 0) {
			tree->over = tree->kill_ms >= 0;
			terminate(tree);
		}
		if (polled[1].revents && read(signals, &signal_info, sizeof(signal_info)) > 0 && signal_info.ssi_signo != SIGCHLD)
			terminate(tree);
		reap(tree);
		if (polled[0].revents && !tree->over)
			read_lifeline(tree, &polled[0]);
	}
}

/* Kills until no child is left; a process that forks meanwhile is killed in the next round. */
static void end_rest(struct tree *tree)
{
	int64_t deadline = now_ms() + PATIENCE_MS;

	while (waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT) == 0 && now_ms() < deadline) {
		kill_below(NULL, 0);
		reap(tree);
		if (waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT) == 0)
			usleep(RETRY_US);
	}
}

/* Only the agent may have the bench's stream open: otherwise it would not end with the agent. */
static void release_stream(void)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int stream = STDIN_FILENO; nowhere >= 0 && stream <= STDERR_FILENO; stream++)
		dup2(nowhere, stream);
}

int open_signal_file(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

void guard(const struct launch_request *launch_request)
{
	struct tree tree = { .status = -1, .limit_ms = launch_request->limit_ms ? now_ms() + launch_request->limit_ms : -1, .kill_ms = -1 };
	int signals = open_signal_file();

	setsid();
	release_stream();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	reset_scheduling();
	if (launch_request->scratch[0] && make_scratch(launch_request->scratch)) {
		dprintf(launch_request->errors, "%s: %s\n", launch_request->scratch, strerror(errno));
		_exit(CANNOT_START);
	}
	tree.command = fork();
	if (tree.command == 0)
		exec_command(launch_request);
	close(launch_request->input);
	close(launch_request->output);
	close(launch_request->errors);
	if (tree.command > 0)
		watch(&tree, launch_request->lifeline, signals);
	end_rest(&tree);
	if (launch_request->scratch[0])
		remove_scratch(launch_request->scratch);
	_exit(tree.command < 0 ? CANNOT_START : tree.status >= 0 ? tree.status : 128 + SIGKILL);
}
