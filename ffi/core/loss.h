/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What multicast has lost, and when to ask for it. Chunks of a chain come in
 * the order of their positions; what is missing below the highest position
 * seen is lost. A chain that falls silent is asked about: its next sender's
 * record tells how much it has sent, which is as good as having seen it. The
 * record of one that goes on sending is not: it overtakes data in our buffers.
 *
 * A chunk is asked for after an allowance for reordering and a random delay in
 * which others' requests for it may be heard of, and again only after one to
 * two retry intervals, which double while nothing comes.
 */
#ifndef MMC_CORE_LOSS_H
#define MMC_CORE_LOSS_H

#include "core/bitmap.h"
#include "core/prng.h"
#include "core/repair.h"
#include "core/schedule.h"
#include "core/timer.h"

struct mmc_chain {
	uint32_t seen;	   /* positions below have been received or passed by */
	uint64_t told_ns;  /* when `told` last grew */
	uint32_t told;	   /* positions below have been sent, a record says */
	uint32_t nheard;   /* chunks that came by multicast */
	uint32_t nleft;	   /* chunks that are not yet claimed */
	uint64_t heard_ns; /* when it was heard of last */
	uint64_t trust_ns; /* when `told` is as good as seen */
	struct mmc_backoff
		silence; /* since `heard_ns`, when that was long ago */
};

struct mmc_loss {
	uint32_t rank;
	struct mmc_schedule schedule;
	const struct mmc_repair_strategy *strategy;
	struct mmc_chain *chains;
	struct mmc_bitmap asked;  /* in this retry interval */
	struct mmc_bitmap before; /* in the one before */
	struct mmc_bitmap lost;	  /* ever */
	struct mmc_prng prng;
	uint64_t quiet_ns;     /* a chain silent for so long is asked about */
	uint64_t retry_ns;     /* the first retry interval */
	uint64_t allowance_ns; /* for reordering */
	uint64_t jitter_ns;    /* random delay, at most */
	uint64_t ask_ns;       /* when to look for what is missing */
	uint64_t silence_ns;   /* when to look for silent chains */
	struct mmc_backoff retry;
	uint32_t nasked;	/* retry intervals since nothing was missing */
	uint32_t budget_chunks; /* that may be asked for and not yet here */
	uint32_t waited_chunks; /* that are */
	uint32_t sweep_chunk;	/* where looking goes on; nchunks: it is over */
	uint32_t silence_chain; /* likewise, nchains */
	bool missing;		/* found in this sweep */
	bool held;		/* the budget has ended it */
	bool passed;		/* `seen` has grown by what records told */
};

/* The memory for `nchunks` chunks in at most `nchains` chains, in bytes. */
size_t mmc_loss_bytes(uint32_t nchunks, uint32_t nchains);

/* Begins in `memory`, mmc_loss_bytes() long; nothing is expected yet. */
void mmc_loss_init(struct mmc_loss *loss, uint8_t *memory, uint32_t rank,
		   uint32_t nchunks, uint32_t nchains, uint64_t seed,
		   const struct mmc_repair_strategy *strategy);

/*
 * The bulk may flow: chunks are expected from now on, as planned by `schedule`.
 * Those in `claimed` have come already. `srtt_ns` is the largest round trip,
 * `late_ns` how late chunks may be that were asked for too soon before,
 * `batch_ns` the time from one batch of a chain to the next. No more than
 * `budget_chunks` are asked for and waited for at a time.
 */
void mmc_loss_begin(struct mmc_loss *loss, const struct mmc_schedule *schedule,
		    const struct mmc_bitmap *claimed, uint64_t srtt_ns,
		    uint64_t late_ns, uint64_t batch_ns, uint32_t budget_chunks,
		    uint64_t now_ns);

/* Something below a position just seen is missing: it will be asked for. */
__attribute__((cold)) void mmc_loss_gap(struct mmc_loss *loss, uint64_t now_ns);

/* A chunk at `position` of `chain` came for the first time, by multicast. */
static inline void mmc_loss_hear(struct mmc_loss *loss, uint32_t chain,
				 uint32_t position, uint64_t now_ns)
{
	struct mmc_chain *at = &loss->chains[chain];
	uint32_t seen = at->seen;

	at->heard_ns = now_ns;
	if (position < seen)
		return;
	at->seen = position + 1;
	if (position > seen)
		mmc_loss_gap(loss, now_ns);
}

/* This rank has sent `count` chunks from `position` of its chain on. */
static inline void mmc_loss_sent(struct mmc_loss *loss, uint32_t chain,
				 uint32_t position, uint32_t count,
				 uint64_t now_ns)
{
	mmc_loss_hear(loss, chain, position, now_ns);
	if (position + count > loss->chains[chain].seen)
		loss->chains[chain].seen = position + count;
}

/*
 * `owner` says that it has sent the first `sent_chunks` of its block; `pausing`:
 * and that no more will come soon, so what is not here yet is not on its way.
 * Returns whether its silence was asked about, and it had sent nothing in it.
 */
bool mmc_loss_tell(struct mmc_loss *loss, uint32_t owner, uint32_t sent_chunks,
		   bool pausing, uint64_t now_ns);

/* Takes note that a chunk that may have been asked for is here. */
__attribute__((cold)) void mmc_loss_came(struct mmc_loss *loss, uint32_t chunk,
					 uint64_t now_ns);

/* `chunk`, of `chain`, is claimed, in whatever way it came. */
static inline void mmc_loss_mend(struct mmc_loss *loss, uint32_t chain,
				 uint32_t chunk, uint64_t now_ns)
{
	loss->chains[chain].nleft--;
	if (loss->waited_chunks > 0)
		mmc_loss_came(loss, chunk, now_ns);
}

/* Nothing will be multicast: all that is missing is to be asked for. */
void mmc_loss_expect_nothing(struct mmc_loss *loss,
			     const struct mmc_repair_strategy *strategy,
			     uint64_t now_ns);

/* A repair has come: asking helps, so the next retry need not wait longer. */
static inline void mmc_loss_helped(struct mmc_loss *loss)
{
	loss->retry.interval_ns = loss->retry_ns;
}

/*
 * A donor says that it will multicast `run`, which lies within the operation,
 * so it need not be asked. Returns how many of its chunks turn out lost here.
 */
uint32_t mmc_loss_hush(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		       struct mmc_run run, uint64_t now_ns);

/*
 * Whether a donor is to be asked now for chunks not in `claimed`. If so writes
 * whom, and up to MMC_RUNS_MAX runs to `runs`, and adds the number of chunks
 * asked for the first time to `*nlost`. Call until it returns false.
 */
bool mmc_loss_ask(struct mmc_loss *loss, const struct mmc_bitmap *claimed,
		  uint64_t now_ns, uint32_t *donor, struct mmc_run *runs,
		  uint32_t *nruns, uint32_t *nlost);

/*
 * Whether a silent chain's next sender is to be asked for its record now; if so
 * writes its rank. Call until it returns false. What has been told of silent
 * chains is taken as seen, and `passed` set.
 */
bool mmc_loss_silent(struct mmc_loss *loss, uint64_t now_ns, uint32_t *peer);

/* The number of chunks that came by multicast. */
uint32_t mmc_loss_heard(const struct mmc_loss *loss);

/*
 * A sender in a chain from which no chunk came by multicast although others send
 * enough there to tell; MMC_PEER_ALL if every chain was heard.
 */
uint32_t mmc_loss_unheard(const struct mmc_loss *loss);

/* When the two above are to be called again. */
uint64_t mmc_loss_deadline(const struct mmc_loss *loss);

#endif
