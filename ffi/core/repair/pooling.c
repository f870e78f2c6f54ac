/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/pooling.h"

#include "support/bits.h"
#include "support/memory.h"

size_t mmc_pooling_bytes(uint32_t nchunks, uint32_t data_chunks,
			 uint32_t nranks)
{
	return mmc_part_bytes(sizeof(struct mmc_pooling)) +
	       mmc_part_bytes((nchunks / data_chunks + 1) *
			      sizeof(struct mmc_pooled)) +
	       mmc_part_bytes(nranks * sizeof(uint16_t));
}

struct mmc_pooling *mmc_pooling_init(uint8_t *memory, uint32_t nchunks,
				     uint32_t data_chunks, uint32_t nranks)
{
	size_t ngroups = nchunks / data_chunks + 1;
	struct mmc_pooling *pooling =
		mmc_part_take(&memory, sizeof(struct mmc_pooling));

	*pooling = (struct mmc_pooling){
		.groups = mmc_part_take(&memory,
					ngroups * sizeof(struct mmc_pooled)),
		.answered = MMC_PEER_NONE,
	};
	pooling->lacking = (uint16_t *)(void *)memory;
	memset(pooling->groups, 0, ngroups * sizeof(struct mmc_pooled));
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
 * Returns how many parity chunks answer all NAKs for a group, and writes whether these are
 * from several ranks.
 */
static uint32_t count_rows(struct mmc_pooling *pooling,
			   const struct mmc_naks *naks,
			   const struct mmc_group *group, bool *several)
{
	uint32_t first = MMC_PEER_NONE;
	uint32_t nrows = 0;

	*several = false;
	for (uint32_t i = 0; i < naks->count; i++) {
		const struct mmc_peer_run *nak = &naks->items[i];
		uint32_t count = count_of(group, nak->run);
		uint16_t *lacking = &pooling->lacking[nak->peer];

		*lacking = (uint16_t)(*lacking + count);
		nrows = mmc_max_u32(nrows, *lacking);
		if (count == 0)
			continue;
		*several |= first != MMC_PEER_NONE && first != nak->peer;
		first = nak->peer;
	}
	for (uint32_t i = 0; i < naks->count; i++)
		pooling->lacking[naks->items[i].peer] = 0;
	return nrows;
}

/* Takes the next rows of a group, if there are so many. */
static bool take_rows(const struct mmc_pooling *pooling,
		      struct mmc_pooled *pooled, const struct mmc_group *group,
		      struct mmc_run *rows, uint64_t now_ns)
{
	uint32_t nleft = mmc_grouping_rows(&pooling->grouping) -
			 pooling->grouping.parity_chunks - pooled->nrows;

	if (rows->count > nleft)
		return false;
	if (rows->count > 0)
		pooled->sent_ns = now_ns;
	rows->first =
		mmc_max_u32(group->nparity, pooling->grouping.parity_chunks) +
		pooled->nrows;
	pooled->nrows = (uint8_t)(pooled->nrows + rows->count);
	pooled->nrecent = (uint8_t)(pooled->nrecent + rows->count);
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

/*
 * Returns whether the NAKs for a group, one of which is from `peer`, are to be answered by
 * parity. A rank that asks alone is usually just the first to ask, and other ranks lack other
 * chunks of the group. But if the last answer went to the same rank, that rank may be the only
 * one that loses anything.
 */
static bool is_worth_parity(struct mmc_pooling *pooling,
			    const struct mmc_group *group, uint32_t own_first,
			    uint32_t peer, bool several)
{
	bool alone = !several && (peer == pooling->answered ||
				  pooling->answered == MMC_PEER_NONE);

	/* Parity would make chunks that were not sent yet look lost to other ranks. */
	if (group->end - own_first > pooling->nsent)
		return false;
	pooling->answered = peer;
	return !alone;
}

/*
 * Answers the NAKs for group `number`, one of which is from `peer`, by parity, if that is
 * worth while. Returns whether it did, and writes which rows are to be sent: none if enough are
 * on their way.
 */
static bool answer_group(struct mmc_pooling *pooling,
			 struct mmc_repairer *repairer, uint32_t peer,
			 uint32_t number, uint64_t now_ns, struct mmc_run *rows)
{
	const struct mmc_group group =
		mmc_grouping_get_in(&pooling->grouping, repairer->own, number);
	struct mmc_pooled *pooled = &pooling->groups[number];
	uint32_t nrows_max = rows->count;
	bool several;
	uint32_t nrows = count_rows(pooling, &repairer->naks, &group, &several);

	if (!is_worth_parity(pooling, &group, repairer->own.first, peer,
			     several))
		return false;
	if (now_ns - pooled->sent_ns >= repairer->rest_ns)
		pooled->nrecent = 0;
	rows->count = mmc_min_u32(nrows - mmc_min_u32(nrows, pooled->nrecent),
				  nrows_max);
	if (!take_rows(pooling, pooled, &group, rows, now_ns))
		return false;
	hand_out(repairer, &group, now_ns);
	return true;
}

/*
 * Answers the last NAK by parity, which is the one that mmc_repairer_next() would answer by
 * chunks. Returns whether it did, as answer_group() does.
 */
static bool answer_last(struct mmc_pooling *pooling,
			struct mmc_repairer *repairer, uint32_t nrows_max,
			uint64_t now_ns, uint32_t *group, struct mmc_run *rows)
{
	const struct mmc_run own = repairer->own;
	struct mmc_peer_run asked =
		repairer->naks.items[repairer->naks.count - 1];
	uint32_t nchunks = mmc_min_u32(asked.run.count, nrows_max);

	for (uint32_t i = 0; i < nchunks; i++) {
		uint32_t place = asked.run.first + i - own.first;

		if (place >= own.count)
			return false;
		*group =
			mmc_grouping_find(&pooling->grouping, own.count, place);
		rows->count = nrows_max;
		if (answer_group(pooling, repairer, asked.peer, *group, now_ns,
				 rows))
			return true;
	}
	return false;
}

bool mmc_pooling_next(struct mmc_pooling *pooling,
		      struct mmc_repairer *repairer, uint32_t nrows_max,
		      uint64_t now_ns, uint32_t *group, struct mmc_run *rows)
{
	if (repairer->ndirect_naks > 0 || repairer->idle ||
	    now_ns < repairer->ready_ns)
		return false;
	while (repairer->naks.count > 0 &&
	       answer_last(pooling, repairer, nrows_max, now_ns, group, rows))
		if (rows->count > 0)
			return true;
	return false;
}
