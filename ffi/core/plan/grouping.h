/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Divides the chunks of a block into the groups of a code: a group has k data chunks and
 * some parity chunks, of which any k suffice to know all data.
 *
 * The groups of a *span*, which is `depth` groups long, are interleaved, so that a burst
 * of losses is spread over them. The last span of a block may have fewer chunks: it has
 * as few groups as can hold them, all of about the same size.
 */
#ifndef MMC_CORE_PLAN_GROUPING_H
#define MMC_CORE_PLAN_GROUPING_H

#include "core/types.h"

/* The most chunks of a group, its data and all rows of parity. */
#define MMC_GROUP_CHUNKS_MAX 255

/* The most groups of a block: an index has 21 bits for them on the wire (wire/header.h). */
#define MMC_GROUPS_MAX (UINT32_C(1) << 21)

/* The most groups of a span. */
#define MMC_GROUPING_DEPTH_MAX 8

struct mmc_grouping {
	uint32_t data_chunks; /* k, of a full group; 0: there are no groups */
	/* The parity chunks that are sent unasked with a full group. */
	uint32_t parity_chunks;
	uint32_t depth; /* the groups of a full span */
};

/* A group of a block, whose chunks are counted from the block's first. */
struct mmc_group {
	uint32_t first;	  /* its first data chunk */
	uint32_t stride;  /* from one of its data chunks to the next */
	uint32_t ndata;	  /* how many it has */
	uint32_t nparity; /* how many parity chunks are sent unasked */
	uint32_t end;	  /* where its span ends */
	bool last;	  /* it is the last group of its span */
};

/*
 * Chooses the depth: the parity of a span fits into half of a sender's window, since it
 * goes out in one go.
 */
static inline void mmc_grouping_set_depth(struct mmc_grouping *grouping,
					  uint32_t window_chunks)
{
	uint32_t depth = 1;

	if (grouping->parity_chunks > 0)
		depth = window_chunks / 2 / grouping->parity_chunks;
	if (depth > MMC_GROUPING_DEPTH_MAX)
		depth = MMC_GROUPING_DEPTH_MAX;
	grouping->depth = depth > 0 ? depth : 1;
}

/* Returns the share of a window that data has, where parity goes by the same way. */
static inline uint32_t mmc_grouping_window(uint32_t data_chunks,
					   uint32_t parity_chunks,
					   uint32_t window)
{
	return (uint32_t)((uint64_t)window * data_chunks /
			  (data_chunks + parity_chunks));
}

/* Returns the chunks of a full span. */
static inline uint32_t mmc_grouping_span(const struct mmc_grouping *grouping)
{
	return grouping->data_chunks * grouping->depth;
}

/*
 * Returns the number of groups of a block of `nchunks`, or of those of its spans up to the
 * one that ends at chunk `nchunks`.
 */
static inline uint32_t mmc_grouping_count(const struct mmc_grouping *grouping,
					  uint32_t nchunks)
{
	return nchunks / grouping->data_chunks +
	       (nchunks % grouping->data_chunks > 0);
}

/* Returns where the span ends that holds chunk `place` of a block of `nchunks`. */
static inline uint32_t mmc_grouping_end(const struct mmc_grouping *grouping,
					uint32_t nchunks, uint32_t place)
{
	uint32_t span = mmc_grouping_span(grouping);
	uint32_t begin = place - place % span;

	return nchunks - begin > span ? begin + span : nchunks;
}

/* Returns the number of the group that holds chunk `place` of a block of `nchunks`. */
uint32_t mmc_grouping_find(const struct mmc_grouping *grouping,
			   uint32_t nchunks, uint32_t place);

/* Returns a group, below mmc_grouping_count(), of a block of `nchunks`. */
struct mmc_group mmc_grouping_get(const struct mmc_grouping *grouping,
				  uint32_t nchunks, uint32_t group);

/* Returns a group of the block that has the chunks `block`, which count on from there. */
static inline struct mmc_group
mmc_grouping_get_in(const struct mmc_grouping *grouping, struct mmc_run block,
		    uint32_t group)
{
	struct mmc_group found = mmc_grouping_get(grouping, block.count, group);

	found.first += block.first;
	found.end += block.first;
	return found;
}

/* Returns how many rows of parity a group may have. */
static inline uint32_t mmc_grouping_rows(const struct mmc_grouping *grouping)
{
	return MMC_GROUP_CHUNKS_MAX - grouping->data_chunks;
}

#endif
