/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much may be on its way without overflowing a queue of the network. Nobody says
 * how long those are: the window finds out from what operations lose, small and large
 * ones alike.
 */
#ifndef MMC_CORE_FLOW_WINDOW_H
#define MMC_CORE_FLOW_WINDOW_H

#include "core/types.h"
#include "support/bits.h"

/* A window that is a few batches can hardly be the cause of loss. */
#define MMC_WINDOW_CHUNKS_MIN 64

/* Most switches hold this much for a port: where to begin. */
#define MMC_WINDOW_BYTES (UINT32_C(384) * 1024)

/* Half of what most hold, or so: the rest is for a stream of TCP that shares a port. */
#define MMC_WINDOW_SHARED_BYTES (UINT32_C(256) * 1024)

/* What it grows by: a batch. */
#define MMC_WINDOW_STEP_CHUNKS 20

/* Of fewer chunks a share that is lost says little. */
#define MMC_WINDOW_SAMPLE_CHUNKS 64

/*
 * For how many samples without loss a ceiling holds: more when it proves right, and for
 * ever where a larger window was no faster.
 */
#define MMC_WINDOW_PATIENCE_MIN 2
#define MMC_WINDOW_PATIENCE_MAX 256

struct mmc_window {
	uint32_t bytes;		/* 0: the network has no queues */
	uint32_t ceiling_bytes; /* a larger window has lost; 0: none has */
	bool grew;		/* after the last sample */
	uint64_t grown_rate_bytes_per_s; /* of the sample it grew after */
	uint32_t patience; /* samples without loss for which it holds */
	uint32_t nclean;   /* samples in a row without loss */
	uint32_t nchunks;  /* of this rank's own, in the present sample */
	uint32_t nlost;	   /* of these, had to be repaired */
	uint32_t nshared;  /* of these, for several receivers */
};

/* What an operation tells. */
struct mmc_window_sample {
	uint32_t window_bytes; /* that it had */
	uint32_t chunk_bytes;
	uint32_t nchunks; /* of the own block */
	uint32_t nlost;	  /* of these, had to be repaired */
	uint32_t nshared; /* of these, for several receivers */
	uint64_t rate_bytes_per_s;
};

/* Nothing has been lost for some time: the network may bear more than it did. */
static inline void mmc_window_lift(struct mmc_window *window,
				   uint64_t step_bytes)
{
	uint64_t lift_bytes =
		mmc_max_u64(step_bytes, window->ceiling_bytes / 4);

	if (window->ceiling_bytes == 0 || ++window->nclean < window->patience)
		return;
	window->nclean = 0;
	window->ceiling_bytes = (uint32_t)mmc_min_u64(
		UINT32_MAX, window->ceiling_bytes + lift_bytes);
}

/* Not beyond `bytes` for a time, which doubles if growth has been tried in vain. */
static inline void mmc_window_bound(struct mmc_window *window, uint64_t bytes,
				    bool grew)
{
	window->ceiling_bytes = (uint32_t)bytes;
	window->nclean = 0;
	if (window->patience < MMC_WINDOW_PATIENCE_MIN)
		window->patience = MMC_WINDOW_PATIENCE_MIN;
	else if (grew)
		window->patience = mmc_min_u32(2 * window->patience,
					       MMC_WINDOW_PATIENCE_MAX);
}

/*
 * Adapts the window after an operation, or as soon as some have brought enough chunks
 * to tell. Where a queue overflows, bursts are lost by many: the window is halved. When
 * loss follows upon growth the window steps back and stays there for a time; beyond
 * MMC_WINDOW_BYTES it grows only while the rate does. Loss without growth, and little
 * of it, is none of its doing; but up to there it may be that of a queue which others
 * fill as well, and the window leaves them the room above MMC_WINDOW_SHARED_BYTES.
 */
static inline void mmc_window_adapt(struct mmc_window *window,
				    const struct mmc_window_sample *sample)
{
	uint64_t step_bytes =
		(uint64_t)sample->chunk_bytes * MMC_WINDOW_STEP_CHUNKS;
	uint64_t now_bytes = sample->window_bytes;
	uint64_t next_bytes = now_bytes;
	bool grew = window->grew;
	bool may_share = now_bytes > MMC_WINDOW_SHARED_BYTES &&
			 now_bytes <= MMC_WINDOW_BYTES;
	bool faster = sample->rate_bytes_per_s >
		      window->grown_rate_bytes_per_s +
			      window->grown_rate_bytes_per_s / 20;

	window->nchunks += sample->nchunks;
	window->nlost += sample->nlost;
	window->nshared += sample->nshared;
	if (window->bytes == 0 || window->nchunks < MMC_WINDOW_SAMPLE_CHUNKS)
		return;
	window->grew = false;
	if (window->nshared > window->nchunks / 16) {
		next_bytes = now_bytes / 2;
		mmc_window_bound(window, now_bytes - now_bytes / 4, grew);
	} else if (may_share && window->nlost > 0) {
		next_bytes = MMC_WINDOW_SHARED_BYTES;
		mmc_window_bound(window, next_bytes, grew);
	} else if (grew && window->nlost > window->nchunks / 256 &&
		   now_bytes > 2 * step_bytes) {
		next_bytes = now_bytes - 2 * step_bytes;
		mmc_window_bound(window, next_bytes, grew);
	} else if (grew && !faster && now_bytes > MMC_WINDOW_BYTES) {
		window->ceiling_bytes = (uint32_t)now_bytes;
		window->patience = UINT32_MAX;
	} else if (window->nlost <= window->nchunks / 256) {
		mmc_window_lift(window, step_bytes);
		window->grew = now_bytes + step_bytes <=
			       (window->ceiling_bytes == 0
					? UINT32_MAX
					: window->ceiling_bytes);
	}
	if (window->grew) {
		next_bytes = now_bytes + step_bytes;
		window->grown_rate_bytes_per_s = sample->rate_bytes_per_s;
	}
	window->bytes = (uint32_t)mmc_max_u64(
		next_bytes,
		mmc_min_u64(now_bytes, (uint64_t)sample->chunk_bytes *
					       MMC_WINDOW_CHUNKS_MIN));
	window->nchunks = 0;
	window->nlost = 0;
	window->nshared = 0;
}

#endif
