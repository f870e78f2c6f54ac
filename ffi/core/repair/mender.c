/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/mender.h"

#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"

_Static_assert(MMC_MENDER_SLOTS <= UINT8_MAX, "the number of a slot is a byte");

size_t mmc_mender_bytes(uint32_t nchunks)
{
	return mmc_part_bytes(sizeof(struct mmc_mender)) +
	       mmc_part_bytes(mmc_bitmap_bytes(nchunks));
}

struct mmc_mender *mmc_mender_init(uint8_t *memory,
				   const struct mmc_layout *layout,
				   const struct mmc_bitmap *claimed,
				   const struct mmc_bitmap *present)
{
	struct mmc_mender *mender =
		mmc_part_take(&memory, sizeof(struct mmc_mender));

	*mender = (struct mmc_mender){
		.layout = layout,
		.claimed = claimed,
		.present = present,
		.nslots = mmc_mender_slots(layout->nchunks),
	};
	mmc_bitmap_init(&mender->spared, (uint64_t *)(void *)memory,
			layout->nchunks);
	return mender;
}

/* ---- groups -------------------------------------------------------------- */

/* A group, with its chunks counted from the operation's first. */
static struct mmc_group group_of(const struct mmc_mender *mender,
				 const struct mmc_block *block, uint32_t number)
{
	const struct mmc_run chunks = { block->first, block->nchunks };

	return mmc_grouping_get_in(&mender->grouping, chunks, number);
}

/* Returns how many chunks of a group `map` does not have. */
static uint32_t count_clear(const struct mmc_bitmap *map,
			    const struct mmc_group *group)
{
	uint32_t nclear = 0;

	for (uint32_t i = 0; i < group->ndata; i++)
		nclear +=
			!mmc_bitmap_test(map, group->first + i * group->stride);
	return nclear;
}

static bool is_of(const struct mmc_slot *slot, struct mmc_parity parity)
{
	return slot->state != MMC_SLOT_FREE && slot->owner == parity.owner &&
	       slot->group == parity.group;
}

/* Returns how many parity chunks of a group are kept that are not early. */
static uint32_t count_held(const struct mmc_mender *mender,
			   struct mmc_parity parity)
{
	uint32_t nheld = 0;

	for (uint32_t i = 0; i < mender->nslots; i++)
		nheld += mender->slots[i].state != MMC_SLOT_EARLY &&
			 is_of(&mender->slots[i], parity);
	return nheld;
}

static void free_slot(struct mmc_mender *mender, struct mmc_slot *slot)
{
	slot->state = MMC_SLOT_FREE;
	mender->nheld--;
}

/* Frees the slots of a group, but for those in use. */
static void drop(struct mmc_mender *mender, struct mmc_parity parity)
{
	for (uint32_t i = 0; i < mender->nslots; i++)
		if (is_of(&mender->slots[i], parity) &&
		    mender->slots[i].state == MMC_SLOT_HELD)
			free_slot(mender, &mender->slots[i]);
}

/* ---- what arrives -------------------------------------------------------- */

/* Returns whether a block of `nchunks` may have a parity chunk of these numbers. */
static bool has_numbers(const struct mmc_grouping *grouping, uint32_t nchunks,
			struct mmc_parity parity)
{
	return parity.row < mmc_grouping_rows(grouping) &&
	       parity.group < mmc_grouping_count(grouping, nchunks);
}

/*
 * Writes the group of a parity chunk. Returns false if there is no such group, or if its
 * chunks are not as long.
 */
static bool find_group(const struct mmc_mender *mender,
		       struct mmc_parity parity, size_t payload_bytes,
		       struct mmc_group *group)
{
	const struct mmc_block block =
		mmc_layout_block(mender->layout, parity.owner);

	if (!has_numbers(&mender->grouping, block.nchunks, parity))
		return false;
	*group = group_of(mender, &block, parity.group);
	return payload_bytes ==
	       mmc_layout_block_payload(mender->layout, &block,
					group->first - block.first);
}

/* Spares one more chunk of a group, if any is missing that is not. */
static void spare(struct mmc_mender *mender, const struct mmc_group *group)
{
	for (uint32_t i = group->ndata; i > 0; i--) {
		uint32_t chunk = group->first + (i - 1) * group->stride;

		if (!mmc_bitmap_test(mender->claimed, chunk) &&
		    !mmc_bitmap_test_and_set(&mender->spared, chunk))
			return;
	}
}

/* Returns a free slot, or `nslots` if there is none. */
static uint32_t find_free(const struct mmc_mender *mender)
{
	uint32_t i = 0;

	while (i < mender->nslots && mender->slots[i].state != MMC_SLOT_FREE)
		i++;
	return i;
}

static bool is_kept(const struct mmc_mender *mender, struct mmc_parity parity)
{
	for (uint32_t i = 0; i < mender->nslots; i++)
		if (is_of(&mender->slots[i], parity) &&
		    mender->slots[i].row == parity.row)
			return true;
	return false;
}

/* Returns how many more parity chunks of a group can be of use. */
static uint32_t count_needed(const struct mmc_mender *mender,
			     struct mmc_parity parity,
			     const struct mmc_group *group)
{
	uint32_t nmissing = count_clear(mender->claimed, group);

	return nmissing - mmc_min_u32(nmissing, count_held(mender, parity));
}

/* Takes a free slot for an early parity chunk; returns its number, or MMC_UNKEPT_FULL. */
static int occupy(struct mmc_mender *mender, struct mmc_parity parity,
		  size_t payload_bytes)
{
	uint32_t slot = find_free(mender);

	if (slot == mender->nslots)
		return MMC_UNKEPT_FULL;
	mender->slots[slot] = (struct mmc_slot){
		.owner = parity.owner,
		.group = parity.group,
		.row = (uint8_t)parity.row,
		.state = MMC_SLOT_EARLY,
		.payload_bytes = (uint32_t)payload_bytes,
	};
	mender->nheld++;
	return (int)slot;
}

/*
 * Holds a parity chunk of a group that needs `needed_chunks`, and spares a missing chunk
 * for it.
 */
static void hold(struct mmc_mender *mender, struct mmc_slot *slot,
		 const struct mmc_group *group, uint32_t needed_chunks)
{
	slot->state = MMC_SLOT_HELD;
	mender->ready |= needed_chunks == 1;
	spare(mender, group);
}

int mmc_mender_keep(struct mmc_mender *mender, struct mmc_parity parity,
		    size_t payload_bytes)
{
	struct mmc_group group;
	uint32_t needed_chunks;
	int slot;

	if (!find_group(mender, parity, payload_bytes, &group))
		return MMC_UNKEPT_FOREIGN;
	needed_chunks = count_needed(mender, parity, &group);
	if (needed_chunks == 0 || is_kept(mender, parity))
		return MMC_UNKEPT_USELESS;
	slot = occupy(mender, parity, payload_bytes);
	if (slot >= 0)
		hold(mender, &mender->slots[slot], &group, needed_chunks);
	return slot;
}

int mmc_mender_keep_early(struct mmc_mender *mender, uint32_t data_chunks,
			  struct mmc_parity parity, size_t payload_bytes)
{
	const struct mmc_grouping grouping = { .data_chunks = data_chunks };
	const struct mmc_block block =
		mmc_layout_block(mender->layout, parity.owner);

	if (!has_numbers(&grouping, block.nchunks, parity) ||
	    payload_bytes > mmc_layout_block_payload(mender->layout, &block, 0))
		return MMC_UNKEPT_FOREIGN;
	if (is_kept(mender, parity))
		return MMC_UNKEPT_USELESS;
	return occupy(mender, parity, payload_bytes);
}

bool mmc_mender_judge(struct mmc_mender *mender, uint32_t slot,
		      struct mmc_parity *parity)
{
	struct mmc_slot *early = &mender->slots[slot];
	struct mmc_group group;
	uint32_t needed_chunks = 0;
	bool belongs;

	if (early->state != MMC_SLOT_EARLY)
		return false;
	*parity = (struct mmc_parity){ .owner = early->owner,
				       .group = early->group,
				       .row = early->row };
	belongs = find_group(mender, *parity, early->payload_bytes, &group);
	if (belongs)
		needed_chunks = count_needed(mender, *parity, &group);
	if (needed_chunks > 0)
		hold(mender, early, &group, needed_chunks);
	else
		free_slot(mender, early);
	return belongs;
}

void mmc_mender_placed(struct mmc_mender *mender, struct mmc_run run)
{
	for (uint32_t i = 0; i < run.count && !mender->ready; i++) {
		struct mmc_parity parity = {
			.owner =
				mmc_layout_owner(mender->layout, run.first + i),
		};
		const struct mmc_block block =
			mmc_layout_block(mender->layout, parity.owner);

		parity.group = mmc_grouping_find(&mender->grouping,
						 block.nchunks,
						 run.first + i - block.first);
		mender->ready = count_held(mender, parity) > 0;
	}
}

/* ---- mending ------------------------------------------------------------- */

/*
 * Puts the parity of a group to use if it suffices and all other chunks are present.
 * Returns whether it does. If nothing is missing any more, the parity is dropped.
 */
static bool begin(struct mmc_mender *mender, struct mmc_parity parity)
{
	const struct mmc_block block =
		mmc_layout_block(mender->layout, parity.owner);
	const struct mmc_group group = group_of(mender, &block, parity.group);
	uint32_t nmissing = count_clear(mender->claimed, &group);
	uint32_t nlacking = nmissing;

	if (nmissing > 0 && (count_held(mender, parity) < nmissing ||
			     count_clear(mender->present, &group) > nmissing))
		return false;
	for (uint32_t i = 0; i < mender->nslots && nlacking > 0; i++)
		if (is_of(&mender->slots[i], parity)) {
			mender->slots[i].state = MMC_SLOT_MENDING;
			nlacking--;
		}
	drop(mender, parity);
	return nmissing > 0;
}

bool mmc_mender_next(struct mmc_mender *mender, struct mmc_parity *parity)
{
	if (!mender->ready)
		return false;
	for (uint32_t i = 0; i < mender->nslots; i++) {
		const struct mmc_slot *slot = &mender->slots[i];

		if (slot->state != MMC_SLOT_HELD)
			continue;
		*parity = (struct mmc_parity){ .owner = slot->owner,
					       .group = slot->group };
		if (begin(mender, *parity))
			return true;
	}
	mender->ready = false;
	return false;
}

void mmc_mender_describe(const struct mmc_mender *mender,
			 struct mmc_parity parity, struct mmc_mend *mend)
{
	const struct mmc_block block =
		mmc_layout_block(mender->layout, parity.owner);
	const struct mmc_group group = group_of(mender, &block, parity.group);
	uint32_t last = group.first + (group.ndata - 1) * group.stride;
	uint32_t nparity = 0;

	mend->first = group.first;
	mend->stride = group.stride;
	mend->ndata = group.ndata;
	mend->nlost = 0;
	mend->last_bytes = mmc_layout_block_payload(mender->layout, &block,
						    last - block.first);
	for (uint32_t i = 0; i < group.ndata; i++)
		if (!mmc_bitmap_test(mender->present,
				     group.first + i * group.stride))
			mend->columns[mend->nlost++] = (uint8_t)i;
	for (uint32_t i = 0; i < mender->nslots; i++) {
		const struct mmc_slot *slot = &mender->slots[i];

		if (!is_of(slot, parity) || slot->state != MMC_SLOT_MENDING)
			continue;
		mend->rows[nparity] = slot->row;
		mend->slots[nparity++] = (uint8_t)i;
	}
	MMC_ASSERT(nparity == mend->nlost);
}

void mmc_mender_end(struct mmc_mender *mender, struct mmc_parity parity)
{
	for (uint32_t i = 0; i < mender->nslots; i++)
		if (is_of(&mender->slots[i], parity))
			free_slot(mender, &mender->slots[i]);
}
