/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callers: threads inside a call of the library. The first caller that waits for its
 * operation leads: it makes progress for the operations of all callers. Callers that
 * wait while another one leads follow: they sleep until the leader completes their
 * operation or stops leading.
 */
#ifndef MMC_ENGINE_THREADS_CALLERS_H
#define MMC_ENGINE_THREADS_CALLERS_H

#include "engine/state.h"

/* What a caller waits for: the end of a request or, before that, a part of its result. */
struct mmc_goal {
	const struct mmc_request *request;
	/* Returns whether the part has come, without the lock; NULL: the end alone. */
	bool (*has_come)(const struct mmc_goal *goal);
};

/* Returns whether a caller has what it waits for. Any thread may ask. */
static inline bool mmc_goal_is_reached(const struct mmc_goal *goal)
{
	return mmc_request_is_complete(goal->request) ||
	       (goal->has_come != NULL && goal->has_come(goal));
}

/*
 * Takes the progress lock, for which it waits, and has the responder stand by. Returns
 * 0, or -MMC_EFORKED, without the lock, in a child of the process that created the
 * engine.
 */
int mmc_engine_enter(struct mmc_engine *engine);

/* Gives the lock back, and lets the responder take over, unless a caller leads. */
void mmc_engine_leave(struct mmc_engine *engine);

/*
 * Gives the lock back for a moment, since the caller comes back for its operation: its
 * slice of time has ended. The responder takes over if it stays away for longer, or at
 * once if someone waits to be notified.
 */
void mmc_engine_pause(struct mmc_engine *engine);

/*
 * Returns once `goal` is reached or `slice_ns` have passed. Until then leads, or
 * follows while another caller leads. The caller holds the lock; others may have had it
 * in the meantime.
 */
void mmc_engine_wait_for(struct mmc_engine *engine, const struct mmc_goal *goal,
			 uint64_t slice_ns);

/*
 * Follows another caller. Returns true once `goal` is reached or `slice_ns` have passed. Returns false if nobody leads, or in a child of fork(): the caller must then
 * enter the engine and call mmc_engine_wait_for(). The caller does not hold the lock.
 */
bool mmc_engine_follow(struct mmc_engine *engine, const struct mmc_goal *goal,
		       uint64_t slice_ns);

/*
 * Sleeps until an event arrives, something is due, or the engine's `wake_fd` is written
 * to. The caller holds the lock, and does all the work of an engine that
 * mmc_engine_create_driven() has created.
 */
void mmc_engine_doze(struct mmc_engine *engine);

#endif
