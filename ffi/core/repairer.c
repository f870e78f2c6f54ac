/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repairer.h"

#include "core/bits.h"
#include "core/memory.h"

/* Where many lack a chunk, several have asked for it in such a part of the time. */
#define HASTE 4

/* So many answers may have gone to one rank again, since the first were lost. */
#define REPEATED 2

/* In place of a tally: the chunk may lack to all. */
#define COMMON UINT8_MAX

size_t mmc_donor_bytes(uint32_t nchunks)
{
	return 5 * mmc_part_bytes(mmc_bitmap_bytes(nchunks)) +
	       mmc_part_bytes(nchunks);
}

void mmc_donor_init(struct mmc_donor *donor, uint8_t *memory, uint32_t nchunks,
		    struct mmc_run own, const struct mmc_bitmap *present,
		    bool gathers, uint32_t sharers, uint64_t gather_ns,
		    uint64_t rest_ns)
{
	size_t bytes = mmc_bitmap_bytes(nchunks);

	donor->nasks = 0;
	donor->npleas = 0;
	donor->ngiven = 0;
	donor->ngiven_before = 0;
	donor->nlost = 0;
	donor->nshared = 0;
	donor->own = own;
	donor->present = present;
	donor->gathers = gathers;
	donor->sharers = sharers;
	donor->idle = false;
	donor->several = false;
	donor->resting = false;
	donor->echo = false;
	donor->ready_ns = MMC_NEVER_NS;
	donor->rest_ends_ns = MMC_NEVER_NS;
	donor->gather_ns = gather_ns;
	donor->rest_ns = rest_ns;
	mmc_backoff_start(&donor->phase, 0, rest_ns);
	mmc_bitmap_init(&donor->wanted, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&donor->shared, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&donor->recent, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&donor->before, mmc_part_take(&memory, bytes), nchunks);
	mmc_bitmap_init(&donor->aired, mmc_part_take(&memory, bytes), nchunks);
	donor->tally = memory;
	memset(donor->tally, 0, nchunks);
}

/* Forgets what was sent longer ago than one to two resting times. */
static void forget_sent(struct mmc_donor *donor, uint64_t now_ns)
{
	if (now_ns < donor->rest_ends_ns)
		return;
	donor->resting &= now_ns - donor->rest_ends_ns < donor->rest_ns;
	donor->ngiven -= donor->ngiven_before;
	for (uint32_t i = 0; i < donor->ngiven; i++)
		donor->given[i] = donor->given[i + donor->ngiven_before];
	if (donor->resting) {
		mmc_bitmap_copy(&donor->before, &donor->recent);
	} else {
		mmc_bitmap_clear_all(&donor->before);
		donor->ngiven = 0;
	}
	donor->ngiven_before = donor->ngiven;
	mmc_bitmap_clear_all(&donor->recent);
	donor->rest_ends_ns = donor->resting ? now_ns + donor->rest_ns
					     : MMC_NEVER_NS;
	donor->resting = false;
}

/* Whether `peer` itself has asked for `chunk` and still waits; counts who else has. */
static bool asked_by(const struct mmc_donor *donor, uint32_t peer,
		     uint32_t chunk, uint32_t *nothers)
{
	bool asked = false;

	*nothers = 0;
	for (uint32_t i = 0; i < donor->nasks; i++) {
		const struct mmc_ask *ask = &donor->asks[i];

		if (chunk - ask->run.first >= ask->run.count)
			continue;
		asked |= ask->peer == peer;
		*nothers += ask->peer != peer;
	}
	return asked;
}

/* Whether `peer` has been sent `chunk` by itself a short while ago. */
static bool was_given(const struct mmc_donor *donor, uint32_t peer,
		      uint32_t chunk)
{
	for (uint32_t i = 0; i < donor->ngiven; i++) {
		const struct mmc_ask *given = &donor->given[i];

		if (given->peer == peer &&
		    chunk - given->run.first < given->run.count)
			return true;
	}
	return false;
}

/* Several ranks lack a chunk, so more of them may ask for it. */
static void wait_for_all(struct mmc_donor *donor)
{
	if (donor->several)
		return;
	donor->several = true;
	donor->ready_ns += donor->gather_ns - donor->gather_ns / HASTE;
}

/* Whether the chunk has gone to all, or to so many that it may lack to all. */
static bool is_common(const struct mmc_donor *donor, uint32_t chunk)
{
	return donor->gathers && chunk - donor->own.first < donor->own.count &&
	       donor->tally[chunk] >=
		       mmc_min_u32(donor->sharers + REPEATED, COMMON);
}

/* The chunk is to go to all. */
static void share(struct mmc_donor *donor, uint32_t chunk)
{
	mmc_bitmap_test_and_set(&donor->shared, chunk);
	donor->nshared += donor->tally[chunk] < COMMON;
	donor->tally[chunk] = COMMON;
	donor->echo = true;
}

/* Whether the request for a common chunk is to be kept. */
static bool want_common(struct mmc_donor *donor, uint32_t chunk,
			uint64_t now_ns)
{
	if (mmc_backoff_due(&donor->phase, now_ns))
		mmc_bitmap_clear_all(&donor->aired);
	if (mmc_bitmap_test_and_set(&donor->aired, chunk) ||
	    mmc_bitmap_test_and_set(&donor->wanted, chunk))
		return false;
	share(donor, chunk);
	return true;
}

/* Whether `peer`, another one that wants `chunk`, is to get it by itself. */
static bool want_too(struct mmc_donor *donor, uint32_t peer, uint32_t chunk)
{
	uint32_t nothers;

	if (mmc_bitmap_test(&donor->shared, chunk) ||
	    asked_by(donor, peer, chunk, &nothers))
		return false;
	wait_for_all(donor);
	if (nothers + 1 < donor->sharers)
		return true;
	share(donor, chunk);
	return false;
}

/* Whether the request of `peer` for `chunk` is to be kept. */
static bool want(struct mmc_donor *donor, uint32_t peer, uint32_t chunk,
		 uint64_t now_ns)
{
	uint32_t nothers;

	if (mmc_bitmap_test(&donor->recent, chunk) ||
	    mmc_bitmap_test(&donor->before, chunk) ||
	    was_given(donor, peer, chunk))
		return false;
	if (is_common(donor, chunk))
		return want_common(donor, chunk, now_ns);
	if (mmc_bitmap_test_and_set(&donor->wanted, chunk))
		return donor->gathers ? want_too(donor, peer, chunk)
				      : !asked_by(donor, peer, chunk, &nothers);
	donor->nlost++;
	return true;
}

void mmc_donor_ask(struct mmc_donor *donor, uint32_t peer, struct mmc_run run,
		   uint64_t now_ns)
{
	uint32_t end = run.first + run.count;
	bool first = donor->nasks == 0;

	forget_sent(donor, now_ns);
	run.count = 0;
	for (uint32_t chunk = run.first; chunk < end; chunk++) {
		bool kept = donor->nasks < MMC_ASKS_MAX &&
			    want(donor, peer, chunk, now_ns);

		if (kept && run.count++ == 0)
			run.first = chunk;
		if (run.count > 0 && (!kept || chunk + 1 == end)) {
			donor->asks[donor->nasks++] =
				(struct mmc_ask){ .peer = peer, .run = run };
			donor->idle = false;
			run.count = 0;
		}
	}
	if (!first || donor->nasks == 0)
		return;
	donor->several = false;
	donor->ready_ns =
		now_ns + (donor->gathers ? donor->gather_ns / HASTE : 0);
}

/* The first chunks in [from, end) that are wanted and present. */
static struct mmc_run next_wanted(const struct mmc_donor *donor, uint32_t from,
				  uint32_t end)
{
	struct mmc_run run = { .first = end };

	while (run.count == 0 && from < end) {
		struct mmc_run held =
			mmc_bitmap_next_set(donor->present, from, end);

		from = held.first + held.count;
		run = mmc_bitmap_next_set(&donor->wanted, held.first, from);
	}
	return run;
}

/* As many of them as go the same way in one batch. */
static struct mmc_run next_batch(const struct mmc_donor *donor,
				 struct mmc_run asked, uint32_t nchunks_max)
{
	struct mmc_run run =
		next_wanted(donor, asked.first, asked.first + asked.count);
	uint32_t n = 1;
	bool shared;

	if (run.count == 0)
		return run;
	shared = mmc_bitmap_test(&donor->shared, run.first);
	run.count = mmc_min_u32(run.count, nchunks_max);
	while (n < run.count &&
	       mmc_bitmap_test(&donor->shared, run.first + n) == shared)
		n++;
	run.count = n;
	return run;
}

/* Takes `run` out of a request; what is left may be two. */
static void cut(struct mmc_donor *donor, struct mmc_ask *ask,
		struct mmc_run run)
{
	uint32_t end = ask->run.first + ask->run.count;
	uint32_t cut_end = run.first + run.count;

	if (cut_end <= ask->run.first || end <= run.first)
		return;
	if (cut_end < end && run.first > ask->run.first &&
	    donor->nasks < MMC_ASKS_MAX)
		donor->asks[donor->nasks++] = (struct mmc_ask){
			.peer = ask->peer,
			.run = { cut_end, end - cut_end },
		};
	if (run.first > ask->run.first) {
		ask->run.count = run.first - ask->run.first;
	} else {
		ask->run.first = mmc_min_u32(cut_end, end);
		ask->run.count = end - ask->run.first;
	}
}

/* Nobody who gets `run` waits for it any more. */
static void settle(struct mmc_donor *donor, uint32_t peer, struct mmc_run run)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < donor->nasks; i++)
		if (peer == MMC_PEER_ALL || donor->asks[i].peer == peer)
			cut(donor, &donor->asks[i], run);
	for (uint32_t i = 0; i < donor->nasks; i++)
		if (donor->asks[i].run.count > 0)
			donor->asks[n++] = donor->asks[i];
	donor->nasks = n;
}

/* The chunks of `run` go to a single rank. */
static void count_answer(struct mmc_donor *donor, struct mmc_run run)
{
	for (uint32_t chunk = run.first; chunk < run.first + run.count; chunk++)
		if (donor->tally[chunk] < COMMON)
			donor->tally[chunk]++;
}

/* The chunks of `run` go to `peer`, or to all; others may still wait for theirs. */
static void hand_out(struct mmc_donor *donor, uint32_t peer, struct mmc_run run,
		     uint64_t now_ns)
{
	uint32_t nothers;

	settle(donor, peer, run);
	for (uint32_t chunk = run.first; chunk < run.first + run.count;
	     chunk++) {
		asked_by(donor, peer, chunk, &nothers);
		if (nothers > 0)
			continue;
		mmc_bitmap_clear(&donor->wanted, chunk);
		mmc_bitmap_clear(&donor->shared, chunk);
	}
	if (peer != MMC_PEER_ALL)
		count_answer(donor, run);
	if (peer != MMC_PEER_ALL && donor->ngiven < MMC_GIVEN_MAX)
		donor->given[donor->ngiven++] =
			(struct mmc_ask){ .peer = peer, .run = run };
	else
		mmc_bitmap_set_run(&donor->recent, run);
	donor->resting = true;
	if (donor->rest_ends_ns == MMC_NEVER_NS)
		donor->rest_ends_ns = now_ns + donor->rest_ns;
}

void mmc_donor_plead(struct mmc_donor *donor, uint32_t peer, struct mmc_run run)
{
	for (uint32_t i = 0; i < donor->npleas; i++)
		if (donor->pleas[i].peer == peer &&
		    run.first - donor->pleas[i].run.first <
			    donor->pleas[i].run.count)
			return;
	if (donor->npleas < MMC_PLEAS_MAX)
		donor->pleas[donor->npleas++] =
			(struct mmc_ask){ .peer = peer, .run = run };
}

/* The next piece of the plea that came first. */
static void next_plea(struct mmc_donor *donor, uint32_t nchunks_max,
		      uint32_t *peer, struct mmc_run *run)
{
	struct mmc_ask *plea = &donor->pleas[0];

	*peer = plea->peer;
	*run = plea->run;
	run->count = mmc_min_u32(run->count, nchunks_max);
	count_answer(donor, *run);
	plea->run.first += run->count;
	plea->run.count -= run->count;
	if (plea->run.count > 0)
		return;
	donor->npleas--;
	for (uint32_t i = 0; i < donor->npleas; i++)
		donor->pleas[i] = donor->pleas[i + 1];
}

bool mmc_donor_next(struct mmc_donor *donor, uint64_t now_ns,
		    uint32_t nchunks_max, uint32_t *peer, struct mmc_run *run)
{
	forget_sent(donor, now_ns);
	if (donor->npleas > 0) {
		next_plea(donor, nchunks_max, peer, run);
		return true;
	}
	if (now_ns < donor->ready_ns || donor->idle)
		return false;
	for (uint32_t i = donor->nasks; i > 0; i--) {
		struct mmc_ask ask = donor->asks[i - 1];
		struct mmc_run found = next_batch(donor, ask.run, nchunks_max);

		if (found.count == 0)
			continue;
		*run = found;
		*peer = mmc_bitmap_test(&donor->shared, found.first)
				? MMC_PEER_ALL
				: ask.peer;
		hand_out(donor, *peer, found, now_ns);
		return true;
	}
	donor->idle = true;
	if (donor->nasks == 0)
		donor->ready_ns = MMC_NEVER_NS;
	return false;
}

bool mmc_donor_echo(struct mmc_donor *donor, struct mmc_run *runs,
		    uint32_t *nruns)
{
	uint32_t from = 0;
	uint32_t n = 0;

	if (!donor->echo)
		return false;
	donor->echo = false;
	while (n < MMC_RUNS_MAX) {
		struct mmc_run run = mmc_bitmap_next_set(&donor->shared, from,
							 donor->shared.nbits);

		if (run.count == 0)
			break;
		runs[n++] = run;
		from = run.first + run.count;
	}
	*nruns = n;
	return n > 0;
}

uint64_t mmc_donor_deadline(const struct mmc_donor *donor)
{
	if (donor->npleas > 0)
		return 0;
	return donor->idle ? MMC_NEVER_NS : donor->ready_ns;
}
