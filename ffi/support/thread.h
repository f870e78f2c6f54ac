/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library, beside those of the program. */
#ifndef MMC_SUPPORT_THREAD_H
#define MMC_SUPPORT_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * Starts a thread in which every signal is blocked, so that signals go to the program's
 * own threads. Returns what pthread_create() does.
 */
static inline int mmc_thread_start(pthread_t *thread, void *(*run)(void *),
				   void *argument)
{
	sigset_t all;
	sigset_t before;
	int rv;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rv = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rv;
}

#endif
