/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/flow/turn.h"

/* A predecessor that has been silent for less is probably waiting for a processor. */
#define ALPHA_NS (2 * MMC_MS_NS)

/* How long to wait for the first sender of a chain that is far behind. */
#define FIRST_PATIENCE_NS (10 * MMC_MS_NS)

/* How long the predecessor's answer may take, besides two round trips. */
#define ANSWER_NS MMC_MS_NS

/* Fewer chunks than this tell no rate. */
#define RATE_CHUNKS_MIN 64

/*
 * The longest wait. A rate measured while waiting is too low, and trusting it would
 * make the next wait longer still.
 */
#define WAIT_MAX_NS (100 * MMC_MS_NS)

void mmc_turn_init(struct mmc_turn *turn, uint32_t rank,
		   const struct mmc_schedule *schedule, uint64_t now_ns)
{
	const struct mmc_layout *layout = &schedule->layout;
	const struct mmc_block block = mmc_layout_block(layout, rank);
	uint32_t position = mmc_schedule_turn(schedule, &block);

	*turn = (struct mmc_turn){
		.schedule = *schedule,
		.chain = mmc_schedule_chain(schedule, &block),
		.turn = position,
		.start = mmc_schedule_start(schedule, &block),
		.nchunks = block.nchunks,
		.predecessor =
			position == 0
				? MMC_PEER_ALL
				: mmc_layout_sender(layout,
						    block.number -
							    schedule->nchains),
		.flow_ns = now_ns,
		.drained_ns = now_ns,
		.patience_ns = ALPHA_NS,
		.begin_ns = MMC_NEVER_NS,
		.lag_ns = MMC_NEVER_NS,
		.probe = { .at_ns = MMC_NEVER_NS },
	};
}

/*
 * Returns the time that `nchunks` of one chain take while all chains share the link, at
 * the rate of this operation once enough chunks have arrived: the rate of earlier
 * operations may be wrong, or a guess.
 */
static uint64_t chain_time_ns(const struct mmc_turn *turn,
			      const struct mmc_loss *loss,
			      const struct mmc_watermark *watermark,
			      const struct mmc_path *path, uint32_t nchunks,
			      uint64_t now_ns)
{
	uint64_t all_chunks = (uint64_t)nchunks * mmc_max_u32(1, loss->nopen);
	/*
	 * A rank that sends alone hears nothing: the chunks that receivers have stand
	 * in.
	 */
	uint32_t came = mmc_max_u32(mmc_loss_heard(loss),
				    watermark->drained[turn->chain]);
	uint64_t time_ns;

	if (came >= RATE_CHUNKS_MIN)
		time_ns = all_chunks * (now_ns - turn->flow_ns) / came;
	else
		time_ns = mmc_path_time_ns(
			path, all_chunks * turn->schedule.layout.chunk_bytes);
	return mmc_min_u64(time_ns, WAIT_MAX_NS);
}

/*
 * Returns when to stop waiting for the chain's first sender with more to come; 0: it
 * need not be waited for. Where as many senders as receivers follow have not ended, any
 * sender that begins makes receivers give up the first.
 */
static uint64_t first_until_ns(const struct mmc_turn *turn,
			       const struct mmc_chain *chain)
{
	if (turn->turn < chain->nfollowed)
		return 0;
	return mmc_chain_sequence(chain, chain->turn)->heard_ns +
	       FIRST_PATIENCE_NS;
}

/*
 * Returns whether the turn may begin: the predecessor's last chunks are in sight, or it
 * says that all are sent.
 */
static bool is_free(const struct mmc_turn *turn, const struct mmc_loss *loss,
		    uint64_t now_ns)
{
	const struct mmc_chain *chain = &loss->chains[turn->chain];
	uint32_t lead = turn->schedule.batch_chunks / 2;
	const struct mmc_sequence *before;

	if (chain->turn >= turn->turn)
		return true;
	if (now_ns < first_until_ns(turn, chain))
		return false;
	before = mmc_chain_sequence(chain, turn->turn - 1);
	if (before == NULL)
		return mmc_chain_is_over(chain, turn->turn - 1);
	/* Several small blocks may be in sight: no more begin than are followed. */
	return before->told == before->nchunks ||
	       (before->end + lead >= before->nchunks &&
		chain->seen + lead >= turn->start &&
		chain->nbegun + MMC_CHAIN_SEQUENCES / 4 >= turn->turn);
}

/* Decides when the predecessor has been silent for too long. */
static void look_back(struct mmc_turn *turn, const struct mmc_loss *loss,
		      const struct mmc_watermark *watermark,
		      const struct mmc_path *path, uint64_t now_ns)
{
	const struct mmc_chain *chain = &loss->chains[turn->chain];
	const struct mmc_sequence *at = mmc_chain_sequence(chain, chain->turn);
	const struct mmc_sequence *before =
		mmc_chain_sequence(chain, turn->turn - 1);
	uint64_t ahead_ns = 0;

	if (before != NULL && before->end > 0)
		at = before;
	/* Other senders of the chain precede the predecessor and take their time. */
	if (at != before)
		ahead_ns = chain_time_ns(turn, loss, watermark, path,
					 turn->start - mmc_min_u32(turn->start,
								   chain->seen),
					 now_ns);
	if (at->heard_ns > turn->asked_ns)
		turn->patience_ns = ALPHA_NS;
	if (mmc_max_u64(at->heard_ns, turn->answered_ns) > turn->asked_ns)
		turn->asked = false;
	if (!turn->asked)
		turn->begin_ns = mmc_max_u64(at->heard_ns, turn->answered_ns) +
				 turn->patience_ns + ahead_ns;
}

bool mmc_turn_ask(struct mmc_turn *turn, const struct mmc_loss *loss,
		  const struct mmc_watermark *watermark,
		  const struct mmc_path *path, uint64_t now_ns)
{
	if (turn->began || mmc_turn_over(turn) || is_free(turn, loss, now_ns))
		return false;
	look_back(turn, loss, watermark, path, now_ns);
	if (turn->asked || now_ns < turn->begin_ns || path->backlog)
		return false;
	turn->asked = true;
	turn->asked_ns = now_ns;
	turn->patience_ns =
		mmc_min_u64(2 * turn->patience_ns, MMC_BACKOFF_MAX_NS);
	turn->begin_ns = now_ns + ANSWER_NS + 2 * path->srtt_ns;
	return true;
}

static bool may_begin(struct mmc_turn *turn, const struct mmc_loss *loss,
		      const struct mmc_watermark *watermark,
		      const struct mmc_path *path, uint64_t now_ns)
{
	if (is_free(turn, loss, now_ns))
		return true;
	look_back(turn, loss, watermark, path, now_ns);
	turn->begin_ns =
		mmc_max_u64(turn->begin_ns,
			    first_until_ns(turn, &loss->chains[turn->chain]));
	return turn->asked && now_ns >= turn->begin_ns && !path->backlog;
}

/*
 * Returns how many chunks the window leaves. A rank that was overtaken and the rank
 * that overtook it share the window: the chunks of the chain that all receivers have
 * are what counts.
 */
static uint32_t window_left(const struct mmc_turn *turn,
			    const struct mmc_watermark *watermark)
{
	uint64_t limit = (uint64_t)watermark->drained[turn->chain] +
			 turn->schedule.window_chunks;
	uint64_t here = watermark->own[turn->chain];

	if (watermark->step_chunks == 0)
		return turn->schedule.batch_chunks;
	if (limit <= here)
		return 0;
	return (uint32_t)mmc_min_u64(limit - here, turn->nchunks);
}

static uint32_t chain_heard(const struct mmc_turn *turn,
			    const struct mmc_loss *loss)
{
	return loss->chains[turn->chain].nheard;
}

/* Counts the chunks of others from now on. */
static void set_pace(struct mmc_turn *turn, const struct mmc_loss *loss)
{
	turn->nchain_heard = chain_heard(turn, loss);
	turn->nheard = mmc_loss_heard(loss) - turn->nchain_heard;
}

/*
 * Returns whether each other open chain has brought as many chunks since set_pace() as
 * this one would with another batch, whichever of its senders sent them.
 */
static bool keeps_pace(const struct mmc_turn *turn, const struct mmc_loss *loss)
{
	uint32_t here = chain_heard(turn, loss);
	uint64_t there = mmc_loss_heard(loss) - here - turn->nheard;
	uint64_t others = mmc_max_u32(loss->nopen, 1) - 1;

	return others > 0 && there >= others * (turn->schedule.batch_chunks +
						here - turn->nchain_heard);
}

/*
 * Returns when to send another batch if no chunk arrives before: on an idle link no
 * other sender sets a pace.
 */
static uint64_t idle_until_ns(const struct mmc_turn *turn,
			      const struct mmc_loss *loss,
			      const struct mmc_watermark *watermark,
			      const struct mmc_path *path, uint64_t now_ns)
{
	return mmc_max_u64(loss->heard_ns, turn->batch_ns) +
	       chain_time_ns(turn, loss, watermark, path,
			     turn->schedule.batch_chunks, now_ns);
}

/*
 * Schedules the probe: after a window's time without a chunk of its own, the sender
 * tells others how much they should have.
 */
static void start_probe(struct mmc_turn *turn, const struct mmc_loss *loss,
			const struct mmc_watermark *watermark,
			const struct mmc_path *path, uint64_t now_ns)
{
	uint64_t window_ns = chain_time_ns(turn, loss, watermark, path,
					   turn->schedule.window_chunks,
					   now_ns);

	mmc_backoff_start(&turn->probe, now_ns, 2 * path->srtt_ns + window_ns);
}

/* Begins to wait for the window. */
static void begin_wait(struct mmc_turn *turn, const struct mmc_loss *loss,
		       const struct mmc_watermark *watermark,
		       const struct mmc_path *path, uint64_t now_ns)
{
	uint64_t window_ns = chain_time_ns(turn, loss, watermark, path,
					   turn->schedule.window_chunks,
					   now_ns);

	turn->lag_ns =
		turn->drained_ns + mmc_max_u64(path->lag_ns, window_ns / 2);
	turn->open_loop = false;
	set_pace(turn, loss);
	start_probe(turn, loss, watermark, path, now_ns);
}

/*
 * Opens a full window by a batch at a time if no receiver has freed any of it for half
 * a window's time: then some receiver stands still, and what overflows there is
 * repaired. From then on the arrivals of other chains set the pace, so that no more is
 * on its way than before.
 */
static uint32_t wait_for_window(struct mmc_turn *turn,
				const struct mmc_loss *loss,
				const struct mmc_watermark *watermark,
				const struct mmc_path *path, uint64_t now_ns)
{
	if (turn->lag_ns == MMC_NEVER_NS)
		begin_wait(turn, loss, watermark, path, now_ns);
	if (!turn->open_loop && now_ns < turn->lag_ns)
		return 0;
	turn->open_loop = true;
	turn->lag_ns = idle_until_ns(turn, loss, watermark, path, now_ns);
	if (!keeps_pace(turn, loss) && now_ns < turn->lag_ns)
		return 0;
	set_pace(turn, loss);
	start_probe(turn, loss, watermark, path, now_ns);
	turn->batch_ns = now_ns;
	turn->lag_ns = idle_until_ns(turn, loss, watermark, path, now_ns);
	return turn->schedule.batch_chunks;
}

bool mmc_turn_next(struct mmc_turn *turn, const struct mmc_loss *loss,
		   const struct mmc_watermark *watermark,
		   const struct mmc_path *path, uint64_t now_ns,
		   struct mmc_run *run)
{
	uint32_t left;

	if (mmc_turn_over(turn))
		return false;
	if (!turn->began && !may_begin(turn, loss, watermark, path, now_ns))
		return false;
	if (!turn->began)
		turn->drained_ns = now_ns;
	turn->began = true;
	if (watermark->drained[turn->chain] != turn->drained) {
		turn->drained = watermark->drained[turn->chain];
		turn->drained_ns = now_ns;
	}
	left = window_left(turn, watermark);
	if (left > 0) {
		turn->lag_ns = MMC_NEVER_NS;
		mmc_backoff_stop(&turn->probe);
	} else {
		left = wait_for_window(turn, loss, watermark, path, now_ns);
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
