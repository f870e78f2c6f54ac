/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/plan/grouping.h"

/* A span of a block: its first chunk, the one behind its last, and its groups. */
struct span {
	uint32_t begin;
	uint32_t end;
	uint32_t ngroups;
};

static struct span span_at(const struct mmc_grouping *grouping,
			   uint32_t nchunks, uint32_t begin)
{
	uint32_t end = mmc_grouping_end(grouping, nchunks, begin);

	return (struct span){
		.begin = begin,
		.end = end,
		.ngroups = mmc_grouping_count(grouping, end - begin),
	};
}

uint32_t mmc_grouping_find(const struct mmc_grouping *grouping,
			   uint32_t nchunks, uint32_t place)
{
	uint32_t number = place / mmc_grouping_span(grouping);
	const struct span span = span_at(grouping, nchunks,
					 number * mmc_grouping_span(grouping));

	return number * grouping->depth + (place - span.begin) % span.ngroups;
}

struct mmc_group mmc_grouping_get(const struct mmc_grouping *grouping,
				  uint32_t nchunks, uint32_t group)
{
	uint32_t number = group / grouping->depth;
	uint32_t within = group % grouping->depth;
	const struct span span = span_at(grouping, nchunks,
					 number * mmc_grouping_span(grouping));
	uint32_t rest = span.end - span.begin - within;
	struct mmc_group found = {
		.first = span.begin + within,
		.stride = span.ngroups,
		.ndata = rest / span.ngroups + (rest % span.ngroups > 0),
		.end = span.end,
		.last = within + 1 == span.ngroups,
	};

	/* A short group has as large a share of parity, but at least one chunk. */
	found.nparity = (grouping->parity_chunks * found.ndata +
			 grouping->data_chunks - 1) /
			grouping->data_chunks;
	return found;
}
