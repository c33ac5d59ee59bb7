/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ThreadSanitizer keeps its books in each thread's stack, for which the frame's is too small. */
#include <pthread.h>
#include <sys/mman.h>

#define ROOMY (16 * 1024 * 1024)

int __real_pthread_attr_setstack(pthread_attr_t *attributes, void *stack, size_t size);
int __wrap_pthread_attr_setstack(pthread_attr_t *attributes, void *stack, size_t size);
int __wrap_pthread_attr_setstack(pthread_attr_t *attributes, void *stack, size_t size)
{
	void *roomy = mmap(NULL, ROOMY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return roomy == MAP_FAILED ? __real_pthread_attr_setstack(attributes, stack, size)
				   : __real_pthread_attr_setstack(attributes, roomy, ROOMY);
}
