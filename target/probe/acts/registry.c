/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What probes there are.  A new one is a file, its name here twice, and its file in meson.build.
 * A plain list: a registry by linker section or constructor silently stays empty in a static archive.
 */
#include "registry.h"

extern const struct probe timer_probe;
extern const struct probe spin_probe;
extern const struct probe kernel_probe;
extern const struct probe response_probe;
extern const struct probe periodic_probe;
extern const struct probe hog_probe;
extern const struct probe switch_probe;
extern const struct probe mutex_probe;
extern const struct probe mutex_contended_probe;
extern const struct probe mutex_pi_probe;
extern const struct probe inversion_probe;
extern const struct probe spinlock_probe;
extern const struct probe semaphore_probe;
extern const struct probe condvar_probe;
extern const struct probe futex_probe;
extern const struct probe eventfd_probe;
extern const struct probe signal_probe;
extern const struct probe mqueue_probe;
extern const struct probe barrier_probe;
extern const struct probe fifo_probe;
extern const struct probe fifo_message_probe;
extern const struct probe shm_probe;
extern const struct probe jitter_probe;

const struct probe *const probes[] = {
	&timer_probe,
	&spin_probe,
	&kernel_probe,
	&response_probe,
	&periodic_probe,
	&hog_probe,
	&switch_probe,
	&mutex_probe,
	&mutex_contended_probe,
	&mutex_pi_probe,
	&inversion_probe,
	&spinlock_probe,
	&semaphore_probe,
	&condvar_probe,
	&futex_probe,
	&eventfd_probe,
	&signal_probe,
	&mqueue_probe,
	&barrier_probe,
	&fifo_probe,
	&fifo_message_probe,
	&shm_probe,
	&jitter_probe,
	NULL,
};
