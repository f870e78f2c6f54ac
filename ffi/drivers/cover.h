/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives that bring a chunk's payload right to its place. Chunks of a chain
 * come in the order of their positions, each chain by a queue of its own: so it
 * is known, when a receive is posted, which chunk it will most likely take. The
 * chunk's place is then *covered*: until the receive has completed nobody else
 * writes it, and a payload that came another way waits in the receive's own
 * staging memory.
 *
 * When another datagram has come in place of the predicted one, its payload is
 * evacuated to staging memory, and nothing more is covered until no receive
 * covers any more. Datagrams without payload, plugs, that a queue sends to
 * itself, see to that.
 *
 * A slot is a receive that is posted again and again. This is shared by drivers
 * that post receives; it moves no datagrams.
 */
#ifndef MMC_DRIVERS_COVER_H
#define MMC_DRIVERS_COVER_H

#include "core/repair/loss.h"
#include "drivers/driver.h"

/* An operation whose chunks are predicted; it outlives the covering. */
struct mmc_cover {
	uint8_t *base;		  /* where the first chunk belongs */
	struct mmc_region region; /* of all chunks */
	const struct mmc_layout *layout;
	const struct mmc_schedule *schedule;
	const struct mmc_chain *chains; /* how far each has been seen */
	const struct mmc_bitmap *claimed;
	uint64_t channel;
	uint32_t epoch;
	uint32_t rank;
};

struct mmc_cover_slot {
	uint8_t *place; /* that it covers, or NULL */
	uint32_t owner; /* of the chunk that belongs there: */
	uint32_t chunk;
	uint8_t *staging; /* as long as any payload */
	uint32_t position;
	uint32_t nbytes; /* of the place */
	uint64_t cookie; /* of the payload that waits in `staging` */
	bool waiting;
	bool posted;
};

/* One queue of posted receives, which take datagrams in order. */
struct mmc_cover_queue {
	struct mmc_cover_slot *slots;
	uint32_t *by_position; /* the slot that covers it, modulo nslots */
	uint64_t *placed;      /* cookies of payloads that wait no more */
	uint32_t nslots;
	uint32_t nplaced;
	uint32_t nposted;
	uint32_t ncovering; /* of these */
	uint32_t nplugs;    /* on their way */
	uint32_t next;	    /* the position that the next to be posted takes */
	uint32_t end;	    /* of its chain */
	/* The block that was looked at last: the next chunk is often its too. */
	struct mmc_block block;
	uint32_t start; /* of its chunks in the chain */
	uint32_t owner;
	bool off; /* none that is posted now covers */
};

struct mmc_covers {
	struct mmc_cover plan;
	bool active; /* there is a plan */
	bool loops;  /* what this rank multicasts comes back to it */
	uint32_t head_bytes;
	uint32_t nqueues;
	struct mmc_cover_queue *queues; /* of chain 0, 1, ...; last, control */
	uint8_t *scratch;
};

/*
 * Makes `nqueues` of `nslots` slots each, for payloads of up to `body_bytes`
 * behind `head_bytes`. The caller sets each slot's `staging`. Returns 0 or
 * -MMC_ENOMEM; mmc_covers_destroy() is to be called all the same.
 */
int mmc_covers_init(struct mmc_covers *covers, uint32_t nqueues,
		    uint32_t nslots, uint32_t head_bytes, uint32_t body_bytes);

void mmc_covers_destroy(struct mmc_covers *covers);

/* Whether places can be covered where the blocks lie so: not if uneven. */
static inline bool mmc_covers_suits(const struct mmc_layout *layout)
{
	return layout->blocks == NULL;
}

/*
 * Covers from now on what is going to be posted. Returns 0, or -MMC_EINVAL if
 * there is a plan already, or not a queue for each chain and one for control.
 */
int mmc_covers_begin(struct mmc_covers *covers, const struct mmc_cover *plan);

/*
 * Ends the plan. No posted receive can be filled any more, or none covers.
 * Payloads that wait are put in their places; with `forget` nobody will hear
 * of that.
 */
void mmc_covers_end(struct mmc_covers *covers, bool forget);

/* Likewise for one queue, whose plan goes on. */
void mmc_covers_lift(struct mmc_cover_queue *queue);

/*
 * Predicts anew, if nothing is covered any more. All datagrams that have
 * completed before have been taken in.
 */
void mmc_covers_resume(struct mmc_covers *covers, uint32_t queue);

/* The slot is about to be posted, behind all others: what it covers. */
const struct mmc_cover_slot *mmc_covers_post(struct mmc_covers *covers,
					     uint32_t queue, uint32_t slot);

/*
 * The slot has completed, with a datagram of `nbytes` from `source`, or with 0
 * bytes that nobody will look at. Returns where its payload is: in its place,
 * or at `staging`.
 */
uint8_t *mmc_covers_complete(struct mmc_covers *covers, uint32_t queue,
			     uint32_t slot, uint32_t source,
			     const uint8_t *head, uint32_t nbytes,
			     uint64_t *evacuated);

/*
 * Whether the place `to` is covered. If so its payload `from` is kept until it
 * is not, which `cookie` then tells.
 */
bool mmc_covers_defer(struct mmc_covers *covers, const uint8_t *to,
		      const void *from, size_t nbytes, uint64_t cookie);

/* How many plugs the queue is to be sent now. */
uint32_t mmc_covers_plugs(const struct mmc_cover_queue *queue);

/* Whether a payload has ceased to wait; if so writes its cookie. */
bool mmc_covers_placed(struct mmc_covers *covers, uint64_t *cookie);

#endif
