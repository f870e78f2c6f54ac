/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a train of chunks should be. A train leaves its host at the link's speed, and
 * costs the hosts little more than a single datagram. But it holds up what others send
 * over the link, and all of it arrives at a queue at once.
 */
#ifndef MMC_CORE_FLOW_TRAIN_H
#define MMC_CORE_FLOW_TRAIN_H

#include "core/flow/path.h"
#include "core/plan/schedule.h"

/*
 * For how long a train may occupy a link. TCP of Linux cuts its segments for 1 ms; here
 * several ranks send at once to each receiver, and a train of each fits into a window.
 */
#define MMC_TRAIN_NS (2 * MMC_MS_NS)

/*
 * Returns how many chunks to send in one go: what the path carries in MMC_TRAIN_NS, from
 * MMC_BATCH_CHUNKS_MIN up to `train_chunks`, the most in one train, or to
 * MMC_BATCH_CHUNKS_MAX in several, if that is more. It is MMC_BATCH_CHUNKS_MAX while the
 * path's rate is a guess, and where there are no trains (0). What queues hold is up to the
 * window: no more than half of it is sent in one go (mmc_schedule_set_batch()).
 */
static inline uint32_t mmc_train_chunks(const struct mmc_path *path,
					uint32_t train_chunks,
					uint32_t chunk_bytes)
{
	uint64_t carried_bytes;

	if (train_chunks == 0 || !path->measured)
		return MMC_BATCH_CHUNKS_MAX;
	carried_bytes = path->rate_bytes_per_s / (MMC_S_NS / MMC_TRAIN_NS);
	train_chunks = mmc_max_u32(train_chunks, MMC_BATCH_CHUNKS_MAX);
	return (uint32_t)mmc_max_u64(MMC_BATCH_CHUNKS_MIN,
				     mmc_min_u64(carried_bytes / chunk_bytes,
						 train_chunks));
}

#endif
