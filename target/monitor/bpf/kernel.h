/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of the kernel for the BPF programs: of each structure only the members that they read.  libbpf relocates these on
 * loading by the running kernel's BTF, so the build needs no kernel headers, and the result runs on all kernels.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "fe_hist.h"

typedef fe_s64 s64;
typedef fe_u64 u64;
typedef fe_u32 u32;
typedef __INT32_TYPE__ s32;
typedef unsigned char u8;

/* As the helpers of libbpf call them. */
typedef u8 __u8;
typedef __UINT16_TYPE__ __u16, __be16;
typedef fe_u32 __u32, __be32, __wsum;
typedef fe_u64 __u64;
typedef __INT32_TYPE__ __s32;
typedef fe_s64 __s64;

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_ARRAY_OF_MAPS = 12, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_MMAPABLE = 1024 };
enum { BPF_RB_NO_WAKEUP = 1 };

struct bpf_raw_tracepoint_args {
	u64 args[0];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[]; /* from 6.1 on */
};

struct cgroup___before_6_1 {
	int level;
	u64 ancestor_ids[];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct thread_info {
	u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned in_iowait : 1;
	unsigned int on_cpu; /* has another size from 7.2 on, which is allowed for unsigned members only */
	int prio;
	unsigned int policy;
	int pid, tgid;
	unsigned long nvcsw;
	struct css_set *cgroups;
	char comm[16];
};

struct task_struct___before_5_14 {
	long state;
};

struct task_struct___before_5_16 {
	unsigned int cpu;
};

struct hrtimer_clock_base {
	s64 offset;
};

struct hrtimer {
	s64 _softexpires;
	struct hrtimer_clock_base *base;
	u8 is_soft;
};

struct irqaction {
	struct task_struct *thread;
	unsigned int flags;
};

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#endif
