/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts how long one operation has not advanced. Also counts how long there has been
 * no sign that the ranks on which the operation depends are alive. The two times differ
 * if a rank's process is stopped: the process sends nothing, but its kernel or its
 * network adapter can still show that the process exists. Only observed time counts:
 * the time during which this process ran and looked at the clock (support/timer.h).
 *
 * An operation *advances* when something new arrives, when it sends chunks, and when it
 * enters another state. The *awaited* rank is the one from which the operation needs
 * something next.
 *
 * A rank is *late* while its process exists but does not answer. Evidence of a late
 * rank comes from this rank's own transport, or from another rank, which also says how
 * old the evidence is. Evidence does not become newer when it is passed on. Otherwise
 * ranks could keep it fresh for ever by repeating it to each other.
 */
#ifndef MMC_CORE_BARRIER_LIVENESS_H
#define MMC_CORE_BARRIER_LIVENESS_H

#include "core/types.h"
#include "support/timer.h"

struct mmc_liveness {
	uint64_t observed_ns; /* the time up to which all waits are counted */

	/*
	 * The waits. Each is the time since something happened. The first four are also
	 * reset to 0 whenever the operation advances.
	 */
	uint64_t unheard_ns;  /* since the awaited rank itself was heard */
	uint64_t unproven_ns; /* since the awaited rank was proven to exist */
	uint64_t stalled_ns;  /* since the operation advanced */
	/*
	 * Since the operation advanced, or since the newest evidence that some rank is
	 * late, whichever is less. A late rank explains why the operation does not
	 * advance.
	 */
	uint64_t unexplained_ns;
	uint64_t since_start_ns;   /* since the operation started */
	uint64_t owner_unheard_ns; /* since `owner` was set or last heard */

	/* When the transport may next be asked whether a rank's process exists. */
	uint64_t inquire_ns;
	uint64_t late_ns; /* when `late_rank` was last known to exist */
	/*
	 * When a late rank was last reported: the time of this rank's last report to
	 * all ranks, or of the newest evidence that another rank has sent, whichever is
	 * later. This rank reports again timeout_ns / 4 after that at the earliest
	 * (operation/liveness.c).
	 */
	uint64_t told_ns;
	uint32_t late_rank; /* MMC_PEER_NONE: no rank is known to be late */
	/*
	 * The owner of the first missing chunk, if the owner is not the awaited rank:
	 * this rank may await the chunk from its left neighbour, for example.
	 * Otherwise, or if no chunk is missing, MMC_PEER_NONE. Brought up to date when
	 * this rank makes inquiries (operation/liveness.c).
	 */
	uint32_t owner;
	/*
	 * This rank's own transport has found a late rank, and this rank has not yet
	 * decided whether to report it to all ranks.
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
static inline void mmc_liveness_observe(struct mmc_liveness *liveness,
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
static inline void mmc_liveness_hear_awaited(struct mmc_liveness *liveness)
{
	liveness->unheard_ns = 0;
	liveness->unproven_ns = 0;
}

/*
 * Resets the waits to 0 because the operation has advanced. Only `since_start_ns` and
 * `owner_unheard_ns` go on.
 */
static inline void mmc_liveness_reset(struct mmc_liveness *liveness)
{
	mmc_liveness_hear_awaited(liveness);
	liveness->unexplained_ns = 0;
	liveness->stalled_ns = 0;
}

/*
 * Records evidence that `rank` was late at `at_ns`, which explains why the operation
 * had not advanced by then. If `awaited`, `rank` is the awaited rank, and the evidence
 * also proves that it existed at `at_ns`. Evidence never makes a wait longer, and never
 * replaces newer evidence.
 */
void mmc_liveness_note_late(struct mmc_liveness *liveness, uint32_t rank,
			    uint64_t at_ns, bool awaited);

/*
 * Records that `rank` was heard, and therefore is not late. If `rank` is `owner`, resets
 * `owner_unheard_ns` to 0.
 */
static inline void mmc_liveness_hear_rank(struct mmc_liveness *liveness,
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
