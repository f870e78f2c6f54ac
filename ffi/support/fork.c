/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/fork.h"

#include <pthread.h>

static uint32_t generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count(void)
{
	generation++;
}

static void watch(void)
{
	pthread_atfork(NULL, NULL, count);
}

uint32_t mmc_fork_generation(void)
{
	pthread_once(&once, watch);
	return generation;
}
