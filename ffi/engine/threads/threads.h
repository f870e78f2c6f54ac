/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state by which the threads of a process share an engine: the progress lock, and what
 * they sleep on. A processor without an operating system runs a single thread, which needs
 * none of it, and implements callers.h, notify.h and responder.h accordingly.
 */
#ifndef MMC_ENGINE_THREADS_THREADS_H
#define MMC_ENGINE_THREADS_THREADS_H

#include <pthread.h>
#include <sys/types.h>

#include "engine/state.h"

struct mmc_threads {
	pid_t pid;		 /* the process that may use the engine */
	pthread_mutex_t mutex;	 /* guards the fields below, up to `ended` */
	pthread_cond_t handover; /* `serving` has changed */
	uint64_t next_ticket; /* for the next thread that asks for the lock */
	uint64_t serving;     /* the ticket of the thread that has the lock */
	unsigned nawaiting;   /* threads in mmc_lock_await() */
	bool led;	      /* a caller leads: it makes all progress */
	pthread_cond_t news;  /* a request has completed, or `led` has ended */
	unsigned nfollowers;  /* callers that wait for `news` */
	unsigned
		nimpatient; /* those of them that wait for parts: use atomics */
	uint64_t
		nended; /* ends, and blocks, that have been notified of so far */
	bool roused;	/* mmc_engine_rouse() has yet to wake a thread */
	pthread_cond_t ended; /* `nended` or `roused` has changed */
	bool responds;	      /* the responder runs */
	bool stopping;	      /* read without the lock: use atomics */
	pthread_t thread;     /* the responder */
	int epoll_fd;	      /* what the responder sleeps on */
	int wake_fd;	      /* wakes the lock's holder */
	int timer_fd;	      /* wakes the responder when something is due */
	int armed; /* enum mmc_armed: what wakes the responder besides */
};

/* Allocates the state for a new engine. Returns NULL if there is not enough memory. */
struct mmc_threads *mmc_threads_new(void);

/* Frees the state of an engine that no thread uses any more. */
void mmc_threads_free(struct mmc_threads *threads);

/* Returns whether this process created the engine; a child after fork() did not. */
bool mmc_threads_may_enter(const struct mmc_threads *threads);

#endif
