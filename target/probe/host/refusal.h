/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Explains why a request was refused and what to grant, from capabilities, limits, filters and control groups. */
#ifndef REFUSAL_H
#define REFUSAL_H

#include <stdbool.h>

#define REFUSAL_SIZE 200

/* Each writes "cause; what to do" for an errno. */
void refusal_of_policy(char text[REFUSAL_SIZE], int error, int priority, bool deadline);
void refusal_of_affinity(char text[REFUSAL_SIZE], int error);
void refusal_of_lock(char text[REFUSAL_SIZE], int error);
void refusal_of_dma_latency(char text[REFUSAL_SIZE], int error);
void refusal_of_reading(char text[REFUSAL_SIZE], int error, const char *call);

#endif
