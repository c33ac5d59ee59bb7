/* SPDX-License-Identifier: GPL-2.0-or-later */
/* With the threads of ISO C, which have no priority inheritance, and with atomics. */
#ifndef SYNC_H
#define SYNC_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <threads.h>

typedef mtx_t sync_mutex;
typedef cnd_t sync_condition;
typedef atomic_flag sync_spinlock;
typedef struct {
	mtx_t mutex;
	cnd_t changed;
	unsigned count;
} sync_semaphore;
typedef struct {
	mtx_t mutex;
	cnd_t passed;
	unsigned threads, arrived, turn;
} sync_barrier;

#define SYNC_LOCK_CALL "mtx_lock()"
#define SYNC_UNLOCK_CALL "mtx_unlock()"
#define SYNC_POST_CALL "a post"
#define SYNC_TAKE_CALL "a take"
#define SYNC_SIGNAL_CALL "cnd_signal()"
#define SYNC_WAIT_CALL "cnd_wait()"
#define SYNC_ARRIVE_CALL "an arrival"
#define SYNC_SPIN_LOCK_CALL "atomic_flag_test_and_set()"
#define SYNC_SPIN_UNLOCK_CALL "atomic_flag_clear()"
#define SYNC_YIELD_CALL "thrd_yield()"

static inline int sync_mutex_init(sync_mutex *mutex, bool inherits)
{
	if (inherits)
		return ENOTSUP;
	return mtx_init(mutex, mtx_plain) == thrd_success ? 0 : ENOMEM;
}

static inline void sync_lock(sync_mutex *mutex)
{
	mtx_lock(mutex);
}

static inline int sync_trylock(sync_mutex *mutex)
{
	return mtx_trylock(mutex) == thrd_success ? 0 : EBUSY;
}

static inline void sync_unlock(sync_mutex *mutex)
{
	mtx_unlock(mutex);
}

static inline bool sync_condition_init(sync_condition *condition)
{
	return cnd_init(condition) == thrd_success;
}

static inline void sync_signal(sync_condition *condition)
{
	cnd_signal(condition);
}

static inline void sync_broadcast(sync_condition *condition)
{
	cnd_broadcast(condition);
}

static inline void sync_wait(sync_condition *condition, sync_mutex *mutex)
{
	cnd_wait(condition, mutex);
}

static inline bool sync_semaphore_init(sync_semaphore *semaphore)
{
	semaphore->count = 0;
	return sync_mutex_init(&semaphore->mutex, false) == 0 && sync_condition_init(&semaphore->changed);
}

static inline void sync_post(sync_semaphore *semaphore)
{
	mtx_lock(&semaphore->mutex);
	semaphore->count++;
	mtx_unlock(&semaphore->mutex);
	cnd_signal(&semaphore->changed);
}

/* Gives up after a while, so that the end of a run is seen. */
static inline bool sync_take(sync_semaphore *semaphore)
{
	struct timespec until;
	bool taken;

	timespec_get(&until, TIME_UTC);
	until.tv_sec++;
	mtx_lock(&semaphore->mutex);
	while (!semaphore->count && cnd_timedwait(&semaphore->changed, &semaphore->mutex, &until) == thrd_success)
		;
	taken = semaphore->count > 0;
	semaphore->count -= taken;
	mtx_unlock(&semaphore->mutex);
	return taken;
}

static inline bool sync_barrier_init(sync_barrier *barrier, unsigned threads)
{
	barrier->threads = threads;
	barrier->arrived = barrier->turn = 0;
	return sync_mutex_init(&barrier->mutex, false) == 0 && sync_condition_init(&barrier->passed);
}

static inline void sync_arrive(sync_barrier *barrier)
{
	unsigned turn;

	mtx_lock(&barrier->mutex);
	turn = barrier->turn;
	if (++barrier->arrived == barrier->threads) {
		barrier->arrived = 0;
		barrier->turn++;
		cnd_broadcast(&barrier->passed);
	}
	while (barrier->turn == turn)
		cnd_wait(&barrier->passed, &barrier->mutex);
	mtx_unlock(&barrier->mutex);
}

static inline void sync_spinlock_init(sync_spinlock *lock)
{
	atomic_flag_clear(lock);
}

static inline void sync_spin_lock(sync_spinlock *lock)
{
	while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
		;
}

static inline void sync_spin_unlock(sync_spinlock *lock)
{
	atomic_flag_clear_explicit(lock, memory_order_release);
}

static inline void sync_yield(void)
{
	thrd_yield();
}

#endif
