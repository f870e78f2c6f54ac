/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/repairer.h"

#include "support/bits.h"
#include "support/memory.h"

/*
 * If many ranks lack a chunk, two ask for it within the gathering time divided by this.
 */
#define HASTE_PART 4

/*
 * How many of the answers for a chunk may be repetitions, to ranks that lost the first
 * answer.
 */
#define REPEATED 2

/* The tally of a chunk that has gone to all. */
#define COMMON UINT8_MAX

size_t mmc_repairer_bytes(uint32_t nchunks)
{
	return 5 * mmc_part_bytes(mmc_bitmap_bytes(nchunks)) +
	       mmc_part_bytes(nchunks);
}

void mmc_repairer_init(struct mmc_repairer *repairer, uint8_t *memory,
		       const struct mmc_repairer_config *config)
{
	uint32_t nchunks = config->present->nbits;
	size_t bytes = mmc_bitmap_bytes(nchunks);

	repairer->naks.count = 0;
	repairer->ndirect_naks = 0;
	repairer->ngiven = 0;
	repairer->ngiven_before = 0;
	repairer->nlost = 0;
	repairer->nshared = 0;
	repairer->own = config->own;
	repairer->present = config->present;
	repairer->gathers = config->gathers;
	repairer->multicast_min = config->multicast_min;
	repairer->idle = false;
	repairer->several = false;
	repairer->pools = false;
	repairer->resting = false;
	repairer->unconfirmed = false;
	repairer->ready_ns = MMC_NEVER_NS;
	repairer->rest_ends_ns = MMC_NEVER_NS;
	repairer->gather_ns = config->gather_ns;
	repairer->rest_ns = config->rest_ns;
	mmc_backoff_start(&repairer->phase, 0, config->rest_ns);
	mmc_bitmap_init(&repairer->wanted, mmc_part_take(&memory, bytes),
			nchunks);
	mmc_bitmap_init(&repairer->shared, mmc_part_take(&memory, bytes),
			nchunks);
	mmc_bitmap_init(&repairer->recent, mmc_part_take(&memory, bytes),
			nchunks);
	mmc_bitmap_init(&repairer->before, mmc_part_take(&memory, bytes),
			nchunks);
	mmc_bitmap_init(&repairer->aired, mmc_part_take(&memory, bytes),
			nchunks);
	repairer->tally = memory;
	memset(repairer->tally, 0, nchunks);
}

/*
 * When a resting time ends, forgets what was sent before it. So each answer is
 * remembered for one to two resting times.
 */
static void forget_sent(struct mmc_repairer *repairer, uint64_t now_ns)
{
	if (now_ns < repairer->rest_ends_ns)
		return;
	repairer->resting &= now_ns - repairer->rest_ends_ns <
			     repairer->rest_ns;
	repairer->ngiven -= repairer->ngiven_before;
	for (uint32_t i = 0; i < repairer->ngiven; i++)
		repairer->given[i] =
			repairer->given[i + repairer->ngiven_before];
	if (repairer->resting) {
		mmc_bitmap_copy(&repairer->before, &repairer->recent);
	} else {
		mmc_bitmap_clear_all(&repairer->before);
		repairer->ngiven = 0;
	}
	repairer->ngiven_before = repairer->ngiven;
	mmc_bitmap_clear_all(&repairer->recent);
	repairer->rest_ends_ns = repairer->resting ? now_ns + repairer->rest_ns
						   : MMC_NEVER_NS;
	repairer->resting = false;
}

/* Returns whether `chunk` was sent to `peer` alone in the remembered resting times. */
static bool was_given(const struct mmc_repairer *repairer, uint32_t peer,
		      uint32_t chunk)
{
	for (uint32_t i = 0; i < repairer->ngiven; i++) {
		const struct mmc_peer_run *given = &repairer->given[i];

		if (given->peer == peer &&
		    chunk - given->run.first < given->run.count)
			return true;
	}
	return false;
}

/* Extends the gathering time to its full length: more ranks may ask for the chunk. */
static void gather_fully(struct mmc_repairer *repairer)
{
	if (repairer->several)
		return;
	repairer->several = true;
	repairer->ready_ns +=
		repairer->gather_ns - repairer->gather_ns / HASTE_PART;
}

/* Returns whether `chunk` is common: it went to all, or to enough single ranks. */
static bool is_common(const struct mmc_repairer *repairer, uint32_t chunk)
{
	return repairer->gathers &&
	       chunk - repairer->own.first < repairer->own.count &&
	       repairer->tally[chunk] >=
		       mmc_min_u32(repairer->multicast_min + REPEATED, COMMON);
}

/* Marks `chunk` to go to all. */
static void share(struct mmc_repairer *repairer, uint32_t chunk)
{
	mmc_bitmap_test_and_set(&repairer->shared, chunk);
	repairer->nshared += repairer->tally[chunk] < COMMON;
	repairer->tally[chunk] = COMMON;
	repairer->unconfirmed = true;
}

/* Takes a request for a common chunk; returns whether to keep it. */
static bool want_common(struct mmc_repairer *repairer, uint32_t chunk,
			uint64_t now_ns)
{
	if (mmc_backoff_fire(&repairer->phase, now_ns))
		mmc_bitmap_clear_all(&repairer->aired);
	if (mmc_bitmap_test_and_set(&repairer->aired, chunk) ||
	    mmc_bitmap_test_and_set(&repairer->wanted, chunk))
		return false;
	share(repairer, chunk);
	return true;
}

/*
 * Takes the request of `peer` for a chunk that others want already. Returns whether to
 * keep it: not if the chunk will go to all, or the same request is kept already.
 */
static bool want_too(struct mmc_repairer *repairer, uint32_t peer,
		     uint32_t chunk)
{
	uint32_t nothers;

	if (mmc_bitmap_test(&repairer->shared, chunk) ||
	    mmc_naks_include(&repairer->naks, peer, chunk, &nothers))
		return false;
	gather_fully(repairer);
	if (mmc_repairer_pools(repairer))
		repairer->nshared += nothers + 1 == repairer->multicast_min;
	if (mmc_repairer_pools(repairer) ||
	    nothers + 1 < repairer->multicast_min)
		return true;
	share(repairer, chunk);
	return false;
}

/* Takes the request of `peer` for `chunk`; returns whether to keep it. */
static bool want(struct mmc_repairer *repairer, uint32_t peer, uint32_t chunk,
		 uint64_t now_ns)
{
	uint32_t nothers;

	if (mmc_bitmap_test(&repairer->recent, chunk) ||
	    mmc_bitmap_test(&repairer->before, chunk) ||
	    was_given(repairer, peer, chunk))
		return false;
	if (is_common(repairer, chunk) && !mmc_repairer_pools(repairer))
		return want_common(repairer, chunk, now_ns);
	if (mmc_bitmap_test_and_set(&repairer->wanted, chunk))
		return repairer->gathers
			       ? want_too(repairer, peer, chunk)
			       : !mmc_naks_include(&repairer->naks, peer, chunk,
						   &nothers);
	repairer->nlost++;
	return true;
}

void mmc_repairer_on_nak(struct mmc_repairer *repairer, uint32_t peer,
			 struct mmc_run run, uint64_t now_ns)
{
	uint32_t end = run.first + run.count;
	bool first = repairer->naks.count == 0;

	forget_sent(repairer, now_ns);
	if (mmc_repairer_pools(repairer) && !first &&
	    repairer->naks.items[0].peer != peer)
		gather_fully(repairer);
	run.count = 0;
	for (uint32_t chunk = run.first; chunk < end; chunk++) {
		bool kept = mmc_naks_has_room(&repairer->naks) &&
			    want(repairer, peer, chunk, now_ns);

		if (kept && run.count++ == 0)
			run.first = chunk;
		if (run.count > 0 && (!kept || chunk + 1 == end)) {
			mmc_naks_add(&repairer->naks, peer, run);
			repairer->idle = false;
			run.count = 0;
		}
	}
	if (!first || repairer->naks.count == 0)
		return;
	repairer->several = false;
	repairer->ready_ns =
		now_ns +
		(repairer->gathers ? repairer->gather_ns / HASTE_PART : 0);
}

/* Returns the first run of chunks in [from, end) that are wanted and present. */
static struct mmc_run next_wanted(const struct mmc_repairer *repairer,
				  uint32_t from, uint32_t end)
{
	struct mmc_run run = { .first = end };

	while (run.count == 0 && from < end) {
		struct mmc_run held =
			mmc_bitmap_next_set(repairer->present, from, end);

		from = held.first + held.count;
		run = mmc_bitmap_next_set(&repairer->wanted, held.first, from);
	}
	return run;
}

/*
 * Returns the first chunks of `asked` that can go in one batch: all to the same rank or
 * all by multicast. Its count is 0 if none is present.
 */
static struct mmc_run next_batch(const struct mmc_repairer *repairer,
				 struct mmc_run asked, uint32_t nchunks_max)
{
	struct mmc_run run =
		next_wanted(repairer, asked.first, asked.first + asked.count);
	uint32_t n = 1;
	bool shared;

	if (run.count == 0)
		return run;
	shared = mmc_bitmap_test(&repairer->shared, run.first);
	run.count = mmc_min_u32(run.count, nchunks_max);
	while (n < run.count &&
	       mmc_bitmap_test(&repairer->shared, run.first + n) == shared)
		n++;
	run.count = n;
	return run;
}

/* Counts that the chunks of `run` go to a single rank. */
static void count_answer(struct mmc_repairer *repairer, struct mmc_run run)
{
	for (uint32_t chunk = run.first; chunk < run.first + run.count; chunk++)
		if (repairer->tally[chunk] < COMMON)
			repairer->tally[chunk]++;
}

void mmc_repairer_hand_out(struct mmc_repairer *repairer, uint32_t peer,
			   struct mmc_run run, uint64_t now_ns)
{
	uint32_t nothers;

	mmc_naks_remove(&repairer->naks, peer, run);
	for (uint32_t chunk = run.first; chunk < run.first + run.count;
	     chunk++) {
		mmc_naks_include(&repairer->naks, peer, chunk, &nothers);
		if (nothers > 0)
			continue;
		mmc_bitmap_clear(&repairer->wanted, chunk);
		mmc_bitmap_clear(&repairer->shared, chunk);
	}
	if (peer != MMC_PEER_ALL)
		count_answer(repairer, run);
	if (peer != MMC_PEER_ALL && repairer->ngiven < MMC_GIVEN_MAX)
		repairer->given[repairer->ngiven++] =
			(struct mmc_peer_run){ .peer = peer, .run = run };
	else
		mmc_bitmap_set_run(&repairer->recent, run);
	repairer->resting = true;
	if (repairer->rest_ends_ns == MMC_NEVER_NS)
		repairer->rest_ends_ns = now_ns + repairer->rest_ns;
}

void mmc_repairer_on_direct_nak(struct mmc_repairer *repairer, uint32_t peer,
				struct mmc_run run)
{
	for (uint32_t i = 0; i < repairer->ndirect_naks; i++)
		if (repairer->direct_naks[i].peer == peer &&
		    run.first - repairer->direct_naks[i].run.first <
			    repairer->direct_naks[i].run.count)
			return;
	if (repairer->ndirect_naks < MMC_DIRECT_NAKS_MAX)
		repairer->direct_naks[repairer->ndirect_naks++] =
			(struct mmc_peer_run){ .peer = peer, .run = run };
}

/* Writes the next part of the oldest direct NAK. */
static void next_direct(struct mmc_repairer *repairer, uint32_t nchunks_max,
			uint32_t *peer, struct mmc_run *run)
{
	struct mmc_peer_run *first = &repairer->direct_naks[0];

	*peer = first->peer;
	*run = first->run;
	run->count = mmc_min_u32(run->count, nchunks_max);
	count_answer(repairer, *run);
	first->run.first += run->count;
	first->run.count -= run->count;
	if (first->run.count > 0)
		return;
	repairer->ndirect_naks--;
	for (uint32_t i = 0; i < repairer->ndirect_naks; i++)
		repairer->direct_naks[i] = repairer->direct_naks[i + 1];
}

bool mmc_repairer_next(struct mmc_repairer *repairer, uint64_t now_ns,
		       uint32_t nchunks_max, uint32_t *peer,
		       struct mmc_run *run)
{
	forget_sent(repairer, now_ns);
	if (repairer->ndirect_naks > 0) {
		next_direct(repairer, nchunks_max, peer, run);
		return true;
	}
	if (now_ns < repairer->ready_ns || repairer->idle)
		return false;
	for (uint32_t i = repairer->naks.count; i > 0; i--) {
		struct mmc_peer_run nak = repairer->naks.items[i - 1];
		struct mmc_run found =
			next_batch(repairer, nak.run, nchunks_max);

		if (found.count == 0)
			continue;
		*run = found;
		*peer = mmc_bitmap_test(&repairer->shared, found.first)
				? MMC_PEER_ALL
				: nak.peer;
		mmc_repairer_hand_out(repairer, *peer, found, now_ns);
		return true;
	}
	repairer->idle = true;
	if (repairer->naks.count == 0)
		repairer->ready_ns = MMC_NEVER_NS;
	return false;
}

bool mmc_repairer_confirm(struct mmc_repairer *repairer, struct mmc_run *runs,
			  uint32_t *nruns)
{
	uint32_t from = 0;
	uint32_t n = 0;

	if (!repairer->unconfirmed)
		return false;
	repairer->unconfirmed = false;
	while (n < MMC_RUNS_MAX) {
		struct mmc_run run = mmc_bitmap_next_set(
			&repairer->shared, from, repairer->shared.nbits);

		if (run.count == 0)
			break;
		runs[n++] = run;
		from = run.first + run.count;
	}
	*nruns = n;
	return n > 0;
}

uint64_t mmc_repairer_deadline(const struct mmc_repairer *repairer)
{
	if (repairer->ndirect_naks > 0)
		return 0;
	return repairer->idle ? MMC_NEVER_NS : repairer->ready_ns;
}
