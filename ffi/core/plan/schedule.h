/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who multicasts after whom. M chains run side by side; in a chain the senders
 * take turns, one after the other. Sender s sits in chain s mod M at turn s / M,
 * so any M up to the number of senders will do and need not divide it. A chain's
 * position counts the chunks of its senders in the order of their turns. Ranks
 * with empty blocks take no turn.
 */
#ifndef MMC_CORE_PLAN_SCHEDULE_H
#define MMC_CORE_PLAN_SCHEDULE_H

#include "core/plan/layout.h"

struct mmc_schedule {
	struct mmc_layout layout;
	const uint32_t *starts; /* [nsenders] in their chains, if uneven */
	uint32_t nchains;	/* M: parallel roots */
	uint32_t window_chunks; /* what each active sender may have in flight */
	uint32_t batch_chunks;	/* what it sends in one go */
};

/* In place of a number of chains: chosen from the agreed window. */
#define MMC_CHAINS_AUTO 0

/* The datagrams of one batch: the fewest worth a system call, and the most. */
#define MMC_BATCH_CHUNKS_MIN 4
#define MMC_BATCH_CHUNKS_MAX 20

/* The most where a transport takes more at a time: see mmc_schedule_widen(). */
#define MMC_BATCH_CHUNKS_WIDE 64

/* The memory for a layout's turns, in bytes; 0 where formulas do. */
size_t mmc_schedule_bytes(const struct mmc_layout *layout);

/*
 * Plans the turns for blocks laid out by `layout` when every receiver buffers
 * `window_bytes`, and `source_bytes` of a single sender. With `nchains` MMC_CHAINS_AUTO all send at once as long as the
 * window holds two batches of each that a rank hears, else as many as it holds
 * two batches of, but at least two: fewer would idle a sender's own downlink.
 * The result depends on nothing but the
 * arguments, equal on every rank. `memory`, mmc_schedule_bytes() long, must
 * outlive the schedule and its copies.
 */
void mmc_schedule_init(struct mmc_schedule *schedule, uint8_t *memory,
		       const struct mmc_layout *layout, uint32_t nchains,
		       uint32_t window_bytes, uint32_t source_bytes);

/* Has batches of up to `batch_chunks`, at most MMC_BATCH_CHUNKS_WIDE. */
static inline void mmc_schedule_widen(struct mmc_schedule *schedule,
				      uint32_t batch_chunks)
{
	uint32_t half = schedule->window_chunks / 2;

	batch_chunks = batch_chunks < half ? batch_chunks : half;
	if (batch_chunks > schedule->batch_chunks)
		schedule->batch_chunks = batch_chunks;
}

/* The chain of the sender with `block`; one that sends nothing may ask too. */
static inline uint32_t mmc_schedule_chain(const struct mmc_schedule *schedule,
					  const struct mmc_block *block)
{
	return block->number % schedule->nchains;
}

/* The position in its chain of the first chunk of `block`, likewise. */
static inline uint32_t mmc_schedule_start(const struct mmc_schedule *schedule,
					  const struct mmc_block *block)
{
	if (schedule->starts != NULL)
		return schedule->starts[block->number];
	return block->number / schedule->nchains *
	       schedule->layout.block_chunks;
}

/* The turn in its chain of the sender with `block`, likewise. */
static inline uint32_t mmc_schedule_turn(const struct mmc_schedule *schedule,
					 const struct mmc_block *block)
{
	return block->number / schedule->nchains;
}

/* The number of senders of `chain`, which is below nchains. */
static inline uint32_t mmc_schedule_turns(const struct mmc_schedule *schedule,
					  uint32_t chain)
{
	return (schedule->layout.nsenders - chain + schedule->nchains - 1) /
	       schedule->nchains;
}

/* The chunks of all senders of `chain`, likewise. */
uint32_t mmc_schedule_length(const struct mmc_schedule *schedule,
			     uint32_t chain);

/* The rank whose chunk is at `position`, below the length, of `chain`. */
uint32_t mmc_schedule_rank(const struct mmc_schedule *schedule, uint32_t chain,
			   uint32_t position);

#endif
