/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The coder: a thread that computes parity and mends groups, where there is a processor for it,
 * so that the holder of the progress lock has more time to receive.
 *
 * The holder gives it *tasks*, in a ring, and takes them back in the same order once they have
 * ended. A task names all memory that is read and written for it: until it has ended, or was
 * cancelled, nobody may write to that memory. No lock is taken, and either side sleeps only
 * while it has nothing to do.
 *
 * The holder of the progress lock calls all functions of this file.
 */
#ifndef MMC_ENGINE_THREADS_CODER_H
#define MMC_ENGINE_THREADS_CODER_H

#include <stdatomic.h>

#include "code/code.h"
#include "core/operation/action.h"

struct mmc_coder;
struct mmc_engine;
struct mmc_request;

/* Tasks of the ring: the groups that a few spans can have ready at the same time. */
#define MMC_CODER_TASKS 32

/* The thread that sleeps, or is about to, and that the coder wakes when it has mended a group. */
enum mmc_coder_sleeper {
	MMC_CODER_NOBODY,
	MMC_CODER_LEADER,
	MMC_CODER_RESPONDER,
};

struct mmc_coder_task {
	struct mmc_request *request; /* whose memory the task uses */
	struct mmc_action action;    /* what is carried out by it */
	struct mmc_code_group group; /* its chunks are in `data` */
	struct mmc_code_loss loss;   /* in `columns` and so on; none: encode */
	struct mmc_code_rows rows;   /* in `parity`, if nothing is lost */
	uint8_t *data[MMC_CODE_CHUNKS_MAX];
	uint8_t *parity[MMC_CODE_CHUNKS_MAX];
	uint8_t columns[MMC_CODE_CHUNKS_MAX];
	uint8_t row_numbers[MMC_CODE_CHUNKS_MAX];
	/* The rest is for the coder. */
	_Atomic bool claimed; /* it has begun, or never will */
	bool cancelled;	      /* nobody wants to hear of its end */
};

/* Does what a task describes. Any thread may call this, for tasks of no ring, too. */
void mmc_coder_compute(const struct mmc_coder_task *task);

/*
 * Starts the engine's coder unless it runs; a stepped engine has none. Returns 0,
 * -MMC_ENOMEM, or -MMC_EIO with the reason in mmc_last_error().
 */
int mmc_coder_start(struct mmc_engine *engine);

/* Ends the engine's coder, if it has one. All tasks must have been cancelled or taken. */
void mmc_coder_stop(struct mmc_engine *engine);

/* Returns a task to be described and submitted, or NULL if the ring is full. */
struct mmc_coder_task *mmc_coder_next(struct mmc_coder *coder);

/* Has the coder do the task that mmc_coder_next() has returned. */
void mmc_coder_submit(struct mmc_coder *coder);

/*
 * Returns a task that has ended and was not cancelled, or NULL. It may be used until the next
 * call of mmc_coder_next(). As the holder is awake, nobody is woken until the next
 * mmc_coder_arm().
 */
struct mmc_coder_task *mmc_coder_take(struct mmc_coder *coder);

/*
 * Has the coder wake `sleeper` once it next has mended a group. Returns whether a task has
 * ended already: then mmc_coder_take() is to be called first.
 */
bool mmc_coder_arm(struct mmc_coder *coder, enum mmc_coder_sleeper sleeper);

/* Returns whether a task has ended that was neither cancelled nor taken back. */
bool mmc_coder_has_ended(const struct mmc_coder *coder,
			 const struct mmc_coder_task *task);

/* Waits until a task has ended. Returns false if there is none to wait for. */
bool mmc_coder_await(struct mmc_coder *coder);

/* Cancels a task unless it has begun. Returns whether it was cancelled. */
bool mmc_coder_cancel(struct mmc_coder_task *task);

/*
 * Cancels all tasks of a request, and waits for the end of one that has begun. On return
 * nobody uses the request's memory.
 */
void mmc_coder_forget(struct mmc_coder *coder,
		      const struct mmc_request *request);

#endif
