/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts receives that put a chunk's payload directly in its place. The chunks of a
 * chain arrive in the order of their positions, each chain by a queue of its own: so
 * when a receive is posted, it is known which chunk it will most likely take. That
 * chunk's place is then *covered*: nothing else writes it until the receive completes,
 * and a payload that arrives another way waits in the receive's staging memory.
 *
 * When another datagram arrives in place of the predicted one, its payload is evacuated
 * to staging memory, and no place is covered until no posted receive covers one. Plugs,
 * datagrams without payload that a queue sends to itself, use those receives up.
 *
 * A slot is a receive that is posted again and again. This code is shared by the drivers
 * that post receives; it moves no datagrams.
 */
#ifndef MMC_DRIVERS_PLACEMENT_H
#define MMC_DRIVERS_PLACEMENT_H

#include "core/repair/loss.h"
#include "drivers/driver.h"

/* The operation whose chunks are predicted. What it points to outlives the plan. */
struct mmc_predictor {
	uint8_t *base;		  /* the place of chunk 0 */
	struct mmc_region region; /* the places of all chunks, registered */
	const struct mmc_layout *layout;
	const struct mmc_schedule *schedule;
	const struct mmc_chain *chains; /* how far each chain has been seen */
	const struct mmc_bitmap *claimed;
	uint64_t channel;
	uint32_t epoch;
	uint32_t rank;
};

struct mmc_placement_slot {
	uint8_t *place;	  /* the place that the slot covers, or NULL */
	uint32_t owner;	  /* the rank whose block `chunk` is of */
	uint32_t chunk;	  /* the chunk that belongs in `place` */
	uint8_t *staging; /* memory as long as the longest payload */
	uint32_t position;
	uint32_t nbytes; /* the length of `place` */
	uint64_t cookie; /* names the payload that waits in `staging` */
	bool waiting;
	bool posted;
};

/* A queue of posted receives, which take datagrams in the order of posting. */
struct mmc_placement_queue {
	struct mmc_placement_slot *slots;
	uint32_t *
		by_position; /* [nslots] the slot that covers position % nslots */
	uint64_t *placed;    /* cookies of payloads that no longer wait */
	uint32_t nslots;
	uint32_t nplaced;
	uint32_t nposted;
	uint32_t naimed; /* posted slots that cover a place */
	uint32_t nplugs; /* plugs that have been sent and not received */
	uint32_t next;	 /* the position that the next posted slot takes */
	uint32_t end;	 /* the length of the queue's chain */
	/* The last block looked up, since the next chunk is often of the same one. */
	struct mmc_block block;
	uint32_t start; /* the position of that block's first chunk */
	uint32_t owner; /* the rank whose block that is */
	bool off;	/* slots posted now cover nothing */
};

struct mmc_placement {
	struct mmc_predictor plan;
	bool active; /* there is a plan */
	bool loops;  /* this rank receives its own multicast */
	uint32_t head_bytes;
	uint32_t nqueues;
	struct mmc_placement_queue
		*queues; /* one for each chain; the last, control */
	uint8_t *scratch;
};

/*
 * Initializes `nqueues` queues of `nslots` slots each, for payloads of up to
 * `body_bytes` behind a head of `head_bytes`. The caller sets each slot's `staging`.
 * Returns 0 or -MMC_ENOMEM; mmc_placement_destroy() must be called in either case.
 */
int mmc_placement_init(struct mmc_placement *placement, uint32_t nqueues,
		       uint32_t nslots, uint32_t head_bytes,
		       uint32_t body_bytes);

void mmc_placement_destroy(struct mmc_placement *placement);

/* Returns whether places can be covered in such a layout: uneven blocks cannot. */
static inline bool mmc_placement_suits(const struct mmc_layout *layout)
{
	return layout->blocks == NULL;
}

/*
 * Begins to cover the places of what is posted from now on. Returns 0, or -MMC_EINVAL
 * if a plan is active, or if there is not a queue for each chain and one for control.
 */
int mmc_placement_begin(struct mmc_placement *placement,
			const struct mmc_predictor *plan);

/*
 * Ends the plan. The caller has made sure that no posted receive can be filled any
 * more, or that none covers a place. Payloads that wait are put in their places; with
 * `forget` their cookies are dropped.
 */
void mmc_placement_end(struct mmc_placement *placement, bool forget);

/* Uncovers one queue's places under the same conditions; the plan goes on. */
void mmc_placement_clear(struct mmc_placement_queue *queue);

/*
 * Starts to predict again if no place is covered any more. The caller has taken in all
 * datagrams that have completed before.
 */
void mmc_placement_resume(struct mmc_placement *placement, uint32_t queue);

/* Returns the slot, which is posted behind all others now, with what it covers. */
const struct mmc_placement_slot *
mmc_placement_post(struct mmc_placement *placement, uint32_t queue,
		   uint32_t slot);

/*
 * Takes in that the slot has completed: with a datagram of `nbytes` from `source`, or
 * with 0 bytes that are not looked at. Returns where the payload lies: in its place, or
 * at `staging`. Adds to `*evacuated` if it was moved there.
 */
uint8_t *mmc_placement_complete(struct mmc_placement *placement, uint32_t queue,
				uint32_t slot, uint32_t source,
				const uint8_t *head, uint32_t nbytes,
				uint64_t *evacuated);

/*
 * Returns whether the place `to` is covered. If so, its payload `from` is kept until the
 * place is free; mmc_placement_take_settled() then returns `cookie`.
 */
bool mmc_placement_defer(struct mmc_placement *placement, const uint8_t *to,
			 const void *from, size_t nbytes, uint64_t cookie);

/* Returns how many plugs the queue is to send itself now. */
uint32_t mmc_placement_plugs(const struct mmc_placement_queue *queue);

/* Returns whether a payload no longer waits. If so, writes its cookie. */
bool mmc_placement_take_settled(struct mmc_placement *placement,
				uint64_t *cookie);

#endif
