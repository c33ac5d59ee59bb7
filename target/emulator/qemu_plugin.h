/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of QEMU's interface for TCG plugins that is used here, version 1, as its documentation states it
 * (docs/devel/tcg-plugins.rst).  Debian's QEMU loads plugins, but no package has their header.
 */
#ifndef EMULATOR_QEMU_PLUGIN_H
#define EMULATOR_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))
#define PLUGIN_INTERFACE 1
#define PLUGIN_NO_REGISTERS 0
#define PLUGIN_READ_AND_WRITE 3
#define PLUGIN_ADD_U64 0

struct plugin_host {
	const char *target;
	struct {
		int least;
		int current;
	} interface;
	bool is_system;
	struct {
		int cpus;
		int most_cpus;
	} system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

typedef void plugin_on_block(uint64_t id, struct qemu_plugin_tb *block);
typedef void plugin_on_instruction(unsigned int cpu, void *data);
typedef void plugin_on_access(unsigned int cpu, uint32_t access, uint64_t address, void *data);
typedef void plugin_on_exit(uint64_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, plugin_on_block *function);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction, plugin_on_instruction *function,
					    int registers, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *instruction, int operation, void *counter,
						uint64_t value);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction, plugin_on_access *function, int registers,
				      int kinds, void *data);
void qemu_plugin_register_atexit_cb(uint64_t id, plugin_on_exit *function, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t position);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *instruction);

struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t access, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *place);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *place);
bool qemu_plugin_mem_is_store(uint32_t access);
unsigned int qemu_plugin_mem_size_shift(uint32_t access);

/* What QEMU requires of a plugin. */
extern PLUGIN_EXPORT int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(uint64_t id, const struct plugin_host *host, int argc, char **argv);

#endif
