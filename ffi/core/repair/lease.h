/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long chunks are fetched from the left neighbour alone before their owners are
 * asked: for the time of a lease. By then the ring has usually brought them, and the
 * owners' answers would be second copies.
 * MMC_LEASE_TABLE holds the states and the events that lead from one to the next.
 */
#ifndef MMC_CORE_REPAIR_LEASE_H
#define MMC_CORE_REPAIR_LEASE_H

#include "core/plan/bitmap.h"
#include "core/plan/layout.h"
#include "core/repair/nak.h"

enum mmc_lease_state {
	MMC_LEASE_NONE,	   /* nothing is wanted */
	MMC_LEASE_RUNNING, /* no owner is asked until `ends_ns` */
	MMC_LEASE_ENDED,   /* the owners of overdue chunks are to be asked */
	MMC_LEASE_ASKING,  /* some of them have been asked */
};

enum mmc_lease_event {
	MMC_LEASE_WANTED,  /* chunks are wanted: a lease begins */
	MMC_LEASE_EXPIRED, /* the lease ended, and chunks may be overdue */
	MMC_LEASE_ASKED,   /* an owner was asked */
	MMC_LEASE_FETCHED, /* nothing is wanted any more */
};

/* X(state, event, next state) */
#define MMC_LEASE_TABLE(X)                                                     \
	X(NONE, WANTED, RUNNING)                                               \
	X(RUNNING, EXPIRED, ENDED)                                             \
	X(ENDED, ASKED, ASKING)                                                \
	X(ENDED, WANTED, RUNNING)                                              \
	X(ENDED, FETCHED, NONE)                                                \
	X(ASKING, ASKED, ASKING)                                               \
	X(ASKING, WANTED, RUNNING)                                             \
	X(ASKING, FETCHED, NONE)

struct mmc_lease {
	enum mmc_lease_state state;
	struct mmc_bitmap overdue; /* chunks wanted when the lease began */
	uint32_t next_chunk; /* where to look for the next overdue chunk */
	uint64_t ends_ns;    /* MMC_NEVER_NS unless a lease runs */
	bool vain; /* owners were asked after the previous lease, too */
};

/* Returns the bytes of memory that a lease for `nchunks` chunks takes. */
size_t mmc_lease_bytes(uint32_t nchunks);

/* Initializes a lease in `memory`, mmc_lease_bytes() long; it does not run yet. */
void mmc_lease_init(struct mmc_lease *lease, uint8_t *memory, uint32_t nchunks);

/* Begins a lease with nothing overdue, unless one runs or owners are being asked. */
void mmc_lease_want(struct mmc_lease *lease, uint64_t now_ns, uint64_t srtt_ns);

/*
 * Returns true once when the lease has ended. The caller then removes the chunks from
 * `overdue` that need not be asked for.
 */
bool mmc_lease_expire(struct mmc_lease *lease, uint64_t now_ns);

/*
 * Returns whether an owner is to be asked for overdue chunks now. If so, writes the NAK
 * for that owner, and counts its chunks as asked for. The NAK is direct if owners were
 * asked after the previous lease, too, or if the owner is `left`, the left neighbour: a
 * NAK that is not would ask it for its memory.
 */
bool mmc_lease_ask(struct mmc_lease *lease, const struct mmc_layout *layout,
		   uint32_t left, struct mmc_nak *nak);

/*
 * Begins the next lease when all owners have been asked, unless `wanted` is empty. The
 * chunks of `wanted` will be overdue when it ends.
 */
void mmc_lease_renew(struct mmc_lease *lease, const struct mmc_bitmap *wanted,
		     uint64_t now_ns, uint64_t srtt_ns);

/* Returns whether a lease has ended, and owners may have to be asked. */
static inline bool mmc_lease_has_ended(const struct mmc_lease *lease)
{
	return lease->state >= MMC_LEASE_ENDED;
}

/* Returns when to call mmc_lease_expire() or mmc_lease_ask() again. */
static inline uint64_t mmc_lease_deadline(const struct mmc_lease *lease)
{
	return mmc_lease_has_ended(lease) ? 0 : lease->ends_ns;
}

#endif
