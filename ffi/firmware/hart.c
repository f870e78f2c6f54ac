/* SPDX-License-Identifier: BSD-3-Clause */
#include "firmware/hart.h"

#include "firmware/machine.h"
#include "firmware/tag.h"
#include "offload/ring.h"

/* A placement's cookie is the chunk, and above it the sender. */
#define COOKIE_SOURCE_SHIFT 32

/* ---- telling ------------------------------------------------------------- */

static void tell(struct mmc_hart *hart, const struct mmc_nic_event *event)
{
	hart->telling[hart->told.nproduced % MMC_HART_EVENTS] = *event;
	mmc_ring_produce(&hart->told);
}

/*
 * Returns whether a run can be told. There must always be room for all slots besides, so
 * that these can be passed on at any time.
 */
static bool has_room(const struct mmc_hart *hart)
{
	return mmc_ring_room(&hart->told, MMC_HART_EVENTS) > MMC_NIC_SLOTS;
}

/* Tells of the run, if there is one. */
static void tell_run(struct mmc_hart *hart)
{
	if (hart->run.count > 0)
		tell(hart, &hart->run);
	hart->run.count = 0;
}

/* Adds a chunk that is in its place to the run, or begins another one with it. */
static void add_to_run(struct mmc_hart *hart, uint32_t source, uint32_t chunk,
		       uint32_t nbytes)
{
	struct mmc_nic_event *run = &hart->run;

	if (source != run->source || chunk != run->first + run->count ||
	    run->nbytes != hart->buffer.chunk_bytes)
		tell_run(hart);
	if (run->count == 0)
		*run = (struct mmc_nic_event){
			.kind = MMC_NIC_ARRIVED,
			.source = source,
			.cookie = hart->buffer.cookie,
			.first = chunk,
		};
	run->nbytes = nbytes;
	run->count++;
}

/* ---- slots --------------------------------------------------------------- */

static void post(struct mmc_hart *hart, uint32_t slot)
{
	struct mmc_offload_ring *ring = &hart->queue->slots;

	hart->queue->slot[ring->nproduced % MMC_NIC_SLOTS] = slot;
	mmc_ring_produce(ring);
}

/* Has the device place the payload in a slot. Returns false if that cannot be. */
static bool place(struct mmc_hart *hart, const struct mmc_nic_event *told)
{
	struct mmc_offload_ring *ring = &hart->queue->placements;
	uint64_t at = told->slot * hart->nic->slot_bytes;
	struct mmc_header header;
	uint64_t to;

	if (!hart->uses || told->source >= hart->nranks ||
	    mmc_header_decode(&header, hart->slots + at, told->nbytes,
			      hart->checksum) != 0)
		return false;
	to = mmc_tag_place(&hart->buffer, &hart->blocks[told->source], &header,
			   told->nbytes - MMC_HEADER_BYTES);
	/* There are as many entries as slots, so there is room. */
	if (to == 0 || mmc_bitmap_test_and_set(&hart->claimed, header.index))
		return false;
	hart->queue->placement[ring->nproduced % MMC_NIC_PLACEMENTS] =
		(struct mmc_nic_placement){
			.from_offset =
				hart->nic->slots_offset + at + MMC_HEADER_BYTES,
			.to_offset = to,
			.nbytes = told->nbytes - MMC_HEADER_BYTES,
			.cookie = (uint64_t)told->source
					  << COOKIE_SOURCE_SHIFT |
				  header.index,
		};
	mmc_ring_produce(ring);
	hart->nplacing++;
	return true;
}

/* ---- events -------------------------------------------------------------- */

/* Takes in that a placement has completed. */
static void take_placed(struct mmc_hart *hart, const struct mmc_nic_event *told)
{
	uint32_t chunk = (uint32_t)told->cookie;
	uint32_t source = (uint32_t)(told->cookie >> COOKIE_SOURCE_SHIFT);

	hart->nplacing--;
	add_to_run(hart, source, chunk,
		   mmc_tag_bytes(&hart->buffer, &hart->blocks[source], chunk));
	post(hart, told->slot);
}

/* Takes in an event of the device. What it tells of an earlier buffer is passed over. */
static void take(struct mmc_hart *hart, const struct mmc_nic_event *told)
{
	/* It is a different chip, and may be out of order. */
	bool of_slot = told->slot - hart->first_slot < hart->nslots &&
		       told->nbytes <= hart->nic->slot_bytes;

	if (told->kind == MMC_NIC_DATAGRAM && of_slot) {
		if (!place(hart, told))
			tell(hart, told);
	} else if (told->kind == MMC_NIC_PLACED && of_slot) {
		if (hart->nplacing > 0)
			take_placed(hart, told);
	} else if (told->kind == MMC_NIC_ARRIVED && hart->uses &&
		   told->cookie == hart->buffer.cookie) {
		add_to_run(hart, told->source, told->first, told->nbytes);
	}
}

/*
 * Follows the first hart in its use of a buffer, as of this change. Until all placements
 * have completed this is called again and again, and forgets what it is too late to tell.
 */
static void follow(struct mmc_hart *hart, uint32_t change)
{
	hart->uses = change % 2 != 0;
	if (!hart->uses)
		hart->run.count = 0;
	if (hart->uses || hart->nplacing == 0)
		mmc_ring_show(&hart->nacknowledged, change);
}

bool mmc_hart_step(struct mmc_hart *hart)
{
	struct mmc_offload_ring *events = &hart->queue->events;
	struct mmc_offload_ring *returned = &hart->returned;
	bool busy = false;

	for (; mmc_ring_count(returned) > 0; busy = true) {
		post(hart,
		     hart->returning[returned->nconsumed % MMC_NIC_SLOTS]);
		mmc_ring_consume(returned);
	}
	for (;;) {
		/* An event may follow from a change, so changes come first. */
		bool come = mmc_ring_count(events) > 0;
		uint32_t change = mmc_ring_see(&hart->nchanges);

		if (change != hart->nacknowledged)
			follow(hart, change);
		if (!come || (hart->uses && !has_room(hart)))
			break;
		take(hart,
		     &hart->queue->event[events->nconsumed % MMC_NIC_EVENTS]);
		mmc_ring_consume(events);
		busy = true;
	}
	tell_run(hart);
	if (mmc_ring_must_ring(&hart->nic->sends))
		mmc_machine_ring();
	if (busy && mmc_ring_must_ring(&hart->told))
		mmc_machine_interrupt(0);
	return busy;
}

bool mmc_hart_arm(struct mmc_hart *hart)
{
	mmc_ring_arm(&hart->queue->events);
	return mmc_ring_count(&hart->queue->events) > 0 ||
	       mmc_ring_count(&hart->returned) > 0 ||
	       (mmc_ring_see(&hart->nchanges) != hart->nacknowledged &&
		hart->nplacing == 0);
}

/* ---- for the first hart -------------------------------------------------- */

/* Wakes the hart, if it sleeps. */
static void wake(struct mmc_hart *hart)
{
	if (mmc_ring_must_ring(&hart->queue->events))
		mmc_machine_interrupt(hart->number);
}

void mmc_hart_register(struct mmc_hart *hart,
		       const struct mmc_nic_buffer *buffer,
		       const struct mmc_nic_block *blocks,
		       const struct mmc_bitmap *claimed)
{
	hart->buffer = *buffer;
	hart->blocks = blocks;
	hart->claimed = *claimed;
	mmc_ring_show(&hart->nchanges, hart->nchanges + 1);
}

void mmc_hart_deregister(struct mmc_hart *hart)
{
	mmc_ring_show(&hart->nchanges, hart->nchanges + 1);
	wake(hart);
}

bool mmc_hart_has_let_go(const struct mmc_hart *hart)
{
	return hart->nchanges % 2 == 0 &&
	       mmc_ring_see(&hart->nacknowledged) == hart->nchanges;
}

void mmc_hart_return_slot(struct mmc_hart *hart, uint32_t slot)
{
	struct mmc_offload_ring *ring = &hart->returned;

	/* There are as many entries as slots, so there is room. */
	hart->returning[ring->nproduced % MMC_NIC_SLOTS] = slot;
	mmc_ring_produce(ring);
	wake(hart);
}
