/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans the order in which senders multicast. M chains run side by side; in a chain the
 * senders take turns, one after the other. Sender s has turn s / M of chain s mod M, so
 * any M up to the number of senders will do and need not divide it. A chain's position
 * counts the chunks of its senders in the order of their turns. Ranks with empty blocks
 * take no turn.
 */
#ifndef MMC_CORE_PLAN_SCHEDULE_H
#define MMC_CORE_PLAN_SCHEDULE_H

#include "core/plan/layout.h"

struct mmc_schedule {
	struct mmc_layout layout;
	/* [nsenders] The first position of each sender in its chain, if uneven. */
	const uint32_t *starts;
	uint32_t nchains; /* M: chains side by side */
	/* The chunks that each active sender may have in flight. */
	uint32_t window_chunks;
	uint32_t batch_chunks; /* chunks sent in one go */
};

/* Stands in place of a number of chains: choose it from the agreed window. */
#define MMC_CHAINS_AUTO 0

/* The datagrams of one batch: the fewest worth a system call, and the most. */
#define MMC_BATCH_CHUNKS_MIN 4
#define MMC_BATCH_CHUNKS_MAX 20

/* The most datagrams where a transport takes more: see mmc_schedule_widen(). */
#define MMC_BATCH_CHUNKS_WIDE 64

/* Returns the bytes of memory for a layout's turns; 0 where formulas do. */
size_t mmc_schedule_bytes(const struct mmc_layout *layout);

/*
 * Plans the turns for blocks laid out by `layout` when every receiver buffers
 * `window_bytes`, and `source_bytes` of a single sender. With `nchains` MMC_CHAINS_AUTO
 * all senders send at once as long as the window holds two batches of each that a rank
 * hears; otherwise there are as many chains as it holds two batches of, but at least
 * two: fewer would idle a sender's own downlink. The result depends only on the
 * arguments, which are equal on every rank. `memory`, mmc_schedule_bytes() long, must
 * outlive the schedule and its copies.
 */
void mmc_schedule_init(struct mmc_schedule *schedule, uint8_t *memory,
		       const struct mmc_layout *layout, uint32_t nchains,
		       uint32_t window_bytes, uint32_t source_bytes);

/*
 * Raises the batch to `batch_chunks`, which is at most MMC_BATCH_CHUNKS_WIDE, but not
 * beyond half a sender's window.
 */
static inline void mmc_schedule_widen(struct mmc_schedule *schedule,
				      uint32_t batch_chunks)
{
	uint32_t half = schedule->window_chunks / 2;

	batch_chunks = batch_chunks < half ? batch_chunks : half;
	if (batch_chunks > schedule->batch_chunks)
		schedule->batch_chunks = batch_chunks;
}

/* Returns the chain of the rank with `block`, also if it sends nothing. */
static inline uint32_t mmc_schedule_chain(const struct mmc_schedule *schedule,
					  const struct mmc_block *block)
{
	return block->number % schedule->nchains;
}

/*
 * Returns the position of the first chunk of `block` in its chain, also if it has none.
 */
static inline uint32_t mmc_schedule_start(const struct mmc_schedule *schedule,
					  const struct mmc_block *block)
{
	if (schedule->starts != NULL)
		return schedule->starts[block->number];
	return block->number / schedule->nchains *
	       schedule->layout.block_chunks;
}

/* Returns the turn in its chain of the rank with `block`, also if it sends nothing. */
static inline uint32_t mmc_schedule_turn(const struct mmc_schedule *schedule,
					 const struct mmc_block *block)
{
	return block->number / schedule->nchains;
}

/* Returns the number of senders of `chain`, which is below nchains. */
static inline uint32_t mmc_schedule_turns(const struct mmc_schedule *schedule,
					  uint32_t chain)
{
	return (schedule->layout.nsenders - chain + schedule->nchains - 1) /
	       schedule->nchains;
}

/* Returns the number of chunks of all senders of `chain`, which is below nchains. */
uint32_t mmc_schedule_length(const struct mmc_schedule *schedule,
			     uint32_t chain);

/*
 * Returns the rank whose chunk is at `position` of `chain`, which is below its length.
 */
uint32_t mmc_schedule_rank(const struct mmc_schedule *schedule, uint32_t chain,
			   uint32_t position);

#endif
