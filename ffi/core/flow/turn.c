/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/flow/turn.h"

/* A predecessor that has been silent for less is probably waiting for a processor. */
#define PATIENCE_MIN_NS (2 * MMC_MS_NS)

/*
 * How long a sender waits for its chain's first one that has not sent all its chunks.
 */
#define FIRST_PATIENCE_NS (10 * MMC_MS_NS)

/* How long the predecessor's answer may take, besides two round trips. */
#define ANSWER_NS MMC_MS_NS

/* Fewer chunks than this tell no rate. */
#define RATE_CHUNKS_MIN 64

/*
 * The longest time that any number of chunks is taken to need. A rate that was measured
 * during a wait is too low, and without a limit it would make the next wait longer
 * still.
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
		.stop = block.nchunks,
		.predecessor =
			position == 0
				? MMC_PEER_NONE
				: mmc_layout_sender(layout,
						    block.number -
							    schedule->nchains),
		.flow_ns = now_ns,
		.drained_ns = now_ns,
		.patience_ns = PATIENCE_MIN_NS,
		.begin_ns = MMC_NEVER_NS,
		.lag_ns = MMC_NEVER_NS,
		.probe = { .at_ns = MMC_NEVER_NS },
	};
}

/*
 * Returns the time that `nchunks` of one chain take while all chains share the link.
 * Once enough chunks of this operation have arrived, their rate counts, since the rate
 * of earlier operations may be wrong, or a guess.
 */
static uint64_t chain_time_ns(const struct mmc_turn *turn,
			      const struct mmc_loss *loss,
			      const struct mmc_watermark *watermark,
			      const struct mmc_path *path, uint32_t nchunks,
			      uint64_t now_ns)
{
	uint64_t all_chunks = (uint64_t)nchunks * mmc_max_u32(1, loss->nopen);
	/* A lone sender hears nothing: what all receivers have shows its rate. */
	uint32_t moved_chunks = mmc_max_u32(mmc_loss_heard(loss),
					    watermark->drained[turn->chain]);
	uint64_t time_ns;

	if (moved_chunks >= RATE_CHUNKS_MIN)
		time_ns = all_chunks * (now_ns - turn->flow_ns) / moved_chunks;
	else
		time_ns = mmc_path_time_ns(
			path, all_chunks * turn->schedule.layout.chunk_bytes);
	return mmc_min_u64(time_ns, WAIT_MAX_NS);
}

/*
 * Returns until when to wait for the chain's first sender with more to come; 0: not at
 * all. Receivers follow only MMC_CHAIN_SEQUENCES senders of a chain. When all of those
 * have more to come, another sender that begins makes receivers give up the first.
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
 * Returns whether the predecessor has finished, or nearly so, and this turn may begin:
 * it says that it has sent all its chunks, or at most half a batch of them has yet to
 * arrive here.
 */
static bool is_free(const struct mmc_turn *turn, const struct mmc_loss *loss,
		    uint64_t now_ns)
{
	const struct mmc_chain *chain = &loss->chains[turn->chain];
	uint32_t lead = turn->schedule.batch_chunks / 2;
	const struct mmc_sequence *predecessor;

	if (chain->turn >= turn->turn)
		return true;
	if (now_ns < first_until_ns(turn, chain))
		return false;
	predecessor = mmc_chain_sequence(chain, turn->turn - 1);
	if (predecessor == NULL)
		return mmc_chain_turn_has_ended(chain, turn->turn - 1);
	/*
	 * Several small blocks make up half a batch: no more may begin than are
	 * followed.
	 */
	return predecessor->told == predecessor->nchunks ||
	       (predecessor->end + lead >= predecessor->nchunks &&
		chain->seen + lead >= turn->start &&
		chain->nbegun + MMC_CHAIN_SEQUENCES / 4 >= turn->turn);
}

/*
 * Sets `begin_ns`, when the predecessor will have been silent for too long, from what
 * has been heard of it, or of the senders before it, since it was last asked.
 */
static void look_back(struct mmc_turn *turn, const struct mmc_loss *loss,
		      const struct mmc_watermark *watermark,
		      const struct mmc_path *path, uint64_t now_ns)
{
	const struct mmc_chain *chain = &loss->chains[turn->chain];
	const struct mmc_sequence *sender =
		mmc_chain_sequence(chain, chain->turn);
	const struct mmc_sequence *predecessor =
		mmc_chain_sequence(chain, turn->turn - 1);
	uint64_t ahead_ns = 0;

	if (predecessor != NULL && predecessor->end > 0)
		sender = predecessor;
	/* The predecessor may not have begun: the senders before it take their time. */
	if (sender != predecessor)
		ahead_ns = chain_time_ns(turn, loss, watermark, path,
					 turn->start - mmc_min_u32(turn->start,
								   chain->seen),
					 now_ns);
	if (sender->heard_ns > turn->asked_ns)
		turn->patience_ns = PATIENCE_MIN_NS;
	if (mmc_max_u64(sender->heard_ns, turn->answered_ns) > turn->asked_ns)
		turn->asked = false;
	if (!turn->asked)
		turn->begin_ns =
			mmc_max_u64(sender->heard_ns, turn->answered_ns) +
			turn->patience_ns + ahead_ns;
}

bool mmc_turn_take_question(struct mmc_turn *turn, const struct mmc_loss *loss,
			    const struct mmc_watermark *watermark,
			    const struct mmc_path *path, uint64_t now_ns)
{
	if (turn->began || mmc_turn_ended(turn) || is_free(turn, loss, now_ns))
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

/* Returns whether the predecessor has finished, or was asked and has not answered. */
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
 * Returns the chain's window. A chain that is ahead of the slowest by more than a batch
 * has a smaller one, but still a half: the more a sender takes of the links to
 * those who hear it, the less is left there for the senders that they all wait for.
 */
static uint32_t chain_window(const struct mmc_turn *turn,
			     const struct mmc_watermark *watermark)
{
	uint32_t window_chunks = turn->schedule.window_chunks;
	uint32_t lead_chunks = mmc_watermark_lead(watermark, turn->chain);

	lead_chunks -= mmc_min_u32(lead_chunks, turn->schedule.batch_chunks);
	return window_chunks - mmc_min_u32(lead_chunks, window_chunks / 2);
}

/*
 * Returns how many more chunks, up to a batch, the window lets this rank send. The window
 * is the chain's: it counts from the position that all receivers have reached, so a rank
 * that was overtaken shares it with the rank that overtook it.
 */
static uint32_t window_left(const struct mmc_turn *turn,
			    const struct mmc_watermark *watermark)
{
	uint64_t here = watermark->own[turn->chain];
	uint64_t limit;

	if (watermark->step_chunks == 0)
		return turn->schedule.batch_chunks;
	limit = (uint64_t)watermark->drained[turn->chain] +
		chain_window(turn, watermark);
	if (limit <= here)
		return 0;
	return (uint32_t)mmc_min_u64(limit - here, turn->schedule.batch_chunks);
}

/* Returns how many chunks of this rank's own chain have arrived by multicast. */
static uint32_t chain_heard(const struct mmc_turn *turn,
			    const struct mmc_loss *loss)
{
	return loss->chains[turn->chain].nheard;
}

/* Notes how many chunks have arrived, so that keeps_pace() counts those from now on. */
static void set_pace(struct mmc_turn *turn, const struct mmc_loss *loss)
{
	turn->nchain_heard = chain_heard(turn, loss);
	turn->nheard = mmc_loss_heard(loss) - turn->nchain_heard;
}

/*
 * Returns whether the other open chains have brought enough chunks since set_pace() for
 * another batch of this one: each, on average, as many as the last batch had beyond what
 * this chain has brought, whichever of its senders sent those.
 */
static bool keeps_pace(const struct mmc_turn *turn, const struct mmc_loss *loss)
{
	uint32_t here = chain_heard(turn, loss);
	uint64_t there = mmc_loss_heard(loss) - here - turn->nheard;
	uint64_t others = mmc_max_u32(loss->nopen, 1) - 1;

	return others > 0 && there >= others * (turn->last_batch_chunks + here -
						turn->nchain_heard);
}

/*
 * Returns when to send another batch if no chunk arrives before: on an idle link no
 * other sender sets the pace.
 */
static uint64_t idle_until_ns(const struct mmc_turn *turn,
			      const struct mmc_loss *loss,
			      const struct mmc_watermark *watermark,
			      const struct mmc_path *path, uint64_t now_ns)
{
	return mmc_max_u64(loss->heard_ns, turn->batch_ns) +
	       chain_time_ns(turn, loss, watermark, path,
			     turn->last_batch_chunks, now_ns);
}

/*
 * Schedules the probe, by which the sender tells the receivers how much they should
 * have: it is due when nothing has been sent for the time of a window and two round
 * trips.
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

/* Begins to wait for receivers to free some of a full window. */
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
	turn->last_batch_chunks = turn->schedule.batch_chunks;
	set_pace(turn, loss);
	start_probe(turn, loss, watermark, path, now_ns);
}

/*
 * Returns how many chunks to send although the window is full: none at first. If none
 * of the window has been freed for half the time that a window takes, some receiver
 * stands still, and what overflows there will be repaired. Then batches go out, one at
 * a time, at the pace at which other chains' chunks arrive, so that no more is on its
 * way than before.
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
	turn->last_batch_chunks = mmc_min_u32(turn->schedule.batch_chunks,
					      turn->stop - turn->next);
	set_pace(turn, loss);
	start_probe(turn, loss, watermark, path, now_ns);
	turn->batch_ns = now_ns;
	turn->lag_ns = idle_until_ns(turn, loss, watermark, path, now_ns);
	return turn->last_batch_chunks;
}

bool mmc_turn_next(struct mmc_turn *turn, const struct mmc_loss *loss,
		   const struct mmc_watermark *watermark,
		   const struct mmc_path *path, uint64_t now_ns,
		   struct mmc_run *run)
{
	uint32_t left;

	if (mmc_turn_ended(turn))
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
	left = mmc_min_u32(left, turn->stop - turn->next);
	*run = (struct mmc_run){ .first = turn->next, .count = left };
	turn->next += left;
	return left > 0;
}

bool mmc_turn_take_probe(struct mmc_turn *turn, uint64_t now_ns)
{
	if (mmc_turn_ended(turn))
		mmc_backoff_stop(&turn->probe);
	return mmc_backoff_fire(&turn->probe, now_ns);
}

uint64_t mmc_turn_deadline(const struct mmc_turn *turn)
{
	if (mmc_turn_ended(turn))
		return MMC_NEVER_NS;
	if (!turn->began)
		return turn->begin_ns;
	return mmc_min_u64(turn->lag_ns, turn->probe.at_ns);
}
