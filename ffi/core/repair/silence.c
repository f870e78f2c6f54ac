/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/silence.h"

#include "support/bits.h"

/*
 * A sender that is silent for this long is asked, however many chunks are ahead of its
 * own.
 */
#define BUSY_MAX_NS (100 * MMC_MS_NS)

/*
 * A sender that waits for its window goes on by itself before the link is idle for this
 * long.
 */
#define HELD_NS (5 * MMC_MS_NS)

/*
 * Doubles the time to the next question: the sender has sent no more than is here, and
 * waits, for its window for example. Returns whether a question was open.
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
		sequence->trust_ns = now_ns + loss->allowance_ns;
		loss->silence_ns =
			mmc_min_u64(loss->silence_ns, sequence->trust_ns);
	}
	return false;
}

/*
 * Counts chunks that the sender reported and that are not here as lost or late once it
 * is time; returns whether it did.
 */
static bool trust(struct mmc_loss *loss, struct mmc_chain *chain,
		  struct mmc_sequence *sequence,
		  const struct mmc_bitmap *claimed, uint64_t now_ns)
{
	uint64_t last_ns = mmc_max_u64(sequence->heard_ns, sequence->told_ns);

	if (sequence->told <= sequence->end) {
		sequence->trust_ns = MMC_NEVER_NS;
		return false;
	}
	/*
	 * A chunk that arrives shows that chunks were still on their way after the
	 * record.
	 */
	if (sequence->trust_ns != MMC_NEVER_NS)
		sequence->trust_ns =
			mmc_max_u64(sequence->trust_ns,
				    sequence->heard_ns + loss->allowance_ns);
	if (now_ns - last_ns >= loss->quiet_ns) {
		mmc_chain_lose(chain, sequence, claimed, sequence->told);
		loss->ask_ns = now_ns;
	} else if (now_ns >= sequence->trust_ns) {
		mmc_chain_delay(chain, sequence, claimed, sequence->told);
		mmc_loss_mark_late(loss, now_ns);
	} else {
		return false;
	}
	sequence->heard_ns = now_ns;
	sequence->trust_ns = MMC_NEVER_NS;
	loss->passed = true;
	return true;
}

/*
 * Returns for how long a sender is not asked while others' chunks keep the link busy.
 * All of those chunks may be ahead of its own: two windows of them, at the rate at
 * which they have arrived.
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
 * Returns whether a sender is silent although the link is free for it; a sender whose
 * window is full, as far as is known here, may be silent for longer; a sender that is
 * silent for `busy_ns` is asked on a busy link too.
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
 * Returns whether a rank below misses the sender too and this rank has not just asked.
 */
static bool is_wanted(const struct mmc_loss *loss,
		      struct mmc_sequence *sequence, uint64_t now_ns)
{
	bool wanted = sequence->wanted;

	sequence->wanted = false;
	return wanted && now_ns - sequence->asked_ns >= loss->quiet_ns;
}

/* Returns whether to ask about the sender now. */
static bool ask_silent(struct mmc_loss *loss, struct mmc_chain *chain,
		       struct mmc_sequence *sequence,
		       const struct mmc_bitmap *claimed, bool held,
		       uint64_t now_ns)
{
	uint64_t since_ns;
	bool wanted = is_wanted(loss, sequence, now_ns);

	if (sequence->rank == loss->rank || sequence->nleft == 0 ||
	    sequence->end == sequence->nchunks) {
		mmc_backoff_stop(&sequence->silence);
		sequence->trust_ns = MMC_NEVER_NS;
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
	if (!mmc_backoff_due(&sequence->silence, now_ns))
		return false;
	/* While others keep the link busy the next question is as rare as this one. */
	if (now_ns - loss->heard_ns < loss->quiet_ns)
		mmc_backoff_start(&sequence->silence, now_ns,
				  MMC_BACKOFF_MAX_NS);
	sequence->asked = true;
	sequence->asked_ns = now_ns;
	return true;
}

/*
 * Returns the next sender of the chain under inspection that has begun, or that may
 * have begun as the first; NULL behind the last.
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
 * Returns whether the chain under inspection has advanced so far that its sender's
 * window is full, as far as is known here. When most chains have ended, missing chunks
 * are more likely lost.
 */
static bool is_held(const struct mmc_loss *loss, const uint32_t *drained)
{
	uint32_t c = loss->silence_chain;
	uint64_t limit = (uint64_t)drained[c] + loss->schedule.window_chunks;

	return loss->chains[c].npassed >= limit &&
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
						      sequence->trust_ns));
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
	 * A parent that knows no more asks its own, so it may know more at the next
	 * question.
	 */
	if (sent.nchunks > sequence->end)
		mmc_silence_tell(loss, sent.rank, sent.nchunks, idle, now_ns);
}
