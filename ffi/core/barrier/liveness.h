/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long one operation has waited, in observed time, and which rank stands still.
 * Liveness and progress are two things: a stopped process makes no progress, yet its
 * kernel, or its network adapter, still vouches for it.
 *
 * A rank is *late* while its process exists but does not answer. Evidence of that comes
 * from the transport, or from another rank together with its age. The age only grows as
 * ranks pass it on, so that no circle of hearsay keeps itself alive.
 */
#ifndef MMC_CORE_BARRIER_LIVENESS_H
#define MMC_CORE_BARRIER_LIVENESS_H

#include "core/types.h"
#include "support/timer.h"

struct mmc_liveness {
	uint64_t looked_ns;   /* when the waits below were last advanced */
	uint64_t unheard_ns;  /* since the awaited rank itself was heard */
	uint64_t unproven_ns; /* since it was heard or known to exist */
	/* Since news arrived, or a late rank excused its lack. */
	uint64_t idle_ns;
	uint64_t stalled_ns;  /* since news arrived */
	uint64_t entering_ns; /* since the start of the operation */
	uint64_t unseen_ns;   /* since `owner` was heard */
	uint64_t inquire_ns;  /* when the transport may next be asked */
	uint64_t late_ns;     /* when `late_rank` was last known to exist */
	uint64_t told_ns;     /* when all ranks were last told of `late_rank` */
	uint32_t late_rank;   /* MMC_PEER_ALL: no rank is known to be late */
	/*
	 * The owner of missing data for which another rank is awaited, or MMC_PEER_ALL.
	 */
	uint32_t owner;
	bool witnessed; /* the transport itself has vouched for a late rank */
};

static inline void mmc_liveness_init(struct mmc_liveness *liveness,
				     uint64_t now_ns)
{
	*liveness = (struct mmc_liveness){
		.looked_ns = now_ns,
		.late_rank = MMC_PEER_ALL,
		.owner = MMC_PEER_ALL,
	};
}

/* Advances all waits to `now_ns`. */
static inline void mmc_liveness_look(struct mmc_liveness *liveness,
				     uint64_t now_ns)
{
	uint64_t elapsed_ns = mmc_look(&liveness->looked_ns, now_ns);

	liveness->unheard_ns += elapsed_ns;
	liveness->unproven_ns += elapsed_ns;
	liveness->idle_ns += elapsed_ns;
	liveness->stalled_ns += elapsed_ns;
	liveness->entering_ns += elapsed_ns;
	liveness->unseen_ns += elapsed_ns;
}

/* Records that the awaited rank itself was heard. */
static inline void mmc_liveness_hear(struct mmc_liveness *liveness)
{
	liveness->unheard_ns = 0;
	liveness->unproven_ns = 0;
}

/* Records that news arrived: all waits but the one for entry begin anew. */
static inline void mmc_liveness_renew(struct mmc_liveness *liveness)
{
	mmc_liveness_hear(liveness);
	liveness->idle_ns = 0;
	liveness->stalled_ns = 0;
}

/*
 * Notes that `rank` was late at `at_ns`. With `awaited` that proves the awaited rank
 * alive; in any case it excuses that nothing new arrived until then. Evidence that is
 * older than what is known changes nothing.
 */
void mmc_liveness_note(struct mmc_liveness *liveness, uint32_t rank,
		       uint64_t at_ns, bool awaited);

/* Records that `rank` was heard: it is not late any more. */
static inline void mmc_liveness_clear(struct mmc_liveness *liveness,
				      uint32_t rank)
{
	if (liveness->late_rank == rank)
		liveness->late_rank = MMC_PEER_ALL;
	if (liveness->owner == rank)
		liveness->unseen_ns = 0;
}

/* Returns the rank that was late within the last `limit_ns`, or MMC_PEER_ALL. */
static inline uint32_t mmc_liveness_late(const struct mmc_liveness *liveness,
					 uint64_t limit_ns)
{
	if (liveness->late_rank == MMC_PEER_ALL ||
	    liveness->looked_ns - liveness->late_ns >= limit_ns)
		return MMC_PEER_ALL;
	return liveness->late_rank;
}

#endif
