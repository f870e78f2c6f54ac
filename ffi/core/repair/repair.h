/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The repair of one operation: finds out which chunks multicast has lost, gets them,
 * and serves the chunks that other ranks ask for. How, its policy says (policy.h).
 */
#ifndef MMC_CORE_REPAIR_REPAIR_H
#define MMC_CORE_REPAIR_REPAIR_H

#include "core/repair/advertiser.h"
#include "core/repair/fetcher.h"
#include "core/repair/loss.h"
#include "core/repair/policy.h"
#include "core/repair/repairer.h"

struct mmc_repair_config {
	enum mmc_repair policy;
	uint32_t rank;
	uint32_t nchains;    /* the most that the schedule may have */
	uint32_t read_bytes; /* the most that one read brings */
	uint64_t seed;	     /* of the random delays */
	/* What they point to outlives the repair. */
	const struct mmc_layout *layout;
	const struct mmc_bitmap *claimed;
	const struct mmc_bitmap *present;
	/* What others may read, and the generation's word (advertiser.h). */
	struct mmc_advert advert;
	uint64_t *generation;
};

struct mmc_repair_state {
	const struct mmc_repair_policy *policy;
	const struct mmc_layout *layout;
	const struct mmc_bitmap *claimed; /* chunks that need no repair */
	const struct mmc_bitmap *present; /* chunks that can be served */
	uint32_t rank;
	uint8_t *repairer_memory;
	struct mmc_loss loss;
	struct mmc_repairer repairer;	  /* valid once begun */
	struct mmc_fetcher fetcher;	  /* used if the policy reads */
	struct mmc_advertiser advertiser; /* likewise at the right neighbour */
};

/* The bytes of memory for the repair of `layout` in at most `nchains` chains. */
size_t mmc_repair_bytes(const struct mmc_layout *layout, uint32_t nchains,
			enum mmc_repair policy);

/* Initializes a repair in `memory`, mmc_repair_bytes() long. */
void mmc_repair_init(struct mmc_repair_state *repair, uint8_t *memory,
		     const struct mmc_repair_config *config);

/* Begins the flow: chunks are expected as planned by `schedule`. */
void mmc_repair_begin(struct mmc_repair_state *repair,
		      const struct mmc_schedule *schedule,
		      const struct mmc_loss_terms *terms, uint64_t now_ns);

/*
 * Goes on without multicast, which some rank does not hear: all chunks are missing, and
 * neighbours pass them on.
 */
void mmc_repair_expect_nothing(struct mmc_repair_state *repair,
			       uint64_t now_ns);

/*
 * Returns whether a missing chunk is to be asked for by message; if so, writes the NAK.
 * Call until it returns false.
 */
bool mmc_repair_ask(struct mmc_repair_state *repair, uint64_t now_ns,
		    struct mmc_nak *nak);

/* Takes a NAK; of this rank's own block the first `sent_chunks` can be served. */
void mmc_repair_on_nak(struct mmc_repair_state *repair,
		       const struct mmc_nak *nak, uint32_t sent_chunks,
		       uint64_t now_ns);

/* Returns whether `source` may send chunks of `owner`'s block to this rank again. */
bool mmc_repair_accepts(const struct mmc_repair_state *repair, uint32_t source,
			uint32_t owner);

/*
 * Returns the rank that is awaited: for the first missing chunk or for reads under way;
 * MMC_PEER_ALL if nothing is missing.
 */
uint32_t mmc_repair_awaited(const struct mmc_repair_state *repair);

/* Returns the rank to the right in the ring, which this rank serves. */
static inline uint32_t mmc_repair_right(const struct mmc_repair_state *repair)
{
	return (repair->rank + 1) % repair->layout->nranks;
}

/* Returns whether `peer` is told of this rank's memory when it enters. */
static inline bool
mmc_repair_advertises_to(const struct mmc_repair_state *repair, uint32_t peer)
{
	return repair->policy->advertises && peer == mmc_repair_right(repair);
}

/* Returns when to ask for lost chunks, or to look for silent senders, or to fetch. */
static inline uint64_t
mmc_repair_deadline(const struct mmc_repair_state *repair)
{
	uint64_t at_ns = repair->policy->deadline(repair);
	uint64_t loss_ns = mmc_loss_deadline(&repair->loss);

	return at_ns < loss_ns ? at_ns : loss_ns;
}

#endif
