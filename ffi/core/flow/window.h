/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Learns how many bytes may be on their way without overflowing a queue of the network.
 * How long those queues are is unknown, so the window follows from the losses of
 * operations, small and large ones alike.
 */
#ifndef MMC_CORE_FLOW_WINDOW_H
#define MMC_CORE_FLOW_WINDOW_H

#include "core/types.h"
#include "support/bits.h"

/* The least window: a few batches can hardly be the cause of loss. */
#define MMC_WINDOW_CHUNKS_MIN 64

/* The first window: most switches can queue this much at a port. */
#define MMC_WINDOW_BYTES (UINT32_C(384) * 1024)

/*
 * The window when the queues may be shared: about half of what most switches hold,
 * which leaves the rest to a TCP stream on the same port.
 */
#define MMC_WINDOW_SHARED_BYTES (UINT32_C(256) * 1024)

/* The window grows by this many chunks: a batch. */
#define MMC_WINDOW_STEP_CHUNKS 20

/* The least sample: the share that is lost of fewer chunks says little. */
#define MMC_WINDOW_SAMPLE_CHUNKS 64

/*
 * The bounds of `patience`, which doubles each time that growth leads to loss again.
 * Where a larger window was no faster, the window stays for good.
 */
#define MMC_WINDOW_PATIENCE_MIN 2
#define MMC_WINDOW_PATIENCE_MAX 256

/*
 * Three shares, each of which is the whole divided by the number. If several receivers
 * have lost more than the first of a sample's chunks, a queue overflows. Up to the
 * second, hardly any chunks are lost. By the third the rate must rise for growth to be
 * worth while.
 */
#define MMC_WINDOW_OVERFLOW_PART 16
#define MMC_WINDOW_HARDLY_PART 256
#define MMC_WINDOW_FASTER_PART 20

/*
 * On a path that is not long, a window is widened if a rank waits for a processor for at least
 * the first of these percentages of an operation's time, and less so below the second.
 */
#define MMC_WINDOW_WIDEN_PERCENT 40
#define MMC_WINDOW_NARROW_PERCENT 20

/* A window is widened to at most 2 to this power times its size. */
#define MMC_WINDOW_WIDENING_MAX 6

struct mmc_window {
	uint32_t
		bytes; /* what was learnt; 0: no limit, and none is to be learnt */
	/*
	 * The window is 2 to this power times `bytes`. While processors are what ranks
	 * wait for, most of what is in flight lies in receive buffers, and on a long path
	 * it is on its way: not in queues.
	 */
	uint32_t widening;
	/* The least widening at which chunks were lost; 0: none yet. */
	uint32_t lossy_widening;
	/* The window grows no further than this; 0: as far as it can. */
	uint32_t ceiling_bytes;
	bool grew; /* the window grew after the last sample */
	/* The rate of the sample after which the window last grew. */
	uint64_t grown_rate_bytes_per_s;
	/* After this many samples with hardly any loss, the ceiling rises. */
	uint32_t patience;
	uint32_t nclean;  /* such samples since the ceiling was last set */
	uint32_t nchunks; /* this rank's chunks in the present sample */
	uint32_t nlost;	  /* chunks of `nchunks` that had to be repaired */
	uint32_t nshared; /* those that several receivers had lost */
};

/* Returns the window, widened; 0 for no limit. */
static inline uint32_t mmc_window_bytes(const struct mmc_window *window)
{
	return (uint32_t)mmc_min_u64(UINT32_MAX, (uint64_t)window->bytes
							 << window->widening);
}

/* One operation, as it counts in a sample. */
struct mmc_window_sample {
	uint32_t window_bytes; /* the window of the operation */
	uint32_t chunk_bytes;
	uint32_t nchunks; /* chunks of this rank's block */
	uint32_t nlost;	  /* chunks of `nchunks` that had to be repaired */
	uint32_t nshared; /* those that several receivers had lost */
	uint64_t rate_bytes_per_s; /* at which the operation went */
};

/*
 * Counts a sample with hardly any loss. Raises the ceiling after `patience` of them,
 * since the network may bear more now.
 */
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
 * Sets the ceiling to `bytes`. With `grew`, growth was tried in vain, and the ceiling
 * stays for twice as long as the last one did.
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

/* Returns whether operations have become faster since the window last grew. */
static inline bool mmc_window_is_faster(const struct mmc_window *window,
					const struct mmc_window_sample *sample)
{
	uint64_t before = window->grown_rate_bytes_per_s;

	return sample->rate_bytes_per_s >
	       before + before / MMC_WINDOW_FASTER_PART;
}

/*
 * Notes what an operation lost while the window was widened. If that was more than
 * hardly any, a queue may have overflowed, and the window is not widened as far again.
 */
static inline void
mmc_window_check_widening(struct mmc_window *window,
			  const struct mmc_window_sample *sample)
{
	if (sample->nlost <= sample->nchunks / MMC_WINDOW_HARDLY_PART)
		return;
	window->lossy_widening = window->widening;
	window->widening = 0;
}

/*
 * Widens the window after an operation of `total_bytes`, with the window on which all ranks
 * had agreed. A window that did not limit the operation, or that other ranks or receive
 * buffers kept smaller than this rank's, is not widened. Returns whether it was.
 */
static inline bool mmc_window_widen(struct mmc_window *window,
				    uint32_t agreed_bytes, uint64_t total_bytes)
{
	uint32_t next = window->widening + 1;

	if (window->bytes == 0 || next > MMC_WINDOW_WIDENING_MAX ||
	    next == window->lossy_widening ||
	    agreed_bytes < mmc_window_bytes(window) ||
	    agreed_bytes >= total_bytes)
		return false;
	window->widening = next;
	return true;
}

/*
 * Widens the window, as mmc_window_widen() does, or narrows it, after an operation for
 * `wait_percent` of whose time this rank waited for a processor.
 */
static inline void mmc_window_note_wait(struct mmc_window *window,
					uint32_t agreed_bytes,
					uint64_t total_bytes,
					uint32_t wait_percent)
{
	if (wait_percent < MMC_WINDOW_NARROW_PERCENT && window->widening > 0)
		window->widening--;
	else if (wait_percent >= MMC_WINDOW_WIDEN_PERCENT)
		mmc_window_widen(window, agreed_bytes, total_bytes);
}

/*
 * Adds an operation to the sample, and adapts the window once the sample is large
 * enough:
 *
 * When several receivers lose the same chunks, a queue on the way overflows, and the
 * window is halved. When loss follows growth, the window steps back, and stays there
 * for a time. Beyond MMC_WINDOW_BYTES it grows only as long as the rate does, too.
 *
 * A little loss without growth is not the window's doing. Up to MMC_WINDOW_BYTES,
 * however, a queue may be the cause that others fill as well, so the window is then
 * lowered to MMC_WINDOW_SHARED_BYTES to leave them room.
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
	bool many_lost;

	window->nchunks += sample->nchunks;
	window->nlost += sample->nlost;
	window->nshared += sample->nshared;
	if (window->bytes == 0 || window->nchunks < MMC_WINDOW_SAMPLE_CHUNKS)
		return;
	many_lost = window->nlost > window->nchunks / MMC_WINDOW_HARDLY_PART;
	window->grew = false;
	if (window->nshared > window->nchunks / MMC_WINDOW_OVERFLOW_PART) {
		next_bytes = now_bytes / 2;
		mmc_window_bound(window, now_bytes - now_bytes / 4, grew);
	} else if (may_share && window->nlost > 0) {
		next_bytes = MMC_WINDOW_SHARED_BYTES;
		mmc_window_bound(window, next_bytes, grew);
	} else if (grew && many_lost && now_bytes > 2 * step_bytes) {
		next_bytes = now_bytes - 2 * step_bytes;
		mmc_window_bound(window, next_bytes, grew);
	} else if (grew && now_bytes > MMC_WINDOW_BYTES &&
		   !mmc_window_is_faster(window, sample)) {
		window->ceiling_bytes = (uint32_t)now_bytes;
		window->patience = UINT32_MAX;
	} else if (!many_lost) {
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

/* Learns from an operation; if the window was widened, only whether that is too wide. */
static inline void mmc_window_learn(struct mmc_window *window,
				    const struct mmc_window_sample *sample)
{
	if (window->widening > 0)
		mmc_window_check_widening(window, sample);
	else
		mmc_window_adapt(window, sample);
}

#endif
