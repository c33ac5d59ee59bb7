/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Synchronisation primitives by POSIX.  The *_CALL texts name the actual calls in recordings. */
#ifndef SYNC_H
#define SYNC_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>

typedef pthread_mutex_t sync_mutex;
typedef sem_t sync_semaphore;
typedef pthread_cond_t sync_condition;
typedef pthread_barrier_t sync_barrier;
typedef pthread_spinlock_t sync_spinlock;

#define SYNC_LOCK_CALL "pthread_mutex_lock()"
#define SYNC_UNLOCK_CALL "pthread_mutex_unlock()"
#define SYNC_POST_CALL "sem_post()"
#define SYNC_TAKE_CALL "sem_wait()"
#define SYNC_SIGNAL_CALL "pthread_cond_signal()"
#define SYNC_WAIT_CALL "pthread_cond_wait()"
#define SYNC_ARRIVE_CALL "pthread_barrier_wait()"
#define SYNC_SPIN_LOCK_CALL "pthread_spin_lock()"
#define SYNC_SPIN_UNLOCK_CALL "pthread_spin_unlock()"
#define SYNC_YIELD_CALL "sched_yield()"

/* An errno; ENOTSUP and the like where there are no mutexes with, or without, priority inheritance. */
static inline int sync_mutex_init(sync_mutex *mutex, bool inherits)
{
	pthread_mutexattr_t attributes;
	int error;

	pthread_mutexattr_init(&attributes);
	error = pthread_mutexattr_setprotocol(&attributes, inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
	return error ? error : pthread_mutex_init(mutex, &attributes);
}

static inline void sync_lock(sync_mutex *mutex)
{
	pthread_mutex_lock(mutex);
}

/* An errno: EBUSY where it is held. */
static inline int sync_trylock(sync_mutex *mutex)
{
	return pthread_mutex_trylock(mutex);
}

static inline void sync_unlock(sync_mutex *mutex)
{
	pthread_mutex_unlock(mutex);
}

static inline bool sync_semaphore_init(sync_semaphore *semaphore)
{
	return sem_init(semaphore, 0, 0) == 0;
}

static inline void sync_post(sync_semaphore *semaphore)
{
	sem_post(semaphore);
}

/* False where a signal ended the waiting. */
static inline bool sync_take(sync_semaphore *semaphore)
{
	return sem_wait(semaphore) == 0;
}

static inline bool sync_condition_init(sync_condition *condition)
{
	return pthread_cond_init(condition, NULL) == 0;
}

static inline void sync_signal(sync_condition *condition)
{
	pthread_cond_signal(condition);
}

static inline void sync_broadcast(sync_condition *condition)
{
	pthread_cond_broadcast(condition);
}

/* May return for no reason. */
static inline void sync_wait(sync_condition *condition, sync_mutex *mutex)
{
	pthread_cond_wait(condition, mutex);
}

static inline bool sync_barrier_init(sync_barrier *barrier, unsigned threads)
{
	return pthread_barrier_init(barrier, NULL, threads) == 0;
}

static inline void sync_arrive(sync_barrier *barrier)
{
	pthread_barrier_wait(barrier);
}

static inline void sync_spinlock_init(sync_spinlock *lock)
{
	pthread_spin_init(lock, PTHREAD_PROCESS_PRIVATE);
}

static inline void sync_spin_lock(sync_spinlock *lock)
{
	pthread_spin_lock(lock);
}

static inline void sync_spin_unlock(sync_spinlock *lock)
{
	pthread_spin_unlock(lock);
}

static inline void sync_yield(void)
{
	sched_yield();
}

#endif
