/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datagrams that a queue pair sends, copied into registered slots that are used as
 * a ring. One in a few is signalled when it has left; then all before it have left,
 * too.
 */
#ifndef MMC_DRIVERS_VERBS_SLOTS_H
#define MMC_DRIVERS_VERBS_SLOTS_H

#include "drivers/verbs/port.h"

struct mmc_verbs_slots {
	struct mmc_verbs_memory memory;
	uint32_t slot_bytes;
	uint32_t nslots;  /* a power of two, at least 4 */
	uint32_t nfilled; /* number ever filled, modulo 2^32 */
	uint32_t nleft;	  /* number known to have left, modulo 2^32 */
	struct ibv_send_wr *requests;
	struct ibv_sge *pieces;
};

/*
 * Makes `nslots` slots of at least `slot_bytes`. Returns 0 or an error, with the reason
 * set; the caller calls mmc_verbs_slots_destroy() in either case.
 */
int mmc_verbs_slots_init(struct mmc_verbs_slots *slots,
			 const struct mmc_verbs_port *port, uint32_t nslots,
			 uint32_t slot_bytes);

void mmc_verbs_slots_destroy(struct mmc_verbs_slots *slots);

/* Returns how many filled slots are not known to have left. */
static inline uint32_t mmc_verbs_slots_busy(const struct mmc_verbs_slots *slots)
{
	return slots->nfilled - slots->nleft;
}

static inline bool mmc_verbs_slots_room(const struct mmc_verbs_slots *slots)
{
	return mmc_verbs_slots_busy(slots) < slots->nslots;
}

/*
 * Copies a datagram, no longer than a slot, to the next slot; there must be room.
 * Returns the request that sends it, with its number as id; the caller links and
 * addresses it.
 */
struct ibv_send_wr *mmc_verbs_slots_fill(struct mmc_verbs_slots *slots,
					 const struct mmc_parcel *parcel);

/* Takes back the last `count` slots that were filled but not posted. */
static inline void mmc_verbs_slots_unfill(struct mmc_verbs_slots *slots,
					  uint32_t count)
{
	slots->nfilled -= count;
}

/* Takes the completion of the request with this id. */
static inline void mmc_verbs_slots_left(struct mmc_verbs_slots *slots,
					uint64_t id)
{
	slots->nleft = (uint32_t)id + 1;
}

#endif
