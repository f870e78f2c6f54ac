/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long chunks may stay wanted of the left neighbour before their owners are asked:
 * until a lease ends the ring usually brings them, and a second copy would be too much.
 *
 * MMC_LEASE_TABLE holds the states and the events that lead from one to the next.
 */
#ifndef MMC_CORE_REPAIR_LEASE_H
#define MMC_CORE_REPAIR_LEASE_H

#include "core/plan/bitmap.h"
#include "core/plan/layout.h"
#include "core/repair/nak.h"

enum mmc_lease_state {
	MMC_LEASE_NONE,	   /* nothing is wanted */
	MMC_LEASE_RUNNING, /* until `ends_ns` */
	MMC_LEASE_ENDED,   /* owners of overdue chunks are to be asked */
	MMC_LEASE_ASKING,  /* some have been */
};

enum mmc_lease_event {
	MMC_LEASE_WANTED, /* chunks are wanted, now or still */
	MMC_LEASE_EXPIRED,
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
	struct mmc_bitmap overdue; /* chunks wanted since the lease began */
	uint32_t next_chunk;	   /* the next chunk to ask an owner for */
	uint64_t ends_ns;	   /* MMC_NEVER_NS unless it runs */
	bool vain; /* owners were asked after the lease before */
};

/* The bytes of memory for `nchunks` chunks. */
size_t mmc_lease_bytes(uint32_t nchunks);

/* Initializes a lease in `memory`, mmc_lease_bytes() long. */
void mmc_lease_init(struct mmc_lease *lease, uint8_t *memory, uint32_t nchunks);

/* Begins a lease with nothing overdue, unless one runs or owners are being asked. */
void mmc_lease_want(struct mmc_lease *lease, uint64_t now_ns, uint64_t srtt_ns);

/*
 * Returns whether the lease has just ended. The caller then takes out of `overdue` what
 * need not be asked for.
 */
bool mmc_lease_expires(struct mmc_lease *lease, uint64_t now_ns);

/*
 * Returns whether an owner is to be asked for overdue chunks. If so, writes a NAK for
 * one; it is direct if the owner is `left`, which has been asked, or if owners were
 * asked after the last lease too.
 */
bool mmc_lease_ask(struct mmc_lease *lease, const struct mmc_layout *layout,
		   uint32_t left, struct mmc_nak *nak);

/*
 * Begins the next lease when the owners have been asked: the chunks of `wanted` are
 * overdue when it ends. There is none if `wanted` is empty.
 */
void mmc_lease_renew(struct mmc_lease *lease, const struct mmc_bitmap *wanted,
		     uint64_t now_ns, uint64_t srtt_ns);

/* Returns whether owners are to be asked now. */
static inline bool mmc_lease_is_over(const struct mmc_lease *lease)
{
	return lease->state >= MMC_LEASE_ENDED;
}

/* Returns when to call mmc_lease_expires() or mmc_lease_ask() again. */
static inline uint64_t mmc_lease_deadline(const struct mmc_lease *lease)
{
	return mmc_lease_is_over(lease) ? 0 : lease->ends_ns;
}

#endif
