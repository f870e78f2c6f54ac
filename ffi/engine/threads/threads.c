/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/threads/threads.h"

#include <stdlib.h>
#include <unistd.h>

struct mmc_threads *mmc_threads_new(void)
{
	struct mmc_threads *threads = calloc(1, sizeof(*threads));
	pthread_condattr_t monotonic;

	if (threads == NULL)
		return NULL;
	threads->pid = getpid();
	threads->wake_fd = -1;
	pthread_mutex_init(&threads->mutex, NULL);
	pthread_cond_init(&threads->handover, NULL);
	pthread_cond_init(&threads->ended, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&threads->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return threads;
}

void mmc_threads_free(struct mmc_threads *threads)
{
	pthread_cond_destroy(&threads->news);
	pthread_cond_destroy(&threads->ended);
	pthread_cond_destroy(&threads->handover);
	pthread_mutex_destroy(&threads->mutex);
	free(threads);
}

bool mmc_threads_may_enter(const struct mmc_threads *threads)
{
	return getpid() == threads->pid;
}
