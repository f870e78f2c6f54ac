/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct placement: receives are posted so that the device puts a payload right in its
 * place. It is used where the datagrams of a queue arrive in a known order, since only
 * one sender at a time sends to it. Then a receive can *aim* at the place of the
 * datagram that it will most likely take (see predictor.h). Nothing else writes to that
 * place until the receive completes. If the payload for that place arrives another way,
 * it waits in the staging memory of the receive that aims there.
 *
 * When a receive takes a datagram other than the predicted one, the payload of that
 * datagram is *evacuated*: copied from the place to staging memory. The queue is then
 * *paused*: receives that are posted from now on aim at nothing, until no posted
 * receive aims at a place any more. To use up those that still do, the queue sends
 * plugs to itself, which are datagrams without payload.
 *
 * A *slot* is the memory and the description of one receive, which is posted again and
 * again. This code decides what slots aim at and moves no datagrams; the drivers that
 * post receives share it.
 */
#ifndef MMC_DRIVERS_PLACEMENT_H
#define MMC_DRIVERS_PLACEMENT_H

#include "drivers/predictor.h"

/* The most slots that one call of mmc_placement_post() takes. */
#define MMC_PLACEMENT_BATCH 32

struct mmc_placement_slot {
	/* The datagram that the slot is to take; `place` is NULL if it aims at none. */
	struct mmc_prediction aim;
	uint8_t *staging; /* memory for the longest payload */
	/*
	 * Whether a payload waits in `staging` until it can be copied to the place; the
	 * `cookie` given to mmc_placement_defer() names that payload.
	 */
	bool waiting;
	uint64_t cookie;
	bool posted;
};

/* A queue of posted receives, which take datagrams in the order of posting. */
struct mmc_placement_queue {
	struct mmc_placement_slot *slots;
	/* [nslots] For position % nslots, the slot that aims at its place. */
	uint32_t *by_position;
	/* [nslots] The cookies of payloads that waited and are in place now. */
	uint64_t *settled;
	uint32_t nslots;
	uint32_t nsettled; /* cookies in `settled` */
	uint32_t nposted;
	uint32_t naimed; /* posted slots that aim at a place */
	uint32_t nplugs; /* plugs that were sent and have not arrived */
	struct mmc_cursor cursor; /* at the prediction for the next slot */
	bool paused;		  /* slots that are posted now aim at nothing */
};

struct mmc_placement {
	struct mmc_predictor predictor;
	bool active; /* direct placement has begun: `predictor` is set */
	bool loops;  /* this rank receives its own multicast */
	uint32_t head_bytes; /* of each datagram, before the payload */
	uint32_t nqueues;
	struct mmc_placement_queue *queues; /* one for each subgroup */
	uint64_t evacuated; /* payloads that were evacuated so far */
	uint8_t *scratch;   /* room for one payload that is being evacuated */
};

/*
 * Initializes `nqueues` queues of `nslots` slots each, for datagrams with a head of
 * `head_bytes` and a payload of up to `body_bytes`. The structure is all zeros before.
 * The caller then sets the `staging` of each slot. Returns 0 or -MMC_ENOMEM;
 * mmc_placement_destroy() must be called in either case.
 */
int mmc_placement_init(struct mmc_placement *placement, uint32_t nqueues,
		       uint32_t nslots, uint32_t head_bytes,
		       uint32_t body_bytes);

/* Frees the queues, but not the staging memory, and sets the structure to zeros. */
void mmc_placement_destroy(struct mmc_placement *placement);

/*
 * Begins direct placement: slots that are posted from now on aim at the places that
 * `predictor` predicts. Returns 0, or -MMC_EINVAL if direct placement has begun
 * already, or if every queue is to be predicted: at least one must be left for other
 * datagrams.
 */
int mmc_placement_begin(struct mmc_placement *placement,
			const struct mmc_predictor *predictor);

/*
 * Ends direct placement. The caller has made sure that no posted slot aims at a place,
 * or that none will be filled any more. Copies payloads that wait to their places. With
 * `forget`, mmc_placement_take_settled() returns none of their cookies.
 */
void mmc_placement_end(struct mmc_placement *placement, bool forget);

/*
 * Copies the payloads that wait in the queue to their places, lets no slot aim at a
 * place any more, and pauses the queue. The caller has made sure that no slot which
 * aims at a place will be filled any more.
 */
void mmc_placement_clear(struct mmc_placement_queue *queue);

/*
 * Ends the queue's pause if no posted slot aims at a place and no plug is on its way.
 * The caller has handed the engine all datagrams that have arrived until now, so that
 * the next prediction is right.
 */
void mmc_placement_resume(struct mmc_placement *placement, uint32_t queue);

/*
 * Decides what each of `count` slots aims at, which the caller posts in this order,
 * behind all slots that are posted already. `count` is at most
 * MMC_PLACEMENT_BATCH.
 */
void mmc_placement_post(struct mmc_placement *placement, uint32_t queue,
			const uint32_t *slots, uint32_t count);

/*
 * Notes that a slot has completed with a datagram of `nbytes` in all, which `source`
 * has sent and which begins with `head`. For a datagram whose content does not matter,
 * such as a plug, `nbytes` is 0. Returns where the payload lies: in its place, or in
 * staging memory.
 */
uint8_t *mmc_placement_complete(struct mmc_placement *placement, uint32_t queue,
				uint32_t slot, uint32_t source,
				const uint8_t *head, uint32_t nbytes);

/*
 * Takes over the payload `from`, which belongs at `to`, if a posted slot aims at that
 * place. The payload then waits until the slot has completed, and after that
 * mmc_placement_take_settled() returns `cookie`. Returns false if no slot aims there,
 * so that the caller may copy the payload now.
 */
bool mmc_placement_defer(struct mmc_placement *placement, const uint8_t *to,
			 const void *from, size_t nbytes, uint64_t cookie);

/* Returns how many plugs the queue should send to itself now. */
uint32_t mmc_placement_plugs(const struct mmc_placement_queue *queue);

/*
 * Takes one payload that has waited and is in its place now, and writes its cookie.
 * Returns false if there is none.
 */
bool mmc_placement_take_settled(struct mmc_placement *placement,
				uint64_t *cookie);

#endif
