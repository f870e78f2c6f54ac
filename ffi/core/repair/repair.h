/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The repair of one operation. It finds out which chunks multicast has lost, gets them,
 * and serves the chunks that other ranks ask for, all by one policy (policy.h).
 */
#ifndef MMC_CORE_REPAIR_REPAIR_H
#define MMC_CORE_REPAIR_REPAIR_H

#include "core/repair/advertiser.h"
#include "core/repair/budget.h"
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
	/* The layout and both bitmaps must outlive the repair. */
	const struct mmc_layout *layout;
	const struct mmc_bitmap *claimed;
	const struct mmc_bitmap *present;
	/* The generation of adverts, and the word that shows it (advertiser.h). */
	uint64_t generation;
	uint64_t *generation_word;
};

struct mmc_repair_state {
	const struct mmc_repair_policy *policy;
	const struct mmc_layout *layout;
	const struct mmc_bitmap *claimed; /* chunks that need no repair */
	const struct mmc_bitmap *present; /* chunks that can be served */
	uint32_t rank;
	uint8_t *repairer_memory;
	uint8_t *budget_memory;
	struct mmc_budget budget; /* valid once the flow has begun */
	struct mmc_loss loss;
	struct mmc_repairer repairer;	  /* valid once the flow has begun */
	struct mmc_fetcher fetcher;	  /* used with the policy read only */
	struct mmc_advertiser advertiser; /* used with the policy read only */
};

/*
	 * Returns the bytes of memory that the repair of `layout` in at most `nchains`
	 * chains takes.
	 */
size_t mmc_repair_bytes(const struct mmc_layout *layout, uint32_t nchains,
			enum mmc_repair policy);

/* Initializes a repair in `memory`, mmc_repair_bytes() long. */
void mmc_repair_init(struct mmc_repair_state *repair, uint8_t *memory,
		     const struct mmc_repair_config *config);

/* Begins the flow: chunks are expected as `schedule` plans. */
void mmc_repair_begin(struct mmc_repair_state *repair,
		      const struct mmc_schedule *schedule,
		      const struct mmc_loss_terms *terms, uint64_t now_ns);

/*
 * Goes on without multicast, which some rank does not hear: neighbours ask each other
 * for all chunks, and pass them on round the ring.
 */
void mmc_repair_expect_nothing(struct mmc_repair_state *repair,
			       uint64_t now_ns);

/*
 * Allows for the round trip of a long path, which was not known when the flow began; 0
 * for any other path. Answers do not come earlier, and requests for what was just sent
 * cross it on their way.
 */
static inline void mmc_repair_stretch(struct mmc_repair_state *repair,
				      uint64_t trip_ns)
{
	mmc_loss_stretch(&repair->loss, trip_ns);
	if (repair->repairer.rest_ns < trip_ns)
		repair->repairer.rest_ns = trip_ns;
}

/*
 * Returns whether to send a NAK for missing chunks now. If so, writes it. To be called
 * until it returns false.
 */
bool mmc_repair_ask(struct mmc_repair_state *repair, uint64_t now_ns,
		    struct mmc_nak *nak);

/*
 * Takes a NAK that has arrived. Of this rank's own block only the first `sent_chunks`
 * chunks have been sent, and can be sent again. Returns false if its sender has asked
 * for more than it can lack, so that some of it is not answered.
 */
bool mmc_repair_on_nak(struct mmc_repair_state *repair,
		       const struct mmc_nak *nak, uint32_t sent_chunks,
		       uint64_t now_ns);

/* Returns whether `source` may send chunks of `owner`'s block to this rank again. */
bool mmc_repair_accepts(const struct mmc_repair_state *repair, uint32_t source,
			uint32_t owner);

/*
 * Returns the rank that is awaited: the one that is asked for the first missing chunk
 * or, if only reads are under way, the left neighbour; MMC_PEER_NONE if none is.
 */
uint32_t mmc_repair_awaited(const struct mmc_repair_state *repair);

/* Returns the rank to the right in the ring, which this rank serves. */
static inline uint32_t mmc_repair_right(const struct mmc_repair_state *repair)
{
	return (repair->rank + 1) % repair->layout->nranks;
}

/* Returns whether `peer` gets this rank's advert in the entry barrier. */
static inline bool
mmc_repair_advertises_to(const struct mmc_repair_state *repair, uint32_t peer)
{
	return repair->policy->advertises && peer == mmc_repair_right(repair);
}

/*
 * Returns when to ask for lost chunks, look for silent senders or fetch next, although
 * nothing arrives.
 */
static inline uint64_t
mmc_repair_deadline(const struct mmc_repair_state *repair)
{
	uint64_t at_ns = repair->policy->deadline(repair);
	uint64_t loss_ns = mmc_loss_deadline(&repair->loss);

	return at_ns < loss_ns ? at_ns : loss_ns;
}

#endif
