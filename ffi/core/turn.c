/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/turn.h"

/* A predecessor that has been silent for less is waiting for a processor. */
#define ALPHA_NS (2 * MMC_MS_NS)

/*
 * The shortest time a full window is waited for. Below a scheduler's slice every
 * descheduled receiver would be overrun on machines with few cores.
 */
#define LAG_MIN_NS (5 * MMC_MS_NS)

/*
 * The longest. A rate that was measured while waiting is too low, and trusting
 * it would make the next wait longer still.
 */
#define WAIT_MAX_NS (100 * MMC_MS_NS)

void mmc_turn_init(struct mmc_turn *turn, uint32_t rank,
		   const struct mmc_schedule *schedule)
{
	const struct mmc_block block =
		mmc_layout_block(&schedule->layout, rank);

	*turn = (struct mmc_turn){
		.schedule = *schedule,
		.chain = mmc_schedule_chain(schedule, &block),
		.start = mmc_schedule_start(schedule, &block),
		.nchunks = block.nchunks,
		.begin_ns = MMC_NEVER_NS,
		.lag_ns = MMC_NEVER_NS,
		.probe = { .at_ns = MMC_NEVER_NS },
	};
}

/* The time that `nchunks` of one chain take while all chains share the link. */
static uint64_t chain_time_ns(const struct mmc_turn *turn,
			      const struct mmc_path *path, uint32_t nchunks)
{
	uint64_t nbytes = (uint64_t)nchunks * turn->schedule.layout.chunk_bytes;

	nbytes *= turn->schedule.nchains;
	return mmc_min_u64(mmc_path_time_ns(path, nbytes), WAIT_MAX_NS);
}

/* The turn has come when the predecessors' last chunks are in sight. */
static bool may_begin(struct mmc_turn *turn, const struct mmc_chain *chain,
		      const struct mmc_path *path, uint64_t now_ns)
{
	uint32_t lead = turn->schedule.batch_chunks / 2;

	if (chain->seen + lead >= turn->start || chain->nleft == 0)
		return true;
	turn->begin_ns = chain->heard_ns + ALPHA_NS +
			 chain_time_ns(turn, path, turn->start - chain->seen);
	return now_ns >= turn->begin_ns && !path->backlog;
}

/* The chunks that the window leaves, seen from the next one to send. */
static uint32_t window_left(const struct mmc_turn *turn,
			    const struct mmc_watermark *mark)
{
	uint64_t limit = (uint64_t)mark->drained[turn->chain] +
			 turn->schedule.window_chunks;
	uint64_t at = (uint64_t)turn->start + turn->next;

	if (mark->step_chunks == 0)
		return turn->schedule.batch_chunks;
	if (limit <= at)
		return 0;
	return (uint32_t)mmc_min_u64(limit - at, turn->nchunks);
}

/* A full window opens by a batch when it has been full for too long. */
static uint32_t wait_for_window(struct mmc_turn *turn,
				const struct mmc_path *path, uint64_t now_ns)
{
	uint64_t window_ns =
		chain_time_ns(turn, path, turn->schedule.window_chunks);
	uint32_t batch = turn->schedule.batch_chunks;

	if (turn->lag_ns == MMC_NEVER_NS) {
		turn->lag_ns = now_ns + mmc_max_u64(LAG_MIN_NS, 2 * window_ns);
		mmc_backoff_start(&turn->probe, now_ns,
				  2 * path->srtt_ns +
					  (path->measured ? window_ns : 0));
		return 0;
	}
	if (now_ns < turn->lag_ns)
		return 0;
	turn->lag_ns = now_ns + chain_time_ns(turn, path, batch);
	return batch;
}

bool mmc_turn_next(struct mmc_turn *turn, const struct mmc_chain *chain,
		   const struct mmc_watermark *mark,
		   const struct mmc_path *path, uint64_t now_ns,
		   struct mmc_run *run)
{
	uint32_t left;

	if (mmc_turn_over(turn))
		return false;
	if (!turn->began && !may_begin(turn, chain, path, now_ns))
		return false;
	turn->began = true;
	left = window_left(turn, mark);
	if (left > 0) {
		turn->lag_ns = MMC_NEVER_NS;
		mmc_backoff_stop(&turn->probe);
	} else {
		left = wait_for_window(turn, path, now_ns);
	}
	left = mmc_min_u32(left, turn->schedule.batch_chunks);
	left = mmc_min_u32(left, turn->nchunks - turn->next);
	*run = (struct mmc_run){ .first = turn->next, .count = left };
	turn->next += left;
	return left > 0;
}

bool mmc_turn_probe(struct mmc_turn *turn, uint64_t now_ns)
{
	if (mmc_turn_over(turn))
		mmc_backoff_stop(&turn->probe);
	return mmc_backoff_due(&turn->probe, now_ns);
}

uint64_t mmc_turn_deadline(const struct mmc_turn *turn)
{
	if (mmc_turn_over(turn))
		return MMC_NEVER_NS;
	if (!turn->began)
		return turn->begin_ns;
	return mmc_min_u64(turn->lag_ns, turn->probe.at_ns);
}
