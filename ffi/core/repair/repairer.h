/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others have asked this rank for. A request is kept until its gathering
 * time is over; then a chunk that few ranks lack goes to each by unicast, a chunk
 * that many lack to all, and neither again for a while to the same ranks: the next
 * request for it was probably sent before the repair came. A direct NAK, of a rank that
 * multicast may not reach, is answered at once and to that rank alone.
 *
 * Ranks that lack the same may ask one after the other, as they do when multicast was out
 * for a time. So a chunk that has gone to all, or to as many single ranks as are worth a
 * multicast, is common: it goes to all at each further request, ever more rarely, and to
 * single ranks only by direct NAKs.
 */
#ifndef MMC_CORE_REPAIR_REPAIRER_H
#define MMC_CORE_REPAIR_REPAIRER_H

#include "core/plan/bitmap.h"
#include "support/timer.h"

/* Requests kept at a time. A further one is dropped: its sender asks again. */
#define MMC_ASKS_MAX 256

struct mmc_ask {
	uint32_t peer;
	struct mmc_run run;
};

/* Answers to single ranks that are remembered; others count as sent to all. */
#define MMC_GIVEN_MAX 64

/* Direct NAKs kept at a time. A further one is dropped: its sender asks again. */
#define MMC_DIRECT_NAKS_MAX 64

struct mmc_repairer {
	struct mmc_bitmap wanted; /* asked for and not yet sent */
	struct mmc_bitmap shared; /* wanted by several */
	struct mmc_bitmap recent; /* sent to all in this resting time */
	struct mmc_bitmap before; /* sent to all in the one before */
	struct mmc_bitmap aired;  /* common chunks sent in this phase */
	uint8_t *tally; /* [nchunks] answers to single ranks, or COMMON */
	struct mmc_ask asks[MMC_ASKS_MAX];
	uint32_t nasks;
	struct mmc_ask
		direct_naks[MMC_DIRECT_NAKS_MAX]; /* answered by unicast only */
	uint32_t ndirect_naks;
	struct mmc_ask given[MMC_GIVEN_MAX]; /* to one rank, in these times */
	uint32_t ngiven;
	uint32_t ngiven_before; /* the first of these, in the one before */
	struct mmc_run own;	/* chunks that may go to all */
	const struct mmc_bitmap *present; /* what can be sent */
	bool gathers;
	uint32_t sharers;  /* who lack a chunk that goes to all, at least */
	bool idle;	   /* nothing that is wanted is present */
	uint32_t nlost;	   /* chunks that anybody has lacked */
	uint32_t nshared;  /* chunks that several have lacked */
	bool resting;	   /* something has been sent in this resting time */
	bool unconfirmed;  /* `shared` has grown since the last NCF */
	bool several;	   /* ranks lack a chunk that is wanted */
	uint64_t ready_ns; /* when gathering ends */
	uint64_t rest_ends_ns;
	uint64_t gather_ns;
	uint64_t rest_ns;
	struct mmc_backoff phase; /* in which a common chunk goes to all once */
};

/* The memory for an operation of `nchunks` chunks, in bytes. */
size_t mmc_repairer_bytes(uint32_t nchunks);

/*
 * Begins in `memory`, mmc_repairer_bytes() long, to send chunks of `present`, of which
 * those of `own` are the rank's own.
 * `gathers`: requests are kept for `gather_ns`, or a quarter of it if by then no two
 * ranks lack the same, and what `sharers` lack is multicast; else they are answered at
 * once and never by multicast. No rank is sent a chunk twice within `rest_ns`.
 */
void mmc_repairer_init(struct mmc_repairer *repairer, uint8_t *memory,
		       uint32_t nchunks, struct mmc_run own,
		       const struct mmc_bitmap *present, bool gathers,
		       uint32_t sharers, uint64_t gather_ns, uint64_t rest_ns);

/*
 * `peer` asks for `run`, chunks that this rank serves to it. Those that are not
 * present yet are sent when they are.
 */
void mmc_repairer_ask(struct mmc_repairer *repairer, uint32_t peer,
		      struct mmc_run run, uint64_t now_ns);

/* A chunk has become present, which may be wanted. */
static inline void mmc_repairer_fresh(struct mmc_repairer *repairer)
{
	repairer->idle = false;
}

/*
 * `peer` asks for `run`, which is present, to be sent to it alone, whoever else
 * wants it: what was multicast did not reach it.
 */
void mmc_repairer_ask_direct(struct mmc_repairer *repairer, uint32_t peer,
			     struct mmc_run run);

/*
 * Whether a repair is to be sent now. If so writes the chunks, at most
 * `nchunks_max` of them, and the rank they go to or MMC_PEER_ALL.
 */
bool mmc_repairer_next(struct mmc_repairer *repairer, uint64_t now_ns,
		       uint32_t nchunks_max, uint32_t *peer,
		       struct mmc_run *run);

/*
 * Whether askers are to be told what will be multicast, so that others need not
 * ask. If so writes up to MMC_RUNS_MAX runs to `runs` and how many to `nruns`.
 */
bool mmc_repairer_confirm(struct mmc_repairer *repairer, struct mmc_run *runs,
			  uint32_t *nruns);

/* Whether something that was asked for is still to be sent. */
static inline bool mmc_repairer_owes(const struct mmc_repairer *repairer)
{
	return repairer->nasks > 0 || repairer->ndirect_naks > 0;
}

/* When mmc_repairer_next() is to be called again. */
uint64_t mmc_repairer_deadline(const struct mmc_repairer *repairer);

#endif
