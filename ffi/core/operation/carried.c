/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/carried.h"

#include "core/operation/due.h"
#include "core/plan/rounds.h"
#include "support/bits.h"

/* The least time for blocks to arrive, in which they are not sent again. */
#define LENT_NS (200 * MMC_US_NS)

_Static_assert(MMC_PARTS_MAX < 32,
	       "a word has a bit for each part, and one more");

void mmc_carried_bare(struct mmc_op_config *config, uint64_t *lead)
{
	bool small = config->sole && config->nranks > 1 &&
		     config->block_bytes > 0 &&
		     config->block_bytes <= MMC_BARE_BYTES_MAX &&
		     config->block_bytes <= config->carried_bytes &&
		     config->block_bytes <= config->eager_bytes;

	if (mmc_epoch_leads(config->epoch))
		*lead = small ? config->signature : 0;
	config->may_be_bare = !mmc_epoch_leads(config->epoch) && *lead != 0;
	config->is_bare = config->may_be_bare && small &&
			  config->signature == *lead;
}

/* Returns the blocks that `source` sends along to `target`, both of which are ranks. */
static struct mmc_run carried(const struct mmc_op *op, uint32_t source,
			      uint32_t target)
{
	uint32_t nranks = op->config.nranks;
	unsigned round = mmc_barrier_round(&op->entry, source, target);
	uint32_t count;

	if (round == MMC_ROUNDS_MAX)
		return (struct mmc_run){ 0 };
	if (op->layout.sole)
		return (struct mmc_run){ .first = 0, .count = 1 };
	count = mmc_rounds_blocks(nranks, round);
	return (struct mmc_run){
		.first = (source + 1 + nranks - count) % nranks,
		.count = count,
	};
}

struct mmc_run mmc_op_carried_to(const struct mmc_op *op, uint32_t peer)
{
	unsigned round = mmc_barrier_round(&op->entry, op->config.rank, peer);

	if (op->mode != MMC_OP_CARRIED || op->state > MMC_OP_COPIED ||
	    op->entry.rounds < round || !mmc_op_is_agreed(op))
		return (struct mmc_run){ 0 };
	return carried(op, op->config.rank, peer);
}

/* Returns how many bytes the blocks of `run` have. */
static uint32_t run_bytes(const struct mmc_op *op, struct mmc_run run)
{
	return run.count * (uint32_t)op->layout.block_bytes;
}

/* Returns a bit for each part of the blocks of `run`. */
static uint32_t all_parts(const struct mmc_op *op, struct mmc_run run)
{
	uint32_t nparts =
		(run_bytes(op, run) + MMC_PART_BYTES - 1) / MMC_PART_BYTES;

	return (UINT32_C(1) << nparts) - 1;
}

enum mmc_verdict mmc_op_on_part(struct mmc_op *op, uint32_t source,
				uint32_t first, uint32_t nbytes,
				struct mmc_run *run)
{
	unsigned round = mmc_barrier_round(&op->entry, source, op->config.rank);
	uint32_t all_bytes;

	*run = carried(op, source, op->config.rank);
	all_bytes = run_bytes(op, *run);
	if (op->mode != MMC_OP_CARRIED || !mmc_op_is_agreed(op) ||
	    first >= all_bytes || first % MMC_PART_BYTES != 0 ||
	    nbytes != mmc_min_u32(all_bytes - first, MMC_PART_BYTES))
		return MMC_VERDICT_FOREIGN;
	if (op->state != MMC_OP_ENTRY ||
	    (op->parts.arrived[round] >> first / MMC_PART_BYTES & 1) != 0)
		return MMC_VERDICT_DUPLICATE;
	return MMC_VERDICT_PLACE;
}

/*
 * Takes the chunks of one block. A chunk may have been claimed by what no honest rank
 * sends; it becomes present when that is in its place.
 */
static void take_block(struct mmc_op *op, uint32_t number)
{
	const struct mmc_block block = mmc_layout_block(
		&op->layout, mmc_layout_sender(&op->layout, number));

	for (uint32_t i = 0; i < block.nchunks; i++) {
		const struct mmc_run chunk = {
			.first = block.first + i,
			.count = 1,
		};

		if (mmc_bitmap_test_and_set(&op->claimed, chunk.first))
			continue;
		op->npresent++;
		mmc_bitmap_publish(&op->present, chunk.first);
		if (mmc_config_is_partial(&op->config))
			mmc_landing_add(&op->landing, chunk);
	}
}

void mmc_op_on_carried(struct mmc_op *op, uint32_t source, uint32_t first,
		       uint64_t now_ns)
{
	unsigned round = mmc_barrier_round(&op->entry, source, op->config.rank);
	struct mmc_run run = carried(op, source, op->config.rank);

	op->parts.arrived[round] |= UINT32_C(1) << first / MMC_PART_BYTES;
	mmc_op_mark_advanced(op, now_ns);
	mmc_op_wake(op);
	mmc_op_ask_soon(op, now_ns);
	if (op->parts.arrived[round] != all_parts(op, run))
		return;
	for (uint32_t i = 0; i < run.count; i++)
		take_block(op, (run.first + i) % op->layout.nsenders);
	mmc_barrier_bring(&op->entry, source);
	op->record.entry_rounds = op->entry.rounds;
}

uint32_t mmc_op_missing_part(const struct mmc_op *op, uint32_t source)
{
	unsigned round = mmc_barrier_round(&op->entry, source, op->config.rank);
	uint32_t missing = 0;

	if (op->mode != MMC_OP_CARRIED || op->state != MMC_OP_ENTRY ||
	    round == MMC_ROUNDS_MAX)
		return 0;
	while ((op->parts.arrived[round] >> missing & 1) != 0)
		missing++;
	return missing * MMC_PART_BYTES;
}

void mmc_op_lend(struct mmc_op *op, uint32_t peer, uint64_t now_ns)
{
	op->parts.lent_peer = peer;
	op->parts.lent_until_ns =
		now_ns + mmc_max_u64(LENT_NS, 2 * op->config.path->srtt_ns);
}

bool mmc_op_has_lent(const struct mmc_op *op, uint32_t peer, uint64_t now_ns)
{
	return now_ns < op->parts.lent_until_ns &&
	       (op->parts.lent_peer == peer ||
		op->parts.lent_peer == MMC_PEER_ALL);
}
