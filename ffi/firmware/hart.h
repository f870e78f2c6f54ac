/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harts of an adapter's processor beside the first one. The first hart runs the engine:
 * all control, turns and repairs. Each other hart takes in what arrives in a queue of its
 * own. For the engine such a hart is one more device that places payloads by itself: it
 * tells which chunks are in their places, in runs, and passes on all that is no chunk of
 * the registered buffer.
 *
 * So a hart shares with the first one only two rings, and what describes the buffer. That
 * the first hart changes only while the other one has acknowledged that it uses none.
 */
#ifndef MMC_FIRMWARE_HART_H
#define MMC_FIRMWARE_HART_H

#include <mpimcast/abi/nic.h>

#include "core/plan/bitmap.h"
#include "core/wire/header.h"

/* Entries of the ring of what a hart tells: a power of two. */
#define MMC_HART_EVENTS MMC_NIC_EVENTS

struct mmc_hart {
	/* These are set before the hart begins, and do not change. */
	struct mmc_nic *nic;
	struct mmc_nic_queue *queue; /* the hart's own, of the device */
	const uint8_t *slots;	     /* those of all queues */
	uint32_t number;	     /* of the hart: from 1 on */
	uint32_t first_slot;	     /* of the queue */
	uint32_t nslots;	     /* of the queue */
	uint32_t nranks;
	enum mmc_checksum checksum;

	/* The buffer, which the first hart writes while `nchanges` is even. */
	struct mmc_nic_buffer buffer;
	const struct mmc_nic_block *blocks; /* [nranks] */
	struct mmc_bitmap claimed; /* the chunks that this hart has placed */

	/* Counts registrations and deregistrations, so it is odd while there is a buffer. */
	_Alignas(64) uint32_t nchanges;
	/* The latest of these changes that the hart acts on. */
	_Alignas(64) uint32_t nacknowledged;

	/* Events for the first hart: chunks in their places, and slots that it takes over. */
	struct mmc_offload_ring told;
	struct mmc_nic_event telling[MMC_HART_EVENTS];
	/* Slots that the first hart gives back. */
	struct mmc_offload_ring returned;
	uint32_t returning[MMC_NIC_SLOTS];

	/* The rest is the hart's own. */
	_Alignas(
		64) struct mmc_nic_event run; /* not told yet, if `count` > 0 */
	bool uses;			      /* payloads go to the buffer */
	uint32_t nplacing; /* placements that have not completed */
};

/* ---- for the hart itself ------------------------------------------------- */

/* Takes in what is there. Returns whether there was anything. */
bool mmc_hart_step(struct mmc_hart *hart);

/* Prepares for a sleep. Returns whether something has come, so that it must not sleep. */
bool mmc_hart_arm(struct mmc_hart *hart);

/* ---- for the first hart -------------------------------------------------- */

/*
 * Has the hart place what carries the tag of a buffer. `claimed` is a bitmap of all chunks,
 * all clear. It, `blocks` and the buffer's memory must last until the hart has let go of
 * the buffer. It has let go of the buffer before.
 */
void mmc_hart_register(struct mmc_hart *hart,
		       const struct mmc_nic_buffer *buffer,
		       const struct mmc_nic_block *blocks,
		       const struct mmc_bitmap *claimed);

/*
 * Has the hart let go of the buffer: mmc_hart_has_let_go() tells when it has. Until then
 * the device may write to the buffer for it.
 */
void mmc_hart_deregister(struct mmc_hart *hart);

/* Returns whether nothing is written to a buffer for the hart, and it tells of none. */
bool mmc_hart_has_let_go(const struct mmc_hart *hart);

/* Gives a slot back that the hart has passed on. */
void mmc_hart_return_slot(struct mmc_hart *hart, uint32_t slot);

#endif
