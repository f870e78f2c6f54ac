/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datagrams that a queue pair sends. They are copied to slots of registered memory,
 * which are used in a ring. The device reports only some of them when they have left;
 * all datagrams before a reported one have left by then.
 */
#ifndef MMC_DRIVERS_VERBS_SLOTS_H
#define MMC_DRIVERS_VERBS_SLOTS_H

#include "drivers/verbs/port.h"

struct mmc_verbs_slots {
	struct mmc_verbs_memory memory;
	uint32_t slot_bytes;
	uint32_t nslots;  /* a power of two, at least 4 */
	uint32_t nfilled; /* slots ever filled, modulo 2^32 */
	uint32_t nsent;	  /* slots known to have left, modulo 2^32 */
	struct ibv_send_wr *requests;
	struct ibv_sge *sges;
};

/*
 * Makes `nslots` slots of at least `slot_bytes`. Returns 0 or an error, with the reason
 * set; the caller must call mmc_verbs_slots_destroy() in either case.
 */
int mmc_verbs_slots_init(struct mmc_verbs_slots *slots,
			 const struct mmc_verbs_port *port, uint32_t nslots,
			 uint32_t slot_bytes);

void mmc_verbs_slots_destroy(struct mmc_verbs_slots *slots);

/* Returns how many slots are filled and not known to have left. */
static inline uint32_t mmc_verbs_slots_busy(const struct mmc_verbs_slots *slots)
{
	return slots->nfilled - slots->nsent;
}

/* Returns whether another slot can be filled. */
static inline bool
mmc_verbs_slots_have_room(const struct mmc_verbs_slots *slots)
{
	return mmc_verbs_slots_busy(slots) < slots->nslots;
}

/*
 * Copies a datagram, which is no longer than a slot, to the next slot; there must be
 * room. Returns the request that sends it. The id of the request is the slot's number
 * since the beginning; the caller addresses the request and links it to others.
 */
struct ibv_send_wr *mmc_verbs_slots_fill(struct mmc_verbs_slots *slots,
					 const struct mmc_parcel *parcel);

/* Empties the last `count` slots that were filled, which were not posted. */
static inline void mmc_verbs_slots_unfill(struct mmc_verbs_slots *slots,
					  uint32_t count)
{
	slots->nfilled -= count;
}

/* Notes that the request with this id has left, and so all before it. */
static inline void mmc_verbs_slots_complete(struct mmc_verbs_slots *slots,
					    uint64_t id)
{
	slots->nsent = (uint32_t)id + 1;
}

#endif
