/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts how long one operation has waited to advance, and how long it has waited for
 * signs of life from the ranks that it depends on. These are two things, since a
 * stopped process does nothing, yet its kernel or its network adapter still vouches for
 * it. Only observed time counts (support/timer.h).
 *
 * An operation *advances* when something new arrives, when it sends chunks, and when it
 * enters another state. The *awaited* rank is the one from which it needs something
 * next.
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
	uint64_t observed_ns; /* the time up to which all waits are counted */

	/* The waits. The first four also restart whenever the operation advances. */
	uint64_t unheard_ns;  /* since the awaited rank itself was heard */
	uint64_t unproven_ns; /* since the awaited rank was proven to exist */
	uint64_t stalled_ns;  /* since the operation advanced */
	/*
	 * The same as `stalled_ns`, or the time since the newest evidence that some
	 * rank is late, if that is less: a late rank explains why the operation is
	 * stalled.
	 */
	uint64_t unexplained_ns;
	uint64_t since_start_ns;   /* since the operation started */
	uint64_t owner_unheard_ns; /* since `owner` was heard or became owner */

	/* When the transport may next be asked whether a rank's process exists. */
	uint64_t inquire_ns;
	uint64_t late_ns; /* when `late_rank` was last known to exist */
	/*
	 * When this rank last told all ranks of a late one or, if that is more recent,
	 * the time of the newest evidence received from another rank. This rank tells
	 * them again only if timeout_ns / 4 has passed since (operation/liveness.c).
	 */
	uint64_t told_ns;
	uint32_t late_rank; /* MMC_PEER_NONE: no rank is known to be late */
	/*
	 * The owner of missing chunks, if they are awaited from a rank that is not
	 * their owner, such as the left neighbour; otherwise MMC_PEER_NONE.
	 */
	uint32_t owner;
	/*
	 * Whether this rank's own transport has found a late rank about which the other
	 * ranks may still have to be told.
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
	liveness->unexplained_ns += elapsed_ns;
	liveness->stalled_ns += elapsed_ns;
	liveness->since_start_ns += elapsed_ns;
	liveness->owner_unheard_ns += elapsed_ns;
}

/* Records that the awaited rank itself was heard. */
static inline void mmc_liveness_hear(struct mmc_liveness *liveness)
{
	liveness->unheard_ns = 0;
	liveness->unproven_ns = 0;
}

/*
 * Records that the operation has advanced: all waits are reset to 0, except
 * `since_start_ns` and `owner_unheard_ns`.
 */
static inline void mmc_liveness_renew(struct mmc_liveness *liveness)
{
	mmc_liveness_hear(liveness);
	liveness->unexplained_ns = 0;
	liveness->stalled_ns = 0;
}

/*
 * Records that `rank` was late at `at_ns`, which explains why the operation had not
 * advanced by then. If `awaited`, `rank` is the awaited one, and the evidence proves
 * that it exists. Older evidence does not replace newer evidence, and makes no wait
 * longer.
 */
void mmc_liveness_note(struct mmc_liveness *liveness, uint32_t rank,
		       uint64_t at_ns, bool awaited);

/*
 * Records that `rank` was heard, so that it is no longer late. If it is `owner`,
 * `owner_unheard_ns` is reset to 0.
 */
static inline void mmc_liveness_clear(struct mmc_liveness *liveness,
				      uint32_t rank)
{
	if (liveness->late_rank == rank)
		liveness->late_rank = MMC_PEER_NONE;
	if (liveness->owner == rank)
		liveness->owner_unheard_ns = 0;
}

/*
 * Returns `late_rank` if it was last known to exist less than `limit_ns` ago, else
 * MMC_PEER_NONE.
 */
static inline uint32_t mmc_liveness_late(const struct mmc_liveness *liveness,
					 uint64_t limit_ns)
{
	if (liveness->late_rank == MMC_PEER_NONE ||
	    liveness->observed_ns - liveness->late_ns >= limit_ns)
		return MMC_PEER_NONE;
	return liveness->late_rank;
}

#endif
