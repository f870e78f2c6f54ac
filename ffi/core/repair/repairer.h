/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers the NAKs of other ranks. A request is kept until its gathering time ends.
 * Then a chunk that few ranks lack goes to each of them by unicast, and a chunk that
 * many lack goes to all; neither goes to the same ranks again for a while, since the
 * next request for it was probably sent before the repair arrived. A direct NAK, from a
 * rank that multicast may not reach, is answered at once and to that rank alone.
 *
 * Ranks that lack the same chunk may ask one after the other, as they do after an
 * outage of multicast. So a chunk that has gone to all, or to as many single ranks as
 * are worth a multicast, is common: it goes to all at each further request, ever more
 * rarely, and to single ranks only after direct NAKs.
 */
#ifndef MMC_CORE_REPAIR_REPAIRER_H
#define MMC_CORE_REPAIR_REPAIRER_H

#include "core/plan/bitmap.h"
#include "core/repair/naks.h"
#include "support/timer.h"

/* Answers to single ranks that are remembered; further ones count as sent to all. */
#define MMC_GIVEN_MAX 64

/* Direct NAKs kept at a time. A further one is dropped: its sender asks again. */
#define MMC_DIRECT_NAKS_MAX 64

struct mmc_repairer {
	struct mmc_bitmap wanted; /* chunks asked for and not yet sent */
	struct mmc_bitmap shared; /* wanted chunks that will go to all */
	struct mmc_bitmap recent; /* sent to all in this resting time */
	struct mmc_bitmap before; /* sent to all in the resting time before */
	struct mmc_bitmap aired;  /* common chunks accepted in this phase */
	uint8_t *tally; /* [nchunks] answers to single ranks, or COMMON */
	struct mmc_asks asks;
	/* Requests to be answered by unicast only. */
	struct mmc_ask direct_naks[MMC_DIRECT_NAKS_MAX];
	uint32_t ndirect_naks;
	/* The chunks sent to single ranks in this resting time and the one before. */
	struct mmc_ask given[MMC_GIVEN_MAX];
	uint32_t ngiven;
	/* The number of leading entries of `given` from the resting time before. */
	uint32_t ngiven_before;
	struct mmc_run own;		  /* chunks that may go to all */
	const struct mmc_bitmap *present; /* chunks that can be sent */
	bool gathers;
	/* A chunk goes to all if at least this many ranks lack it. */
	uint32_t sharers;
	bool idle; /* no wanted chunk is present */
	/*
	 * Chunks that others lacked; one that is asked for after a repair counts again.
	 */
	uint32_t nlost;
	/* Chunks that were to go to all, each counted once. */
	uint32_t nshared;
	bool resting;	   /* something was sent in this resting time */
	bool unconfirmed;  /* `shared` has grown since the last NCF */
	bool several;	   /* two ranks lack the same wanted chunk */
	uint64_t ready_ns; /* when gathering ends */
	uint64_t rest_ends_ns;
	uint64_t gather_ns;
	uint64_t rest_ns;
	struct mmc_backoff phase; /* a common chunk goes to all once in each */
};

/* The bytes of memory for an operation of `nchunks` chunks. */
size_t mmc_repairer_bytes(uint32_t nchunks);

struct mmc_repairer_config {
	const struct mmc_bitmap *present; /* chunks that can be sent */
	struct mmc_run own;		  /* those that may go to all */
	/*
	 * Requests are kept for `gather_ns`, or a quarter of it if by then no two ranks
	 * lack the same chunk, and a chunk that `sharers` ranks lack is multicast.
	 * Otherwise requests are answered at once and never by multicast.
	 */
	bool gathers;
	uint32_t sharers;
	uint64_t gather_ns;
	uint64_t rest_ns; /* no rank is sent a chunk twice within it */
};

/* Initializes a repairer in `memory`, mmc_repairer_bytes() long. */
void mmc_repairer_init(struct mmc_repairer *repairer, uint8_t *memory,
		       const struct mmc_repairer_config *config);

/*
 * Takes the request of `peer` for `run`, chunks that this rank serves to it. Chunks
 * that are not present yet are sent once they are.
 */
void mmc_repairer_ask(struct mmc_repairer *repairer, uint32_t peer,
		      struct mmc_run run, uint64_t now_ns);

/* Records that a chunk, which may be wanted, has become present. */
static inline void mmc_repairer_fresh(struct mmc_repairer *repairer)
{
	repairer->idle = false;
}

/*
 * Takes the direct NAK of `peer` for `run`, which is present: it is sent to `peer`
 * alone, whichever other ranks want it, since multicast did not reach `peer`.
 */
void mmc_repairer_ask_direct(struct mmc_repairer *repairer, uint32_t peer,
			     struct mmc_run run);

/*
 * Returns whether a repair is to be sent now. If so, writes the chunks, at most
 * `nchunks_max` of them, and the rank they go to, or MMC_PEER_ALL.
 */
bool mmc_repairer_next(struct mmc_repairer *repairer, uint64_t now_ns,
		       uint32_t nchunks_max, uint32_t *peer,
		       struct mmc_run *run);

/*
 * Returns whether to announce what will be multicast, so that other ranks need not ask.
 * If so, writes up to MMC_RUNS_MAX runs to `runs` and their number to `nruns`.
 */
bool mmc_repairer_confirm(struct mmc_repairer *repairer, struct mmc_run *runs,
			  uint32_t *nruns);

/* Returns whether chunks that were asked for are still to be sent. */
static inline bool mmc_repairer_owes(const struct mmc_repairer *repairer)
{
	return repairer->asks.count > 0 || repairer->ndirect_naks > 0;
}

/* Returns when to call mmc_repairer_next() again. */
uint64_t mmc_repairer_deadline(const struct mmc_repairer *repairer);

#endif
