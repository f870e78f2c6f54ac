/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes that may be on their way without overflowing a queue of the network. The
 * length of those queues is unknown: the window learns it from the losses of
 * operations, small and large ones alike.
 */
#ifndef MMC_CORE_FLOW_WINDOW_H
#define MMC_CORE_FLOW_WINDOW_H

#include "core/types.h"
#include "support/bits.h"

/* The least window: one of a few batches can hardly be the cause of loss. */
#define MMC_WINDOW_CHUNKS_MIN 64

/* The first window: most switches hold this much for a port. */
#define MMC_WINDOW_BYTES (UINT32_C(384) * 1024)

/*
 * About half of what most switches hold: the rest is for a TCP stream on the same port.
 */
#define MMC_WINDOW_SHARED_BYTES (UINT32_C(256) * 1024)

/* The window grows by a batch. */
#define MMC_WINDOW_STEP_CHUNKS 20

/* The least sample: of fewer chunks, the share that is lost says little. */
#define MMC_WINDOW_SAMPLE_CHUNKS 64

/*
 * The bounds of `patience`. It doubles when the ceiling proves right, and has no bound
 * where a larger window was no faster.
 */
#define MMC_WINDOW_PATIENCE_MIN 2
#define MMC_WINDOW_PATIENCE_MAX 256

struct mmc_window {
	uint32_t bytes; /* 0: the network has no queues */
	/* A larger window than this lost chunks; 0: none has. */
	uint32_t ceiling_bytes;
	bool grew; /* the window grew after the last sample */
	/* The rate of the sample after which the window last grew. */
	uint64_t grown_rate_bytes_per_s;
	/* The samples without loss for which the ceiling holds. */
	uint32_t patience;
	uint32_t nclean;  /* samples in a row without loss */
	uint32_t nchunks; /* this rank's chunks in the present sample */
	uint32_t nlost;	  /* chunks of `nchunks` that had to be repaired */
	/* Chunks of `nchunks` repaired for several receivers. */
	uint32_t nshared;
};

/* The sample that an operation yields. */
struct mmc_window_sample {
	uint32_t window_bytes; /* the window of the operation */
	uint32_t chunk_bytes;
	uint32_t nchunks; /* chunks of this rank's block */
	uint32_t nlost;	  /* chunks of `nchunks` that had to be repaired */
	/* Chunks of `nchunks` repaired for several receivers. */
	uint32_t nshared;
	uint64_t rate_bytes_per_s;
};

/* Raises the ceiling after some samples without loss: the network may bear more now. */
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

/*
 * Bounds the window to `bytes` for a time, which doubles if growth was tried in vain.
 */
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
 * Adapts the window after an operation, or as soon as operations have brought enough
 * chunks to tell. Where a queue overflows, many receivers lose bursts: the window is
 * halved. When loss follows growth, the window steps back and stays there for a time;
 * beyond MMC_WINDOW_BYTES it grows only while the rate does. A little loss without
 * growth is not the window's doing; but up to MMC_WINDOW_BYTES it may be that of a
 * queue which others fill as well, and the window leaves them the room above
 * MMC_WINDOW_SHARED_BYTES.
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
