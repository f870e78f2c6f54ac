/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/flow/watermark.h"

#include "support/bits.h"
#include "support/memory.h"

/*
 * A rank with children passes its minima on when their rises add up to what may be in
 * flight, divided by this.
 */
#define PASSED_ON_PART 16

static uint32_t count_children(uint32_t rank, uint32_t nranks)
{
	uint64_t first = (uint64_t)rank * MMC_WATERMARK_FAN_IN + 1;

	if (first >= nranks)
		return 0;
	return mmc_min_u32(MMC_WATERMARK_FAN_IN, nranks - (uint32_t)first);
}

size_t mmc_watermark_bytes(uint32_t nranks, uint32_t nchains)
{
	/* `own`, `told`, `drained` and `lengths`, and a row for each child. */
	uint32_t nrows = 4 + mmc_min_u32(MMC_WATERMARK_FAN_IN, nranks);

	return nrows * mmc_part_bytes(nchains * sizeof(uint32_t));
}

/*
 * Returns by how much a single chain must advance until a report is due: by three
 * quarters of one sender's window, in case the other senders are idle. Returns 0 if no
 * report is needed, since every chain is shorter than a window.
 */
static uint32_t report_step(const struct mmc_schedule *schedule)
{
	for (uint32_t c = 0; c < schedule->nchains; c++)
		if (mmc_schedule_length(schedule, c) > schedule->window_chunks)
			return mmc_max_u32(
				1,
				(uint32_t)((uint64_t)schedule->window_chunks *
					   3 / 4));
	return 0;
}

/*
 * Returns after how many advances of any chains a report is due: a quarter of the
 * chunks that may be in flight. More reports would cost more than they save.
 */
static uint32_t report_stride(const struct mmc_schedule *schedule)
{
	uint64_t in_flight_chunks =
		(uint64_t)schedule->window_chunks * schedule->nchains;

	return (uint32_t)mmc_max_u64(1, mmc_min_u64(in_flight_chunks / 4,
						    UINT32_MAX));
}

void mmc_watermark_init(struct mmc_watermark *watermark, uint8_t *memory,
			uint32_t rank, const struct mmc_schedule *schedule)
{
	uint32_t nranks = schedule->layout.nranks;
	uint32_t nchildren = count_children(rank, nranks);
	size_t row_bytes = schedule->nchains * sizeof(uint32_t);

	memset(memory, 0, mmc_watermark_bytes(nranks, schedule->nchains));
	*watermark = (struct mmc_watermark){
		.rank = rank,
		.nranks = nranks,
		.nchains = schedule->nchains,
		.nchildren = nchildren,
		.window_chunks = schedule->window_chunks,
		.step_chunks = report_step(schedule),
		.stride_chunks = report_stride(schedule),
		.own = mmc_part_take(&memory, row_bytes),
		.told = mmc_part_take(&memory, row_bytes),
		.drained = mmc_part_take(&memory, row_bytes),
		.lengths = mmc_part_take(&memory, row_bytes),
		.children = mmc_part_take(&memory, nchildren * row_bytes),
	};
	for (uint32_t c = 0; c < watermark->nchains; c++)
		watermark->lengths[c] = mmc_schedule_length(schedule, c);
}

/* Raises each of the `n` numbers in `row` that is below the same one in `positions`. */
static void raise_row(uint32_t *row, const uint32_t *positions, uint32_t n)
{
	for (uint32_t c = 0; c < n; c++)
		row[c] = mmc_max_u32(row[c], positions[c]);
}

bool mmc_watermark_report(struct mmc_watermark *watermark, uint32_t source,
			  const uint32_t *positions, uint32_t npositions)
{
	uint32_t first = watermark->rank * MMC_WATERMARK_FAN_IN + 1;

	if (npositions != watermark->nchains || source < first ||
	    source - first >= watermark->nchildren)
		return false;
	raise_row(watermark->children + (source - first) * watermark->nchains,
		  positions, npositions);
	watermark->moved = true;
	return true;
}

bool mmc_watermark_settle(struct mmc_watermark *watermark, uint32_t source,
			  const uint32_t *positions, uint32_t npositions)
{
	if (npositions != watermark->nchains || source != 0)
		return false;
	raise_row(watermark->drained, positions, npositions);
	return true;
}

uint32_t mmc_watermark_lead(const struct mmc_watermark *watermark,
			    uint32_t chain)
{
	const uint32_t *lengths = watermark->lengths;
	uint64_t drained = watermark->drained[chain];
	uint64_t least = drained;

	for (uint32_t c = 0; c < watermark->nchains; c++) {
		uint64_t there = watermark->drained[c];

		if (there == lengths[c])
			continue;
		if (lengths[c] != lengths[chain])
			there = there * lengths[chain] / lengths[c];
		least = mmc_min_u64(least, there);
	}
	return (uint32_t)(drained - least);
}

/* Returns the least position of `chain` on this rank and those below it. */
static uint32_t subtree_minimum(const struct mmc_watermark *watermark,
				uint32_t chain)
{
	uint32_t minimum = watermark->own[chain];

	for (uint32_t i = 0; i < watermark->nchildren; i++)
		minimum = mmc_min_u32(
			minimum,
			watermark->children[i * watermark->nchains + chain]);
	return minimum;
}

/*
 * Returns whether the minima have risen enough to be told. Leaves hold their reports
 * back already, so a rank above them waits for a small rise only. What may be in flight
 * is that of the chains that have not ended.
 */
static bool is_worth_telling(const struct mmc_watermark *watermark,
			     const uint32_t *positions)
{
	uint64_t advance = 0;
	uint32_t nopen = 0;

	for (uint32_t c = 0; c < watermark->nchains; c++) {
		if (positions[c] > watermark->told[c])
			advance += positions[c] - watermark->told[c];
		nopen += positions[c] < watermark->lengths[c];
	}
	if (watermark->nchildren == 0)
		return advance > 0;
	return advance >
	       (uint64_t)nopen * watermark->window_chunks / PASSED_ON_PART;
}

bool mmc_watermark_take_report(struct mmc_watermark *watermark,
			       uint32_t *positions, uint32_t *peer)
{
	if (!watermark->moved)
		return false;
	watermark->moved = false;
	if (watermark->step_chunks == 0)
		return false;
	for (uint32_t c = 0; c < watermark->nchains; c++)
		positions[c] = subtree_minimum(watermark, c);
	if (!is_worth_telling(watermark, positions))
		return false;
	watermark->nadvances = 0;
	raise_row(watermark->told, positions, watermark->nchains);
	if (watermark->rank == 0)
		raise_row(watermark->drained, positions, watermark->nchains);
	*peer = watermark->rank == 0 ? MMC_PEER_ALL
				     : mmc_watermark_parent(watermark->rank);
	return true;
}
