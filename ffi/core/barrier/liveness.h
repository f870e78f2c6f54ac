/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long one operation has been waiting for each thing that it needs, and which rank
 * does not answer. The *awaited* rank is the one from which the operation next needs
 * something. Only observed time counts (support/timer.h). Liveness and progress are two things: a
 * stopped process makes no progress, yet its kernel or its network adapter still
 * vouches for it.
 *
 * A rank is *late* while its process exists but does not answer. The transport finds
 * that out, or another rank reports it, with the age of its evidence. Evidence that is
 * passed on never gets younger; otherwise ranks could keep it fresh for ever by
 * repeating it to each other.
 */
#ifndef MMC_CORE_BARRIER_LIVENESS_H
#define MMC_CORE_BARRIER_LIVENESS_H

#include "core/types.h"
#include "support/timer.h"

struct mmc_liveness {
	uint64_t observed_ns; /* until when the waits below are counted */
	uint64_t unheard_ns;  /* since the awaited rank itself was heard */
	uint64_t unproven_ns; /* since it was heard or proven to exist */
	/*
	 * Since the operation last advanced, or since there was last evidence of a late
	 * rank: such a rank explains why the operation does not advance.
	 */
	uint64_t idle_ns;
	uint64_t stalled_ns;	   /* since the operation last advanced */
	uint64_t entering_ns;	   /* since the start of the operation */
	uint64_t owner_unheard_ns; /* since `owner` was heard */
	uint64_t inquire_ns;	   /* when the transport may be asked next */
	uint64_t late_ns;   /* when `late_rank` was last known to exist */
	uint64_t told_ns;   /* when all ranks were last told of `late_rank` */
	uint32_t late_rank; /* MMC_PEER_NONE: no rank is known to be late */
	/*
	 * The owner of missing chunks, if another rank is expected to bring them, such
	 * as the left neighbour; else MMC_PEER_NONE.
	 */
	uint32_t owner;
	/*
	 * This rank's own transport has found that `late_rank` is late: the other ranks
	 * have to be told.
	 */
	bool witnessed;
};

/* Initializes the waits of an operation that starts at `now_ns`. */
static inline void mmc_liveness_init(struct mmc_liveness *liveness,
				     uint64_t now_ns)
{
	*liveness = (struct mmc_liveness){
		.observed_ns = now_ns,
		.late_rank = MMC_PEER_NONE,
		.owner = MMC_PEER_NONE,
	};
}

/* Adds the observed time until `now_ns` to all waits. */
static inline void mmc_liveness_advance(struct mmc_liveness *liveness,
					uint64_t now_ns)
{
	uint64_t elapsed_ns = mmc_observe(&liveness->observed_ns, now_ns);

	liveness->unheard_ns += elapsed_ns;
	liveness->unproven_ns += elapsed_ns;
	liveness->idle_ns += elapsed_ns;
	liveness->stalled_ns += elapsed_ns;
	liveness->entering_ns += elapsed_ns;
	liveness->owner_unheard_ns += elapsed_ns;
}

/* Records that the awaited rank itself was heard. */
static inline void mmc_liveness_hear(struct mmc_liveness *liveness)
{
	liveness->unheard_ns = 0;
	liveness->unproven_ns = 0;
}

/*
 * Records that news arrived: all waits except those for entry and for `owner` begin anew.
 */
static inline void mmc_liveness_renew(struct mmc_liveness *liveness)
{
	mmc_liveness_hear(liveness);
	liveness->idle_ns = 0;
	liveness->stalled_ns = 0;
}

/*
 * Records that `rank` was late at `at_ns`, which explains why nothing new had arrived by
 * then. With `awaited`, `rank` is the awaited one, whose process is thereby proven to
 * exist. Older evidence does not replace newer, and no wait ever grows.
 */
void mmc_liveness_note(struct mmc_liveness *liveness, uint32_t rank,
		       uint64_t at_ns, bool awaited);

/* Records that `rank` was heard: it is not late any more. */
static inline void mmc_liveness_clear(struct mmc_liveness *liveness,
				      uint32_t rank)
{
	if (liveness->late_rank == rank)
		liveness->late_rank = MMC_PEER_NONE;
	if (liveness->owner == rank)
		liveness->owner_unheard_ns = 0;
}

/* Returns the rank that was late within the last `limit_ns`, or MMC_PEER_NONE. */
static inline uint32_t mmc_liveness_late(const struct mmc_liveness *liveness,
					 uint64_t limit_ns)
{
	if (liveness->late_rank == MMC_PEER_NONE ||
	    liveness->observed_ns - liveness->late_ns >= limit_ns)
		return MMC_PEER_NONE;
	return liveness->late_rank;
}

#endif
