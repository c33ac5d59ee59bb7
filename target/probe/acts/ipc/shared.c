/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libc.h"
#include "waiting.h"
#include "pattern.h"

/* As in the source, the area is filled by writes of this size. */
#define WRITE_SIZE 4096
/* The process spins for this time after the last block, then naps. */
#define READER_SPINS_NS (20 * NS_PER_MS)
#define WRITER_SPINS_NS NS_PER_MS

/* The memory that both processes share. */
struct area {
	_Alignas(64) _Atomic uint64_t written; /* number of the block that is in it; from 1 on */
	size_t size;
	_Alignas(64) _Atomic uint64_t read;
	int64_t read_ns;
	_Atomic uint64_t wrong; /* number of a block with wrong content */
	_Alignas(64) unsigned char bytes[];
};

struct shared {
	struct area *area;
	unsigned char *pattern;
	uint64_t number;
	int64_t spin_ns;
	pid_t reader;
};

static struct shared shared;

/*
 * The normal process -----------------------------------------------------------------------------
 */

static void become_normal(pid_t parent, int cpu)
{
	int null = open("/dev/null", O_RDWR);
	cpu_set_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* A reader of the probe's output must not wait for this process too. */
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
}

static void await_block(struct area *area, uint64_t number)
{
	int64_t nap_from_ns = mono_ns() + READER_SPINS_NS;

	while (atomic_load_explicit(&area->written, memory_order_acquire) < number) {
		if (mono_ns() < nap_from_ns)
			cpu_relax();
		else
			nap(50 * NS_PER_US);
	}
}

static void __attribute__((noreturn)) read_blocks(struct area *area, const unsigned char *pattern, unsigned char *copy)
{
	for (uint64_t number = 1;; number++) {
		await_block(area, number);
		memcpy(copy, area->bytes, area->size);
		area->read_ns = mono_ns();
		if (atomic_load_explicit(&area->written, memory_order_relaxed) != number ||
		    memcmp(copy, pattern_block(pattern, number), area->size))
			atomic_store_explicit(&area->wrong, number, memory_order_relaxed);
		atomic_store_explicit(&area->read, number, memory_order_release);
	}
}

static void start_reader(struct run *run, unsigned char *copy, int cpu)
{
	pid_t parent = getpid();

	shared.reader = fork();
	if (shared.reader < 0)
		run_not_applicable(run, "no second process: %s", strerror(errno));
	if (shared.reader)
		return;
	become_normal(parent, cpu);
	read_blocks(shared.area, shared.pattern, copy);
}

struct shared *shared_new(struct run *run, size_t largest, int reader_cpu, bool same_cpu)
{
	shared.area = mmap(NULL, sizeof(*shared.area) + largest, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared.area == MAP_FAILED)
		bad_input("no shared memory of %zu bytes: %s; choose a smaller size", largest, strerror(errno));
	shared.pattern = pattern_new(run, largest);
	shared.spin_ns = same_cpu ? 0 : WRITER_SPINS_NS;
	start_reader(run, run_allocate(run, largest), reader_cpu);
	return &shared;
}

/*
 * The real-time thread ---------------------------------------------------------------------------
 */

static void fill(struct area *area, const unsigned char *block, size_t size)
{
	for (size_t done = 0; done < size; done += WRITE_SIZE)
		memcpy(area->bytes + done, block + done, size - done < WRITE_SIZE ? size - done : WRITE_SIZE);
}

bool shared_send(const struct worker *self, struct shared *to, size_t size, int64_t *begin_ns, int64_t *read_ns)
{
	const unsigned char *block = pattern_block(to->pattern, ++to->number);
	struct area *area = to->area;

	area->size = size;
	*begin_ns = mono_ns();
	fill(area, block, size);
	atomic_store_explicit(&area->written, to->number, memory_order_release);
	if (!await_count(self, &area->read, to->number, to->spin_ns))
		return false;
	*read_ns = area->read_ns;
	if (atomic_load_explicit(&area->wrong, memory_order_relaxed) == 0)
		return true;
	run_fail(worker_run(self), "block %llu of %zu bytes was torn, stale or not the one that was sent",
		 (unsigned long long)area->wrong, size);
	return false;
}

void shared_check(struct run *run)
{
	int status;

	if (shared.reader <= 0 || waitpid(shared.reader, &status, WNOHANG) != shared.reader)
		return;
	shared.reader = 0;
	if (WIFSIGNALED(status))
		run_fail(run, "the normal process was ended by signal %s", signal_name(WTERMSIG(status)));
	else
		run_fail(run, "the normal process ended with status %d", WEXITSTATUS(status));
}

void shared_finish(void)
{
	if (shared.reader <= 0)
		return;
	kill(shared.reader, SIGKILL);
	while (waitpid(shared.reader, NULL, 0) < 0 && errno == EINTR)
		;
	shared.reader = 0;
}
