/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine, which makes progress for one process, and the memory that it owns. */
#ifndef MPIMCAST_ENGINE_H
#define MPIMCAST_ENGINE_H

#include <stddef.h>
#include <stdint.h>

struct mmc_engine;

/*
 * Creates this process's engine. Its responder thread starts with the first team that
 * needs it. Returns 0 or a negative error.
 */
int mmc_engine_create(struct mmc_engine **engine);

/*
 * Stops the responder thread and frees the engine. Its teams must have been closed, and
 * its memory freed, before.
 */
void mmc_engine_destroy(struct mmc_engine *engine);

/*
 * Sleeps until a request notifies of its end, or until mmc_engine_rouse() is called.
 * Requests do so whose operation has `notifies` set. `*nended` counts those that have
 * ended: it is 0 at the first call, and must be kept between calls, since a call
 * returns at once if more have ended than it says. Returns 0 or a negative error.
 */
int mmc_engine_await(struct mmc_engine *engine, uint64_t *nended);

/*
 * Makes a call of mmc_engine_await() return: one in progress or, if none is, the next.
 */
void mmc_engine_rouse(struct mmc_engine *engine);

/*
 * Makes all progress that is possible without waiting. A thread calls this while it
 * waits for something else and no responder does the work (`unattended` in struct
 * mmc_team_options).
 */
void mmc_engine_make_progress(struct mmc_engine *engine);

/*
 * Lets the calling thread run on every CPU of the process's cpuset, if it is bound to a
 * single core. Launchers bind a rank to a core, and its new threads inherit that, but a
 * thread that communicates must not take that core from the one that computes. A thread
 * that may run on several cores keeps them, since they are near its memory. The
 * responder thread calls this itself.
 */
void mmc_thread_unbind(void);

/*
 * Allocates `nbytes` that the engine owns, and writes their address to `*memory`.
 * Operations whose results lie in such memory need not register it each time: each team
 * registers it once for other ranks to read. Returns 0 or a negative error.
 */
int mmc_memory_allocate(struct mmc_engine *engine, size_t nbytes,
			void **memory);

/*
 * Maps `nbytes` of the file behind the descriptor `fd`, which other processes may map,
 * as memory that the engine owns, and writes their address to `*memory`. The file must
 * stay as long as that. The descriptor remains the caller's, who may close it. Returns 0
 * or a negative error.
 */
int mmc_memory_map(struct mmc_engine *engine, int fd, size_t nbytes,
		   void **memory);

/* Frees memory of the engine, which no operation in flight may use. */
void mmc_memory_free(struct mmc_engine *engine, void *memory);

#endif
