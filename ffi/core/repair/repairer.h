/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers the NAKs of other ranks. A NAK is kept until its gathering time ends. Then a
 * chunk that few ranks lack goes to each of them by unicast, and a chunk that many lack
 * goes to all by multicast. It does not go to the same ranks again for a *resting
 * time*, since another NAK for it was probably sent before the repair arrived. A direct
 * NAK comes from a rank that multicast may not reach; it is answered at once, and to
 * that rank alone.
 *
 * Ranks that lack the same chunk may ask one after the other, as they do after an
 * outage of multicast. So a chunk that has gone to all, or to as many single ranks as
 * are worth a multicast, is *common*. At each further NAK it goes to all, but ever more
 * rarely: once in a *phase*, which doubles each time. Only direct NAKs still get it by
 * unicast.
 */
#ifndef MMC_CORE_REPAIR_REPAIRER_H
#define MMC_CORE_REPAIR_REPAIRER_H

#include "core/plan/bitmap.h"
#include "core/repair/naks.h"
#include "support/timer.h"

/* The most answers to single ranks that are remembered; others count as sent to all. */
#define MMC_GIVEN_MAX 64

/*
 * The most runs of direct NAKs that are kept; of a further one the sender asks again.
 */
#define MMC_DIRECT_NAKS_MAX 64

struct mmc_repairer {
	struct mmc_bitmap wanted; /* chunks asked for and not yet sent */
	struct mmc_bitmap shared; /* wanted chunks that will go to all */
	struct mmc_bitmap recent; /* sent to all in this resting time */
	struct mmc_bitmap before; /* sent to all in the resting time before */
	/* Common chunks that are to go to all in this phase, or have. */
	struct mmc_bitmap aired;
	/* [nchunks] To how many single ranks a chunk went; 255: it went to all. */
	uint8_t *tally;
	struct mmc_naks naks;
	/* The runs of direct NAKs, the oldest first. */
	struct mmc_peer_run direct_naks[MMC_DIRECT_NAKS_MAX];
	uint32_t ndirect_naks;
	/* The chunks sent to single ranks in this resting time and the one before. */
	struct mmc_peer_run given[MMC_GIVEN_MAX];
	uint32_t ngiven;
	/* The number of leading entries of `given` from the resting time before. */
	uint32_t ngiven_before;
	struct mmc_run own; /* this rank's block, which may go to all */
	const struct mmc_bitmap *present; /* chunks that can be sent */
	bool gathers;			  /* as in struct mmc_repairer_config */
	/* A chunk goes to all if at least so many ranks lack it. */
	uint32_t multicast_min;
	bool idle; /* no wanted chunk is present */
	/*
	 * How often chunks were found to be lost; one that is lost again counts again.
	 */
	uint32_t nlost;
	/* Chunks that were to go to all, each counted once. */
	uint32_t nshared;
	bool resting;	  /* something was sent in this resting time */
	bool unconfirmed; /* `shared` has grown since the last NCF */
	bool several;	  /* two ranks lack the same wanted chunk */
	/* Parity answers several ranks at once (pooling.h): no chunk is shared. */
	bool pools;		  /* mmc_repairer_pools() is to be asked */
	uint64_t ready_ns;	  /* when the gathering time ends */
	uint64_t rest_ends_ns;	  /* when this resting time ends */
	uint64_t gather_ns;	  /* how long a gathering time is */
	uint64_t rest_ns;	  /* how long a resting time is */
	struct mmc_backoff phase; /* ends a phase and begins the next */
};

/* Returns whether parity answers several ranks at once, which needs a code. */
static inline bool mmc_repairer_pools(const struct mmc_repairer *repairer)
{
#ifdef MMC_BARE
	(void)repairer;
	return false;
#else
	return repairer->pools;
#endif
}

/* Returns the bytes of memory that a repairer of `nchunks` chunks takes. */
size_t mmc_repairer_bytes(uint32_t nchunks);

struct mmc_repairer_config {
	const struct mmc_bitmap *present; /* chunks that can be sent */
	struct mmc_run own;		  /* those that may go to all */
	/*
	 * Whether NAKs are kept for the gathering time, or for a quarter of it if by
	 * then no two ranks lack the same chunk, and a chunk that `multicast_min` ranks lack
	 * is multicast. Otherwise NAKs are answered at once, and never by multicast.
	 */
	bool gathers;
	uint32_t multicast_min;
	uint64_t gather_ns; /* the gathering time */
	uint64_t rest_ns;   /* the resting time */
};

/* Initializes a repairer in `memory`, mmc_repairer_bytes() long. */
void mmc_repairer_init(struct mmc_repairer *repairer, uint8_t *memory,
		       const struct mmc_repairer_config *config);

/*
 * Takes a NAK of `peer` for `run`, chunks that this rank serves to it. Chunks that are
 * not present yet are sent once they are.
 */
void mmc_repairer_on_nak(struct mmc_repairer *repairer, uint32_t peer,
			 struct mmc_run run, uint64_t now_ns);

/* Records that some chunk has become present, which may be wanted. */
static inline void mmc_repairer_fresh(struct mmc_repairer *repairer)
{
	repairer->idle = false;
}

/*
 * Takes a direct NAK of `peer` for `run`, which must be present. It goes to `peer`
 * alone, however many other ranks want it, since multicast did not reach `peer`.
 */
void mmc_repairer_on_direct_nak(struct mmc_repairer *repairer, uint32_t peer,
				struct mmc_run run);

/*
 * Returns whether chunks are to be sent again now. If so, writes which to `run`, at
 * most `nchunks_max` of them, and to which rank to `peer`, or MMC_PEER_ALL; they count
 * as sent.
 */
bool mmc_repairer_next(struct mmc_repairer *repairer, uint64_t now_ns,
		       uint32_t nchunks_max, uint32_t *peer,
		       struct mmc_run *run);

/*
 * Records that `run`, which was asked for, goes to `peer`, or to all for MMC_PEER_ALL. What
 * others still want stays wanted.
 */
void mmc_repairer_hand_out(struct mmc_repairer *repairer, uint32_t peer,
			   struct mmc_run run, uint64_t now_ns);

/*
 * Returns whether to send an NCF now, which says what will be multicast, so that others
 * need not ask. If so, writes up to MMC_RUNS_MAX runs to `runs` and their number to
 * `nruns`; the NCF counts as sent.
 */
bool mmc_repairer_confirm(struct mmc_repairer *repairer, struct mmc_run *runs,
			  uint32_t *nruns);

/* Returns whether chunks that were asked for are still to be sent. */
static inline bool mmc_repairer_owes(const struct mmc_repairer *repairer)
{
	return repairer->naks.count > 0 || repairer->ndirect_naks > 0;
}

/* Returns when to call mmc_repairer_next() again although nothing arrives. */
uint64_t mmc_repairer_deadline(const struct mmc_repairer *repairer);

#endif
