/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads and attaches the BPF programs that this kernel supports. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"
#include "monitor.skel.h"

/* All events to which programs may be attached.  Some others crash kernels (sched_set_need_resched_tp does in Debian's
 * 7.2-rt), and the rest is untested. */
static const char *const allowed[] = {
	"sched_waking", "sched_switch", "sched_process_free", "hrtimer_expire_entry", "hrtimer_expire_exit", "sys_exit",
	"irq_handler_entry", "irq_handler_exit", "softirq_raise", "softirq_entry", "softirq_exit", "cpu_idle", "cpu_frequency",
	"local_timer_entry", "reschedule_entry", "call_function_entry", "call_function_single_entry", "irq_work_entry",
	"x86_platform_ipi_entry", "thermal_apic_entry", "error_apic_entry", "spurious_apic_entry",
	"local_timer_exit", "reschedule_exit", "call_function_exit", "call_function_single_exit", "irq_work_exit",
	"x86_platform_ipi_exit", "thermal_apic_exit", "error_apic_exit", "spurious_apic_exit",
};

static char libbpf_message[256]; /* the first warning of libbpf */

static int store_first_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN && !*libbpf_message) {
		vsnprintf(libbpf_message, sizeof(libbpf_message), format, arguments);
		libbpf_message[strcspn(libbpf_message, "\n")] = '\0';
	}
	return 0;
}

static const char *event_of(const struct bpf_program *program)
{
	const char *slash = strrchr(bpf_program__section_name(program), '/');

	return slash ? slash + 1 : "";
}

static bool is_allowed(const char *event)
{
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		if (!strcmp(allowed[i], event))
			return true;
	return false;
}

/* The prototype of an event in this kernel's BTF; NULL if the kernel has no such event. */
static const struct btf_type *arguments_of(const struct btf *btf, const char *event)
{
	char name[128];
	const struct btf_type *type;
	int id;

	snprintf(name, sizeof(name), "btf_trace_%s", event);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	if (id < 0)
		return NULL;
	type = btf__type_by_id(btf, btf__type_by_id(btf, (__u32)id)->type); /* a pointer to the function's prototype */
	type = type ? btf__type_by_id(btf, type->type) : NULL;
	return type && btf_is_func_proto(type) ? type : NULL;
}

/* Chooses the program for hrtimer_expire_entry, by the type of its argument with the current time in this kernel. */
static void choose_expiry(const struct btf *btf, struct monitor_bpf *programs)
{
	const struct btf_type *arguments = arguments_of(btf, "hrtimer_expire_entry");
	bool by_value = btf_vlen(arguments) >= 3 && !btf_is_ptr(btf__type_by_id(btf, btf_params(arguments)[2].type));
	bool before_5_11 = btf__find_by_name_kind(btf, "bpf_get_current_task_btf", BTF_KIND_FUNC) < 0;

	bpf_program__set_autoload(by_value ? programs->progs.on_expire_value :
				  before_5_11 ? programs->progs.on_expire_raw : programs->progs.on_expire_pointer, true);
}

/* True for events without which nothing can be measured.  Events of interrupts, idle states and frequencies depend on the
 * architecture. */
static bool is_needed(const char *event)
{
	static const char *const needed[] = {"sched_waking", "sched_switch", "hrtimer_expire_entry", "hrtimer_expire_exit", "sys_exit"};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (!strcmp(needed[i], event))
			return true;
	return false;
}

/* True for the event with several programs, of which choose_expiry() loads one. */
static bool is_expiry(const char *event)
{
	return !strcmp(event, "hrtimer_expire_entry");
}

static bool choose(struct monitor *monitor, const struct btf *btf)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, monitor->programs->obj) {
		const char *event = event_of(program);
		bool exists = arguments_of(btf, event);

		if (!is_allowed(event)) {
			run_not_applicable(monitor->run, "a station needs the event %s, which is not on the list of events "
					   "known to be safe", event);
			return false;
		}
		if (!is_expiry(event))
			bpf_program__set_autoload(program, exists && (monitor->noise || !is_noise(bpf_program__name(program))));
		if (!exists && is_needed(event)) {
			run_not_applicable(monitor->run, "this kernel has no event %s; wake-ups cannot be observed", event);
			return false;
		}
	}
	choose_expiry(btf, monitor->programs);
	return true;
}

static bool open_programs(struct monitor *monitor)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool chosen;

	if (!btf) {
		run_not_applicable(monitor->run, "this kernel has no type information (no /sys/kernel/btf/vmlinux); "
				   "use one built with CONFIG_DEBUG_INFO_BTF=y");
		return false;
	}
	monitor->programs = monitor_bpf__open();
	if (!monitor->programs)
		bad_input("the monitor's programs cannot be opened: %s", *libbpf_message ? libbpf_message : strerror(errno));
	chosen = choose(monitor, btf);
	btf__free(btf);
	return chosen;
}

/* Sets the sizes of the maps by CPUs, stations, epochs and k. */
static void size_maps(struct monitor *monitor)
{
	struct monitor_bpf *programs = monitor->programs;

	*(struct filter *)&programs->rodata->filter = monitor->filter;
	bpf_map__set_max_entries(programs->maps.cpus, (__u32)libbpf_num_possible_cpus());
	if (!monitor->filter.store_samples)
		bpf_map__set_max_entries(programs->maps.samples, (__u32)sysconf(_SC_PAGESIZE));
	bpf_map__set_max_entries(programs->maps.noises, (__u32)libbpf_num_possible_cpus());
	bpf_map__set_max_entries(programs->maps.banks, 2 * monitor->cpus * STATIONS);
	bpf_map__set_value_size(programs->maps.banks, (__u32)BANK_BYTES(monitor->filter.k));
}

static void map_banks(struct monitor *monitor)
{
	size_t size = 2 * monitor->cpus * STATIONS * BANK_BYTES(monitor->filter.k);
	void *banks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(monitor->programs->maps.banks), 0);

	if (banks == MAP_FAILED)
		bad_input("the monitor's histograms cannot be mapped: %s", strerror(errno));
	monitor->banks = banks;
}

/* Why the kernel refused the programs; for EPERM, what is required beside the capabilities. */
static const char *refusal(int error)
{
	if (error == -EPERM)
		return "it needs root of the host, not of a container or user namespace; no lockdown; before Linux 5.11 "
		       "ulimit -l unlimited (kernel.unprivileged_bpf_disabled and kernel.perf_event_paranoid need no change)";
	return *libbpf_message ? libbpf_message : strerror(-error);
}

bool programs_load(struct monitor *monitor)
{
	int error;

	libbpf_set_print(store_first_message);
	if (!open_programs(monitor))
		return false;
	size_maps(monitor);
	error = monitor_bpf__load(monitor->programs);
	if (!error)
		error = monitor_bpf__attach(monitor->programs);
	if (error) {
		run_not_applicable(monitor->run, "this kernel refuses the monitor's programs: %s", refusal(error));
		return false;
	}
	map_banks(monitor);
	/* Samples first: the last finding of a call ends the reading of all rings. */
	monitor->findings = ring_buffer__new(bpf_map__fd(monitor->programs->maps.samples), sample_receive, monitor, NULL);
	if (!monitor->findings ||
	    ring_buffer__add(monitor->findings, bpf_map__fd(monitor->programs->maps.findings), finding_receive, monitor))
		bad_input("the monitor's findings cannot be read: %s", strerror(errno));
	return true;
}

uint64_t programs_suppressed(const struct monitor *monitor)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program(program, monitor->programs->obj) {
		struct bpf_prog_info info = {0};
		__u32 size = sizeof(info);

		if (bpf_program__fd(program) >= 0 && !bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
			sum += info.recursion_misses;
	}
	return sum;
}
