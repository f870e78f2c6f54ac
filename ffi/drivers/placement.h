/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct placement: receives are posted so that the device puts a payload right in its
 * place. Where each sender has a queue to itself at a time, datagrams arrive in a known
 * order, so a receive *aims* at the place of the datagram that it will most likely
 * take (see predictor.h). Nothing else writes that place until the receive completes;
 * a payload that arrives another way waits in the receive's staging memory.
 *
 * When a receive takes another datagram than the predicted one, the payload is
 * evacuated to staging memory, and the queue is paused: slots posted from then on aim
 * at nothing, until no posted slot aims at a place any more. Plugs, datagrams without
 * payload that a queue sends to itself, use those slots up.
 *
 * A slot is a receive that is posted again and again. The drivers that post receives
 * share this code, which moves no datagrams.
 */
#ifndef MMC_DRIVERS_PLACEMENT_H
#define MMC_DRIVERS_PLACEMENT_H

#include "drivers/predictor.h"

/* The most slots that one call posts. */
#define MMC_PLACEMENT_BATCH 32

struct mmc_placement_slot {
	/* The datagram that the slot is to take; `place` is NULL if it aims at none. */
	struct mmc_prediction aim;
	uint8_t *staging; /* memory as long as the longest payload */
	uint64_t cookie;  /* names the payload that waits in `staging` */
	bool waiting;	  /* a payload that belongs in the place waits */
	bool posted;
};

/* A queue of posted receives, which take datagrams in the order of posting. */
struct mmc_placement_queue {
	struct mmc_placement_slot *slots;
	/* [nslots] The slot that aims at the place of position % nslots. */
	uint32_t *by_position;
	uint64_t *settled; /* cookies of payloads that no longer wait */
	uint32_t nslots;
	uint32_t nsettled;
	uint32_t nposted;
	uint32_t naimed; /* posted slots that aim at a place */
	uint32_t nplugs; /* plugs that have been sent and not received */
	struct mmc_cursor cursor;
	bool paused; /* slots posted now aim at nothing */
};

struct mmc_placement {
	struct mmc_predictor predictor;
	bool active; /* there is a predictor */
	bool loops;  /* this rank receives its own multicast */
	uint32_t head_bytes;
	uint32_t nqueues;
	struct mmc_placement_queue *queues; /* one for each subgroup */
	uint64_t evacuated; /* payloads that arrived in another's place */
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

/*
 * Begins to aim the slots that are posted from now on. Returns 0, or -MMC_EINVAL if
 * there is a predictor already, or no queue is left for what cannot be predicted.
 */
int mmc_placement_begin(struct mmc_placement *placement,
			const struct mmc_predictor *predictor);

/*
 * Ends what mmc_placement_begin() began. The caller has made sure that no posted slot
 * can be filled any more, or that none aims at a place. Payloads that wait are put in
 * their places; with `forget` their cookies are dropped.
 */
void mmc_placement_end(struct mmc_placement *placement, bool forget);

/*
 * Lets no slot of the queue aim at a place any more, under the conditions of
 * mmc_placement_end(), and pauses the queue.
 */
void mmc_placement_clear(struct mmc_placement_queue *queue);

/*
 * Ends the queue's pause if no posted slot aims at a place. The caller has taken in all
 * datagrams that have completed before.
 */
void mmc_placement_resume(struct mmc_placement *placement, uint32_t queue);

/*
 * Takes in that `count` slots are being posted behind all others, in this order, and
 * decides what each aims at.
 */
void mmc_placement_post(struct mmc_placement *placement, uint32_t queue,
			const uint32_t *slots, uint32_t count);

/*
 * Takes in that a slot has completed: with a datagram of `nbytes` from `source`, or
 * with 0 bytes that are not looked at. Returns where the payload lies: in its place, or
 * in staging memory.
 */
uint8_t *mmc_placement_complete(struct mmc_placement *placement, uint32_t queue,
				uint32_t slot, uint32_t source,
				const uint8_t *head, uint32_t nbytes);

/*
 * Returns whether a posted slot aims at the place `to`. If so, the payload `from` is
 * kept until the place is free; mmc_placement_take_settled() then returns `cookie`.
 */
bool mmc_placement_defer(struct mmc_placement *placement, const uint8_t *to,
			 const void *from, size_t nbytes, uint64_t cookie);

/* Returns how many plugs the queue is to send itself now. */
uint32_t mmc_placement_plugs(const struct mmc_placement_queue *queue);

/* Returns whether a payload no longer waits. If so, writes its cookie. */
bool mmc_placement_take_settled(struct mmc_placement *placement,
				uint64_t *cookie);

#endif
