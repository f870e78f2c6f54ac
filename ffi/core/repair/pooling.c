/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/pooling.h"

#include "support/bits.h"
#include "support/memory.h"

size_t mmc_pooling_bytes(uint32_t nchunks, uint32_t data_chunks,
			 uint32_t nranks)
{
	return mmc_part_bytes(sizeof(struct mmc_pooling)) +
	       mmc_part_bytes(nchunks / data_chunks + 1) +
	       mmc_part_bytes(nranks * sizeof(uint16_t));
}

struct mmc_pooling *mmc_pooling_init(uint8_t *memory, uint32_t nchunks,
				     uint32_t data_chunks, uint32_t nranks)
{
	size_t ngroups = nchunks / data_chunks + 1;
	struct mmc_pooling *pooling =
		mmc_part_take(&memory, sizeof(struct mmc_pooling));

	*pooling = (struct mmc_pooling){
		.rows = mmc_part_take(&memory, ngroups),
	};
	pooling->lacking = (uint16_t *)(void *)memory;
	memset(pooling->rows, 0, ngroups);
	memset(pooling->lacking, 0, nranks * sizeof(uint16_t));
	return pooling;
}

/* Returns the first chunk of a group that is `from` or later; UINT32_MAX for none. */
static uint32_t next_of(const struct mmc_group *group, uint32_t from)
{
	uint32_t i = 0;

	if (from > group->first)
		i = (from - group->first + group->stride - 1) / group->stride;
	return i < group->ndata ? group->first + i * group->stride : UINT32_MAX;
}

/* Returns how many chunks of `run` are of a group. */
static uint32_t count_of(const struct mmc_group *group, struct mmc_run run)
{
	uint32_t first = next_of(group, run.first);
	uint32_t end = mmc_min_u32(
		run.first + run.count,
		group->first + (group->ndata - 1) * group->stride + 1);

	return first < end ? (end - 1 - first) / group->stride + 1 : 0;
}

/*
 * Returns how many parity chunks of a group answer all that was asked for of it; 0 if as few
 * chunks would.
 */
static uint32_t count_rows(struct mmc_pooling *pooling,
			   const struct mmc_naks *naks,
			   const struct mmc_group *group)
{
	uint32_t nchunks = 0;
	uint32_t nrows = 0;

	for (uint32_t i = 0; i < naks->count; i++) {
		const struct mmc_peer_run *nak = &naks->items[i];
		uint32_t count = count_of(group, nak->run);
		uint16_t *lacking = &pooling->lacking[nak->peer];

		nchunks += count;
		*lacking = (uint16_t)(*lacking + count);
		nrows = mmc_max_u32(nrows, *lacking);
	}
	for (uint32_t i = 0; i < naks->count; i++)
		pooling->lacking[naks->items[i].peer] = 0;
	return nrows < nchunks ? nrows : 0;
}

/* Takes the next rows of a group, if there are so many. */
static bool take_rows(struct mmc_pooling *pooling, uint32_t number,
		      const struct mmc_group *group, struct mmc_run *rows)
{
	uint32_t nsent = pooling->rows[number];
	uint32_t nleft = mmc_grouping_rows(&pooling->grouping) -
			 pooling->grouping.parity_chunks - nsent;

	if (rows->count == 0 || rows->count > nleft)
		return false;
	rows->first =
		mmc_max_u32(group->nparity, pooling->grouping.parity_chunks) +
		nsent;
	pooling->rows[number] = (uint8_t)(nsent + rows->count);
	return true;
}

/* Counts as sent all chunks of a group that were asked for. */
static void hand_out(struct mmc_repairer *repairer,
		     const struct mmc_group *group, uint64_t now_ns)
{
	for (uint32_t i = 0; i < group->ndata; i++) {
		const struct mmc_run one = {
			.first = group->first + i * group->stride,
			.count = 1,
		};

		if (mmc_bitmap_test(&repairer->wanted, one.first))
			mmc_repairer_hand_out(repairer, MMC_PEER_ALL, one,
					      now_ns);
	}
}

bool mmc_pooling_next(struct mmc_pooling *pooling,
		      struct mmc_repairer *repairer, uint32_t nrows_max,
		      uint64_t now_ns, uint32_t *group, struct mmc_run *rows)
{
	const struct mmc_run own = repairer->own;
	struct mmc_run asked;

	if (repairer->ndirect_naks > 0 || repairer->naks.count == 0 ||
	    repairer->idle || now_ns < repairer->ready_ns)
		return false;
	/* mmc_repairer_next() would answer this NAK, and so many of its chunks. */
	asked = repairer->naks.items[repairer->naks.count - 1].run;
	asked.count = mmc_min_u32(asked.count, nrows_max);
	for (; asked.count > 0; asked.first++, asked.count--) {
		uint32_t place = asked.first - own.first;
		struct mmc_group found;

		if (place >= own.count)
			return false;
		*group =
			mmc_grouping_find(&pooling->grouping, own.count, place);
		found = mmc_grouping_get_in(&pooling->grouping, own, *group);
		rows->count = mmc_min_u32(nrows_max,
					  count_rows(pooling, &repairer->naks,
						     &found));
		/* To others all that was not sent yet would seem to be lost. */
		if (found.end - own.first > pooling->nsent ||
		    !take_rows(pooling, *group, &found, rows))
			continue;
		hand_out(repairer, &found, now_ns);
		return true;
	}
	return false;
}
