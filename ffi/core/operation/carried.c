/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/carried.h"

#include "core/plan/rounds.h"

void mmc_carried_bare(struct mmc_op_config *config, uint64_t *lead)
{
	bool small = config->sole && config->nranks > 1 &&
		     config->block_bytes > 0 &&
		     config->block_bytes <= config->carried_bytes &&
		     config->block_bytes <= config->chunk_bytes &&
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

enum mmc_verdict mmc_op_on_blocks(struct mmc_op *op, uint32_t source,
				  uint32_t nbytes, struct mmc_run *run)
{
	unsigned round = mmc_barrier_round(&op->entry, source, op->config.rank);

	*run = carried(op, source, op->config.rank);
	if (op->mode != MMC_OP_CARRIED || run->count == 0 ||
	    nbytes != run->count * op->layout.block_bytes)
		return MMC_VERDICT_FOREIGN;
	if (op->state != MMC_OP_ENTRY ||
	    (op->entry.brought >> round & 1) != 0) {
		mmc_count(op->config.counters, MMC_COUNT_RX_DUPLICATE_CHUNKS,
			  run->count);
		return MMC_VERDICT_DUPLICATE;
	}
	return MMC_VERDICT_PLACE;
}

bool mmc_op_take_block(struct mmc_op *op, uint32_t chunk)
{
	if (mmc_bitmap_test_and_set(&op->claimed, chunk))
		return false;
	op->npresent++;
	mmc_bitmap_publish(&op->present, chunk);
	return true;
}

void mmc_op_on_carried(struct mmc_op *op, uint32_t source, uint64_t now_ns)
{
	if (!mmc_barrier_bring(&op->entry, source))
		return;
	op->record.entry_rounds = op->entry.rounds;
	mmc_op_mark_advanced(op);
	mmc_op_ask_soon(op, now_ns);
}
