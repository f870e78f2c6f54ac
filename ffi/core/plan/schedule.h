/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans the order in which senders multicast. M chains run side by side; in a chain the
 * senders take turns, one after the other. Sender s has turn s / M of chain s mod M. M
 * may be any number up to that of the senders, and need not divide it. Positions number
 * the chunks of a chain, in the order of its senders' turns. Ranks with empty blocks
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
	uint32_t batch_chunks; /* the chunks that a sender sends in one go */
};

/* In place of a number of chains: it is to be chosen from the agreed window. */
#define MMC_CHAINS_AUTO 0

/* The fewest datagrams in a batch that are worth a system call, and the most. */
#define MMC_BATCH_CHUNKS_MIN 4
#define MMC_BATCH_CHUNKS_MAX 20

/* The most in a batch that a transport or a fast path asks for. */
#define MMC_BATCH_CHUNKS_WIDE 64

/* Returns the bytes of memory that a schedule takes; 0 unless blocks are uneven. */
size_t mmc_schedule_bytes(const struct mmc_layout *layout);

/*
 * Plans the turns for blocks laid out by `layout`, given that every receiver can buffer
 * `window_bytes`, of which at most `source_bytes` of a single sender.
 *
 * With MMC_CHAINS_AUTO for `nchains`, all senders send at once as long as the window
 * holds two batches of each sender that a rank hears. Otherwise there are as many
 * chains as the window holds two batches of, but at least two: with one chain, the link
 * to the sending rank would be idle. The result depends only on the arguments, which
 * are equal on all ranks.
 *
 * `memory`, mmc_schedule_bytes() long, must outlive the schedule and its copies.
 */
void mmc_schedule_init(struct mmc_schedule *schedule, uint8_t *memory,
		       const struct mmc_layout *layout, uint32_t nchains,
		       uint32_t window_bytes, uint32_t source_bytes);

/*
 * Sets the batch to `batch_chunks`, from 1 to MMC_BATCH_CHUNKS_WIDE, or to half a
 * sender's window if that is less.
 */
static inline void mmc_schedule_set_batch(struct mmc_schedule *schedule,
					  uint32_t batch_chunks)
{
	uint32_t half = schedule->window_chunks / 2;

	schedule->batch_chunks = batch_chunks < half ? batch_chunks : half;
}

/* Returns the chain of the rank with `block`; chain 0 if the block is empty. */
static inline uint32_t mmc_schedule_chain(const struct mmc_schedule *schedule,
					  const struct mmc_block *block)
{
	return block->number % schedule->nchains;
}

/*
 * Returns the position of the first chunk of `block` in its chain; 0 if the block is
 * empty.
 */
static inline uint32_t mmc_schedule_start(const struct mmc_schedule *schedule,
					  const struct mmc_block *block)
{
	if (schedule->starts != NULL)
		return schedule->starts[block->number];
	return block->number / schedule->nchains *
	       schedule->layout.block_chunks;
}

/* Returns the turn of the rank with `block` in its chain; turn 0 if it is empty. */
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
 * Returns the rank whose chunk is at `position` of `chain`. The position must be below
 * mmc_schedule_length().
 */
uint32_t mmc_schedule_rank(const struct mmc_schedule *schedule, uint32_t chain,
			   uint32_t position);

#endif
