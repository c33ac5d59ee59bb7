/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plugin of QEMU: models the first-level caches of an arm64 guest with one CPU, and counts instructions and misses
 * on the path of each wake-up of one program's tasks.  It only reads: guest and clock stay the same.
 *
 *	-plugin cost-model.so,program=FILE,counts=FILE,instruction=BYTES:WAYS:LINE,data=BYTES:WAYS:LINE
 *
 * `counts` gets one line for each path, in order: instructions, misses of the instruction cache, of the data cache.
 *
 * Lines of instructions are identified by where QEMU holds the guest's memory.  QEMU tells a plugin this address of an
 * instruction and the virtual one, but not the physical one.  It aligns that memory to 2 MiB, so a line's set is that of
 * its physical address.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cache.h"
#include "program.h"
#include "qemu_plugin.h"
#include "wakeup.h"

#define INSTRUCTION_BYTES 4
#define BLOCK_MOST 64 /* instructions of a block that are compared with the program */
#define KERNEL_HALF (UINT64_C(1) << 63)
/* Registers of the interrupt controller of QEMU's machine "virt" (GICv2): number and completion of an interrupt. */
#define INTERRUPT_NUMBER UINT64_C(0x0801000c)
#define INTERRUPT_END UINT64_C(0x08010010)
/* MSR TPIDR_EL0, Xt: the kernel sets the thread pointer of each task to which it switches. */
#define SET_THREAD_POINTER UINT32_C(0xd51bd040)
#define REGISTER_BITS UINT32_C(0x1f)

static struct cache instruction_cache, data_cache;
static struct program program;
static struct wakeup wakeup;
static uint64_t instructions;
static FILE *output;

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_INTERFACE;

static struct counts counts_now(void)
{
	return (struct counts){instructions, instruction_cache.misses, data_cache.misses};
}

static void on_line(unsigned int cpu, void *place)
{
	(void)cpu;
	cache_use(&instruction_cache, (uintptr_t)place, INSTRUCTION_BYTES);
}

static void on_switch(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	wakeup_switch(&wakeup);
}

static void on_program(unsigned int cpu, void *data)
{
	struct counts path;

	(void)cpu;
	(void)data;
	if (wakeup_run(&wakeup, counts_now(), &path))
		fprintf(output, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", path.instructions, path.instruction_misses,
			path.data_misses);
}

static void on_device(uint64_t place, bool is_store)
{
	if (place == INTERRUPT_NUMBER && !is_store)
		wakeup_read(&wakeup, counts_now());
	else if (place == INTERRUPT_END && is_store)
		wakeup_completed(&wakeup);
}

static void on_access(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct qemu_plugin_hwaddr *known = qemu_plugin_get_hwaddr(access, address);
	uint64_t place;

	(void)cpu;
	(void)data;
	if (!known)
		return;
	place = qemu_plugin_hwaddr_phys_addr(known);
	if (qemu_plugin_hwaddr_is_io(known))
		on_device(place, qemu_plugin_mem_is_store(access));
	else
		cache_use(&data_cache, place, UINT64_C(1) << qemu_plugin_mem_size_shift(access));
}

static uint32_t code_of(const struct qemu_plugin_insn *instruction)
{
	uint32_t code;

	memcpy(&code, qemu_plugin_insn_data(instruction), sizeof(code));
	return code;
}

static bool is_of_program(const struct qemu_plugin_tb *block, size_t length)
{
	uint32_t codes[BLOCK_MOST];
	size_t compared = length < BLOCK_MOST ? length : BLOCK_MOST;

	for (size_t i = 0; i < compared; i++)
		codes[i] = code_of(qemu_plugin_tb_get_insn(block, i));
	return program_has(&program, qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0)), codes,
			   compared * INSTRUCTION_BYTES);
}

/* A line that a block uses without a break is looked up once: further uses change nothing. */
static void on_block(uint64_t id, struct qemu_plugin_tb *block)
{
	size_t length = qemu_plugin_tb_n_insns(block);
	uintptr_t line = UINTPTR_MAX;

	(void)id;
	for (size_t i = 0; i < length; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
		void *place = qemu_plugin_insn_haddr(instruction);

		qemu_plugin_register_vcpu_insn_exec_inline(instruction, PLUGIN_ADD_U64, &instructions, 1);
		if ((uintptr_t)place >> instruction_cache.line_shift != line)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_line, PLUGIN_NO_REGISTERS, place);
		line = (uintptr_t)place >> instruction_cache.line_shift;
		if (qemu_plugin_insn_vaddr(instruction) & KERNEL_HALF &&
		    (code_of(instruction) & ~REGISTER_BITS) == SET_THREAD_POINTER)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_switch, PLUGIN_NO_REGISTERS, NULL);
		qemu_plugin_register_vcpu_mem_cb(instruction, on_access, PLUGIN_NO_REGISTERS, PLUGIN_READ_AND_WRITE,
						 NULL);
	}
	if (length && is_of_program(block, length))
		qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(block, 0), on_program,
						       PLUGIN_NO_REGISTERS, NULL);
}

static void on_exit(uint64_t id, void *data)
{
	(void)id;
	(void)data;
	if (fclose(output))
		perror("cost model: counts");
}

static const char *value_of(const char *option, const char *name)
{
	size_t length = strlen(name);

	return strncmp(option, name, length) || option[length] != '=' ? NULL : option + length + 1;
}

/* False for an unknown option, and for one with a wrong value. */
static bool take_option(const char *option)
{
	const char *value;

	if ((value = value_of(option, "instruction")))
		return cache_make(&instruction_cache, value);
	if ((value = value_of(option, "data")))
		return cache_make(&data_cache, value);
	if ((value = value_of(option, "program")))
		return program_read(&program, value);
	if ((value = value_of(option, "counts")))
		return (output = fopen(value, "w")) != NULL;
	return false;
}

int qemu_plugin_install(uint64_t id, const struct plugin_host *host, int argc, char **argv)
{
	if (strcmp(host->target, "aarch64") || !host->is_system || host->system.most_cpus != 1) {
		fputs("cost model: the guest must be an arm64 machine with one CPU\n", stderr);
		return 1;
	}
	for (int i = 0; i < argc; i++) {
		if (!take_option(argv[i])) {
			fprintf(stderr, "cost model: cannot use %s\n", argv[i]);
			return 1;
		}
	}
	if (!instruction_cache.lines || !data_cache.lines || !program.code || !output) {
		fputs("cost model: program=, counts=, instruction= and data= are required\n", stderr);
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
	qemu_plugin_register_atexit_cb(id, on_exit, NULL);
	return 0;
}
