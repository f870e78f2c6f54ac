/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks that have landed (core/plan/landing.h), as the user asks for them: whether some
 * have, how to wait for them, and who is told of them.
 */
#ifndef MMC_ENGINE_LANDED_H
#define MMC_ENGINE_LANDED_H

#include "engine/state.h"

#ifdef MMC_BARE
/* Who has a processor without an operating system for runner sees only the end. */
#define MMC_TELLS_OF_PARTS false
#else
#define MMC_TELLS_OF_PARTS true
#endif

/* Returns whether a request tells of its blocks. */
static inline bool
mmc_request_tells_of_blocks(const struct mmc_request *request)
{
	return MMC_TELLS_OF_PARTS && request->tells;
}

/* Returns whether the user may look at the bits of a request. */
static inline bool mmc_request_shows_bits(const struct mmc_request *request)
{
	return MMC_TELLS_OF_PARTS && request->present != NULL;
}

/*
 * Returns 0 if a range is present, or if the request is complete; MMC_EAGAIN if it is not
 * yet, or the error of a request that has failed. The range lies in a block. Needs no lock.
 */
int mmc_request_look_range(struct mmc_request *request,
			   const struct mmc_range *range);

/*
 * As mmc_request_look_range(), of block number `index` in the order of landing, which is
 * below their number. Writes whose it is.
 */
int mmc_request_look_block(struct mmc_request *request, uint32_t index,
			   uint32_t *rank);

/* Returns how many blocks an operation has: one of each rank, or the root's. */
uint32_t mmc_request_nblocks(const struct mmc_request *request);

/*
 * Has those in mmc_engine_await() told of each block of a request, unless it is complete.
 * The caller holds the progress lock, as that of each function below.
 */
void mmc_request_begin_telling(struct mmc_request *request);

/* Ends that, which has begun. */
void mmc_request_end_telling(struct mmc_request *request);

/* Tells of the blocks of a request that have landed since it told last, if it does so. */
void mmc_request_tell_landed(struct mmc_request *request);

/* Does so for all active requests of a stream. */
void mmc_stream_tell_blocks(struct mmc_stream *stream);

/* Does so if any request of the engine tells of its blocks. */
static inline void mmc_stream_tell_landed(struct mmc_stream *stream)
{
	if (MMC_TELLS_OF_PARTS && stream->team->engine->ntelling > 0)
		mmc_stream_tell_blocks(stream);
}

#endif
