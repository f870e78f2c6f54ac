/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/silence.h"

#include "support/bits.h"

/*
 * A sender that is silent for this long is asked, however many chunks of others may be
 * ahead of its own.
 */
#define BUSY_MAX_NS (100 * MMC_MS_NS)

/*
 * On a link that has been idle for this long, a sender with a full window would have
 * gone on by itself.
 */
#define HELD_NS (5 * MMC_MS_NS)

/*
 * Doubles the time to the next question, since the sender has sent no more than is
 * here, and waits for something, such as its window. Returns whether a question was
 * open.
 */
static bool wait_longer(struct mmc_sequence *sequence, uint64_t now_ns)
{
	struct mmc_backoff *silence = &sequence->silence;
	bool asked = sequence->asked;

	sequence->asked = false;
	if (silence->at_ns == MMC_NEVER_NS)
		return false;
	silence->interval_ns =
		mmc_min_u64(2 * silence->interval_ns, MMC_BACKOFF_MAX_NS);
	silence->at_ns = now_ns + silence->interval_ns;
	return asked;
}

bool mmc_silence_tell(struct mmc_loss *loss, uint32_t owner,
		      uint32_t sent_chunks, bool pausing, uint64_t now_ns)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_block block =
		mmc_layout_block(&schedule->layout, owner);
	uint32_t sent = mmc_min_u32(sent_chunks, block.nchunks);
	struct mmc_chain *chain =
		&loss->chains[mmc_schedule_chain(schedule, &block)];
	uint32_t turn = mmc_schedule_turn(schedule, &block);
	struct mmc_sequence *sequence = mmc_chain_sequence(chain, turn);

	if (block.nchunks == 0 || sequence == NULL)
		return false;
	if (sent <= sequence->end)
		return pausing && wait_longer(sequence, now_ns);
	chain->nbegun = mmc_max_u32(chain->nbegun, turn + 1);
	if (sent > sequence->told) {
		sequence->told = sent;
		sequence->told_ns = now_ns;
		loss->silence_ns =
			mmc_min_u64(loss->silence_ns, now_ns + loss->quiet_ns);
	}
	if (pausing) {
		sequence->late_at_ns = now_ns + loss->allowance_ns;
		loss->silence_ns =
			mmc_min_u64(loss->silence_ns, sequence->late_at_ns);
	}
	return false;
}

/*
 * Counts the chunks that the sender reported and that are not here as lost or late, if
 * it is time to. Returns whether it was.
 */
static bool trust(struct mmc_loss *loss, struct mmc_chain *chain,
		  struct mmc_sequence *sequence,
		  const struct mmc_bitmap *claimed, uint64_t now_ns)
{
	uint64_t last_ns = mmc_max_u64(sequence->heard_ns, sequence->told_ns);

	if (sequence->told <= sequence->end) {
		sequence->late_at_ns = MMC_NEVER_NS;
		return false;
	}
	/*
	 * A chunk that has arrived since shows that chunks were still on their way.
	 */
	if (sequence->late_at_ns != MMC_NEVER_NS)
		sequence->late_at_ns =
			mmc_max_u64(sequence->late_at_ns,
				    sequence->heard_ns + loss->allowance_ns);
	if (now_ns - last_ns >= loss->quiet_ns) {
		mmc_chain_lose(chain, sequence, claimed, sequence->told);
		loss->ask_ns = now_ns;
	} else if (now_ns >= sequence->late_at_ns) {
		mmc_chain_mark_late(chain, sequence, claimed, sequence->told);
		mmc_loss_mark_late(loss, now_ns);
	} else {
		return false;
	}
	if (mmc_loss_may_be_mended(loss))
		mmc_loss_pass_parity(loss, sequence, sequence->told);
	sequence->heard_ns = now_ns;
	sequence->late_at_ns = MMC_NEVER_NS;
	loss->drained = true;
	return true;
}

/*
 * Returns for how long a sender may be silent while others' chunks keep the link busy.
 * Two windows of those chunks may be ahead of its own, at the rate at which they
 * arrive.
 */
static uint64_t busy_ns(const struct mmc_loss *loss, uint64_t now_ns)
{
	uint64_t window_chunks =
		(uint64_t)loss->schedule.window_chunks * loss->schedule.nchains;
	uint64_t heard_chunks = mmc_max_u32(1, mmc_loss_heard(loss));
	uint64_t window_ns =
		window_chunks * (now_ns - loss->begun_ns) / heard_chunks;

	return mmc_max_u64(MMC_BACKOFF_MAX_NS,
			   mmc_min_u64(2 * window_ns, BUSY_MAX_NS));
}

/*
 * Returns whether a sender has been silent for too long. On an idle link that is soon;
 * with `held`, when the sender's window seems to be full, it is later; on a busy link
 * it is after `busy_ns`.
 */
static bool is_silent(const struct mmc_loss *loss, bool held,
		      const struct mmc_sequence *sequence, uint64_t now_ns)
{
	uint64_t silent_ns = now_ns - sequence->heard_ns;
	uint64_t quiet_ns = held ? mmc_max_u64(HELD_NS, loss->quiet_ns)
				 : loss->quiet_ns;

	return silent_ns >= loss->busy_ns ||
	       (silent_ns >= quiet_ns && now_ns - loss->heard_ns >= quiet_ns);
}

/*
 * Returns whether a rank below has asked about the sender and this rank has not just
 * done so; forgets that the rank below has.
 */
static bool take_wanted(const struct mmc_loss *loss,
			struct mmc_sequence *sequence, uint64_t now_ns)
{
	bool wanted = sequence->wanted;

	sequence->wanted = false;
	return wanted && now_ns - sequence->asked_ns >= loss->quiet_ns;
}

/* Returns whether to ask about the sender now; counts it as asked. */
static bool ask_silent(struct mmc_loss *loss, struct mmc_chain *chain,
		       struct mmc_sequence *sequence,
		       const struct mmc_bitmap *claimed, bool held,
		       uint64_t now_ns)
{
	uint64_t since_ns;
	bool wanted = take_wanted(loss, sequence, now_ns);

	if (sequence->rank == loss->rank || sequence->nleft == 0 ||
	    sequence->end == sequence->nchunks) {
		mmc_backoff_stop(&sequence->silence);
		sequence->late_at_ns = MMC_NEVER_NS;
		return false;
	}
	if (sequence->silence.at_ns == MMC_NEVER_NS)
		mmc_backoff_start(&sequence->silence, sequence->heard_ns,
				  loss->quiet_ns);
	if (trust(loss, chain, sequence, claimed, now_ns) ||
	    (!wanted && !is_silent(loss, held, sequence, now_ns))) {
		since_ns = mmc_max_u64(sequence->heard_ns, loss->heard_ns);
		if (since_ns + loss->quiet_ns <= now_ns)
			since_ns = now_ns;
		mmc_backoff_start(&sequence->silence, since_ns, loss->quiet_ns);
		return false;
	}
	if (wanted)
		sequence->silence.at_ns = now_ns;
	if (!mmc_backoff_fire(&sequence->silence, now_ns))
		return false;
	/* On a busy link the next question comes after the longest interval. */
	if (now_ns - loss->heard_ns < loss->quiet_ns)
		mmc_backoff_start(&sequence->silence, now_ns,
				  MMC_BACKOFF_MAX_NS);
	sequence->asked = true;
	sequence->asked_ns = now_ns;
	return true;
}

/*
 * Returns the next sender, at `silence_place`, of the chain that is looked at: one that
 * has begun or, as the first, may have begun. Returns NULL behind the last.
 */
static struct mmc_sequence *next_sender(struct mmc_loss *loss,
					struct mmc_chain *chain)
{
	uint32_t end = mmc_max_u32(chain->nbegun, chain->turn + 1);

	while (loss->silence_place < chain->nsequences) {
		struct mmc_sequence *sequence =
			&chain->sequences[loss->silence_place++];

		if (sequence->turn < end)
			return sequence;
	}
	return NULL;
}

/*
 * Returns whether the chain that is looked at has gone so far that its sender's window
 * is full, as far as this rank knows. When most chains have ended, it is more likely
 * that missing chunks are lost.
 */
static bool is_held(const struct mmc_loss *loss, const uint32_t *drained)
{
	uint32_t c = loss->silence_chain;
	uint64_t limit = (uint64_t)drained[c] + loss->schedule.window_chunks;

	return loss->chains[c].ndrained >= limit &&
	       loss->nopen > loss->schedule.nchains / 4;
}

struct mmc_sequence *mmc_silence_ask(struct mmc_loss *loss,
				     const struct mmc_bitmap *claimed,
				     const uint32_t *drained, uint64_t now_ns)
{
	if (now_ns >= loss->silence_ns) {
		loss->busy_ns = busy_ns(loss, now_ns);
		loss->silence_ns = MMC_NEVER_NS;
		loss->silence_chain = 0;
		loss->silence_place = 0;
	}
	while (loss->silence_chain < loss->schedule.nchains) {
		struct mmc_chain *chain = &loss->chains[loss->silence_chain];
		struct mmc_sequence *sequence = next_sender(loss, chain);
		bool silent;

		if (sequence == NULL) {
			mmc_loss_pass(loss, loss->silence_chain++, now_ns);
			loss->silence_place = 0;
			continue;
		}
		silent = ask_silent(loss, chain, sequence, claimed,
				    is_held(loss, drained), now_ns);
		loss->silence_ns = mmc_min_u64(
			loss->silence_ns, mmc_min_u64(sequence->silence.at_ns,
						      sequence->late_at_ns));
		if (silent)
			return sequence;
	}
	return NULL;
}

/* ---- what others know ---------------------------------------------------- */

struct mmc_sent mmc_silence_known(const struct mmc_loss *loss, uint32_t rank)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_block block =
		mmc_layout_block(&schedule->layout, rank);
	const struct mmc_chain *chain;
	const struct mmc_sequence *sequence;
	struct mmc_sent sent = { .rank = rank };
	uint32_t turn;

	if (block.nchunks == 0)
		return sent;
	chain = &loss->chains[mmc_schedule_chain(schedule, &block)];
	turn = mmc_schedule_turn(schedule, &block);
	sequence = mmc_chain_sequence(chain, turn);
	if (sequence != NULL)
		sent.nchunks = mmc_max_u32(sequence->end, sequence->told);
	else if (turn < chain->nfollowed)
		sent.nchunks = block.nchunks;
	return sent;
}

/* Returns the sequence of a sender, or NULL if it is not followed. */
static struct mmc_sequence *sequence_of(struct mmc_loss *loss, uint32_t rank)
{
	const struct mmc_schedule *schedule = &loss->schedule;
	const struct mmc_block block =
		mmc_layout_block(&schedule->layout, rank);

	if (block.nchunks == 0)
		return NULL;
	return mmc_chain_sequence(
		&loss->chains[mmc_schedule_chain(schedule, &block)],
		mmc_schedule_turn(schedule, &block));
}

void mmc_silence_want(struct mmc_loss *loss, uint32_t rank, uint64_t now_ns)
{
	struct mmc_sequence *sequence = sequence_of(loss, rank);

	if (sequence == NULL)
		return;
	sequence->wanted = true;
	loss->silence_ns = mmc_min_u64(loss->silence_ns, now_ns);
}

void mmc_silence_vouch(struct mmc_loss *loss, struct mmc_sent sent,
		       uint64_t now_ns)
{
	struct mmc_sequence *sequence = sequence_of(loss, sent.rank);
	/* An idle link brings no more of the chunks that have reached others. */
	bool idle = now_ns - loss->heard_ns >= loss->quiet_ns;

	if (sequence == NULL)
		return;
	sequence->nvain = 0;
	/*
	 * A parent that knows no more asks further, so it may know more later.
	 */
	if (sent.nchunks > sequence->end)
		mmc_silence_tell(loss, sent.rank, sent.nchunks, idle, now_ns);
}
