/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/lease.h"

#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"
#include "support/states.h"

/* A lease takes this long or so many round trips, whichever is longer. */
#define LEASE_MIN_NS (50 * MMC_MS_NS)
#define LEASE_ROUND_TRIPS 32

static const struct mmc_transition transitions[] = {
#define LEASE_ROW(state, event, next)                                          \
	{ MMC_LEASE_##state, MMC_LEASE_##event, MMC_LEASE_##next },
	MMC_LEASE_TABLE(LEASE_ROW)
#undef LEASE_ROW
};

static void step(struct mmc_lease *lease, enum mmc_lease_event event)
{
	unsigned next;

	MMC_ASSERT(mmc_transition_find(
		transitions, sizeof(transitions) / sizeof(*transitions),
		lease->state, event, &next));
	lease->state = (enum mmc_lease_state)next;
}

size_t mmc_lease_bytes(uint32_t nchunks)
{
	return mmc_part_bytes(mmc_bitmap_bytes(nchunks));
}

void mmc_lease_init(struct mmc_lease *lease, uint8_t *memory, uint32_t nchunks)
{
	*lease = (struct mmc_lease){ .ends_ns = MMC_NEVER_NS };
	mmc_bitmap_init(&lease->overdue,
			mmc_part_take(&memory, mmc_bitmap_bytes(nchunks)),
			nchunks);
}

/* Begins a lease, which is long enough for chunks to come a part of the ring's way. */
static void begin(struct mmc_lease *lease, uint64_t now_ns, uint64_t srtt_ns)
{
	step(lease, MMC_LEASE_WANTED);
	lease->ends_ns =
		now_ns + mmc_max_u64(LEASE_MIN_NS, LEASE_ROUND_TRIPS * srtt_ns);
}

void mmc_lease_want(struct mmc_lease *lease, uint64_t now_ns, uint64_t srtt_ns)
{
	if (lease->state == MMC_LEASE_NONE)
		begin(lease, now_ns, srtt_ns);
}

bool mmc_lease_expire(struct mmc_lease *lease, uint64_t now_ns)
{
	if (now_ns < lease->ends_ns)
		return false;
	step(lease, MMC_LEASE_EXPIRED);
	lease->ends_ns = MMC_NEVER_NS;
	lease->next_chunk = 0;
	return true;
}

/*
 * Writes a NAK for the owner of the next overdue chunk, with the overdue runs of that
 * owner's block, and moves `next_chunk` behind them. It has no runs if nothing is
 * overdue.
 */
static void collect(struct mmc_lease *lease, const struct mmc_layout *layout,
		    struct mmc_nak *nak)
{
	const struct mmc_bitmap *overdue = &lease->overdue;
	struct mmc_run next =
		mmc_bitmap_next_set(overdue, lease->next_chunk, overdue->nbits);
	struct mmc_block block;
	uint32_t end;

	nak->nruns = 0;
	lease->next_chunk = next.first;
	if (next.count == 0)
		return;
	nak->peer = mmc_layout_owner(layout, next.first);
	block = mmc_layout_block(layout, nak->peer);
	end = block.first + block.nchunks;
	while (nak->nruns < MMC_RUNS_MAX && lease->next_chunk < end) {
		next = mmc_bitmap_next_set(overdue, lease->next_chunk, end);
		lease->next_chunk = next.first + next.count;
		if (next.count > 0)
			nak->runs[nak->nruns++] = next;
	}
}

bool mmc_lease_ask(struct mmc_lease *lease, const struct mmc_layout *layout,
		   uint32_t left, struct mmc_nak *nak)
{
	if (!mmc_lease_has_ended(lease))
		return false;
	collect(lease, layout, nak);
	if (nak->nruns == 0)
		return false;
	nak->direct = lease->vain || nak->peer == left;
	step(lease, MMC_LEASE_ASKED);
	return true;
}

void mmc_lease_renew(struct mmc_lease *lease, const struct mmc_bitmap *wanted,
		     uint64_t now_ns, uint64_t srtt_ns)
{
	const struct mmc_run all = { .count = wanted->nbits };

	mmc_bitmap_copy(&lease->overdue, wanted);
	lease->vain = lease->state == MMC_LEASE_ASKING;
	if (mmc_bitmap_count_run(wanted, all) > 0)
		begin(lease, now_ns, srtt_ns);
	else
		step(lease, MMC_LEASE_FETCHED);
}
