/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of a team that a runner carries out (mpimcast/abi/offload.h). A request is
 * queued in its stream, posted to the runner in its turn, and ends by a completion. The
 * result arrives in memory that the runner shares: in the user's own, if that is such
 * memory, and otherwise in a bounce buffer, from which it is copied.
 *
 * The caller of each function holds the progress lock.
 */
#ifndef MMC_ENGINE_REMOTE_REQUESTS_H
#define MMC_ENGINE_REMOTE_REQUESTS_H

#include <mpimcast/abi/offload.h>

#include "engine/state.h"

/* The requests of one team that were posted and have not ended, by their number. */
struct mmc_posted {
	uint32_t count;
	struct mmc_request *requests[MMC_OFFLOAD_REQUESTS];
};

/*
 * Posts the queued requests of a stream, in order, as long as they are ready and there
 * is room. Tells the runner that this rank leaves the stream, if it does, once none is
 * queued. If the runner has ended, fails them all.
 */
void mmc_remote_post_queued(struct mmc_stream *stream);

/* Ends the request that a completion names; ignores one that names none. */
void mmc_remote_take_ended(struct mmc_team *team,
			   const struct mmc_offload_completion *completion);

/* Takes in MMC_EVENT_ENDED or MMC_EVENT_LANDED of the team's endpoint. */
void mmc_remote_take_event(struct mmc_team *team,
			   const struct mmc_event *event);

/*
 * Has the runner show from now on which chunks of a request are present, so that its
 * blocks land one by one. Does nothing if it was asked before, if the request is not
 * `partial` or is complete.
 */
void mmc_remote_show(struct mmc_request *request);

/* Returns whether that was done. Needs no lock. */
static inline bool mmc_remote_is_shown(const struct mmc_request *request)
{
	return __atomic_load_n(&request->shown, __ATOMIC_RELAXED);
}

/* Fails all requests of a team whose runner has ended. */
void mmc_remote_fail_all(struct mmc_team *team);

/* Writes what a request waits for that has been posted, but not its time. */
void mmc_remote_waiting(struct mmc_request *request,
			struct mmc_waiting *waiting);

/*
 * Cancels a request that is not complete, and poisons its stream on all ranks. On return
 * the request has ended.
 */
void mmc_remote_cancel(struct mmc_request *request);

/*
 * Has the runner close a stream, and gives up the requests that were posted: they are
 * back in the stream's queue.
 */
void mmc_remote_close_stream(struct mmc_stream *stream);

#endif
