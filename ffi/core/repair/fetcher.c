/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/fetcher.h"

#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"
#include "support/states.h"

/* Looks and leases go by the round trip, but take a longer one for this. */
#define SRTT_MAX_NS MMC_MS_NS

/* The neighbour is asked for its advert again no sooner than after this. */
#define ASK_MIN_NS (200 * MMC_US_NS)

/* ---- states -------------------------------------------------------------- */

static const struct mmc_transition access_rows[] = {
#define ACCESS_ROW(state, event, next)                                         \
	{ MMC_ACCESS_##state, MMC_ACCESS_##event, MMC_ACCESS_##next },
	MMC_ACCESS_TABLE(ACCESS_ROW)
#undef ACCESS_ROW
};

/* Takes `event`, which the table must allow in the current state. */
static void step_access(struct mmc_fetcher *fetcher,
			enum mmc_fetch_access_event event)
{
	unsigned next;

	MMC_ASSERT(mmc_transition_find(
		access_rows, sizeof(access_rows) / sizeof(*access_rows),
		fetcher->access, event, &next));
	fetcher->access = (enum mmc_fetch_access)next;
}

static bool is_readable(const struct mmc_fetcher *fetcher)
{
	return fetcher->access == MMC_ACCESS_READABLE;
}

static bool is_refused(const struct mmc_fetcher *fetcher)
{
	return fetcher->access == MMC_ACCESS_REFUSED;
}

/* ---- beginning ----------------------------------------------------------- */

size_t mmc_fetcher_bytes(uint32_t nchunks)
{
	return mmc_wants_bytes(nchunks) + mmc_lease_bytes(nchunks);
}

void mmc_fetcher_init(struct mmc_fetcher *fetcher, uint8_t *memory,
		      uint32_t rank, const struct mmc_layout *layout,
		      uint32_t read_bytes)
{
	uint32_t nchunks = layout->nchunks;
	uint32_t payload_bytes = read_bytes < MMC_GENERATION_BYTES
					 ? 0
					 : read_bytes - MMC_GENERATION_BYTES;

	*fetcher = (struct mmc_fetcher){
		.layout = *layout,
		.rank = rank,
		.words_max = mmc_min_u32(payload_bytes / sizeof(uint64_t),
					 MMC_READ_WORDS_MAX),
		.chunks_max = payload_bytes / layout->chunk_bytes,
	};
	if (fetcher->words_max == 0 || fetcher->chunks_max == 0)
		step_access(fetcher, MMC_ACCESS_FAILED);
	mmc_backoff_stop(&fetcher->asking);
	mmc_wants_init(&fetcher->wants,
		       mmc_part_take(&memory, mmc_wants_bytes(nchunks)),
		       nchunks);
	mmc_look_init(&fetcher->look, mmc_wants_words(&fetcher->wants));
	mmc_lease_init(&fetcher->lease, memory, nchunks);
}

void mmc_fetcher_begin(struct mmc_fetcher *fetcher, uint64_t srtt_ns)
{
	fetcher->srtt_ns = mmc_min_u64(srtt_ns, SRTT_MAX_NS);
	fetcher->look.srtt_ns = fetcher->srtt_ns;
	fetcher->look.interval_ns = fetcher->srtt_ns;
}

/* Stops reading: wanted chunks are asked for by message from now on. */
static void give_up(struct mmc_fetcher *fetcher)
{
	step_access(fetcher, MMC_ACCESS_FAILED);
	mmc_look_stop(&fetcher->look);
	mmc_wants_make_due(&fetcher->wants);
	mmc_backoff_stop(&fetcher->asking);
}

void mmc_fetcher_learn(struct mmc_fetcher *fetcher,
		       const struct mmc_advert *advert, uint64_t now_ns)
{
	uint64_t known = fetcher->advert.generation;

	if (is_refused(fetcher))
		return;
	if (advert->generation == 0) {
		give_up(fetcher);
		return;
	}
	if (is_readable(fetcher) || (known != 0 && known != advert->generation))
		return;
	fetcher->advert = *advert;
	if (!advert->has_data)
		return;
	step_access(fetcher, MMC_ACCESS_REGISTERED);
	mmc_backoff_stop(&fetcher->asking);
	mmc_look_soon(&fetcher->look, now_ns);
}

void mmc_fetcher_want(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run run,
		      uint64_t now_ns)
{
	bool any_new = mmc_wants_add(&fetcher->wants, claimed, run,
				     is_refused(fetcher));

	mmc_lease_want(&fetcher->lease, now_ns, fetcher->srtt_ns);
	if (is_readable(fetcher) && any_new)
		mmc_look_soon(&fetcher->look, now_ns);
	else if (fetcher->access == MMC_ACCESS_AWAITED &&
		 fetcher->asking.at_ns == MMC_NEVER_NS)
		fetcher->asking = (struct mmc_backoff){
			.at_ns = now_ns,
			.interval_ns =
				mmc_max_u64(ASK_MIN_NS / 2, fetcher->srtt_ns),
		};
}

void mmc_fetcher_hurry(struct mmc_fetcher *fetcher, uint64_t now_ns)
{
	if (is_readable(fetcher) && !fetcher->left_done)
		mmc_look_soon(&fetcher->look, now_ns);
	fetcher->left_done = true;
}

/* ---- the neighbour's bitmap ---------------------------------------------- */

bool mmc_fetcher_map(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_run *words)
{
	struct mmc_look *look = &fetcher->look;
	uint32_t end = look->nwords;
	uint32_t first;
	uint32_t last;

	if (!is_readable(fetcher) || fetcher->nreading == MMC_READS_MAX)
		return false;
	if (!mmc_look_goes_on(look, now_ns))
		return false;
	first = look->next_word;
	while (first < end &&
	       mmc_wants_lacking(&fetcher->wants, claimed, first) == 0)
		first++;
	if (first == end) {
		look->next_word = end;
		mmc_look_end(look, now_ns);
		return false;
	}
	last = first;
	for (uint32_t w = first; w < end && w - first < fetcher->words_max; w++)
		if (mmc_wants_lacking(&fetcher->wants, claimed, w) != 0)
			last = w;
	*words = (struct mmc_run){ .first = first, .count = last + 1 - first };
	mmc_look_read(look, last + 1);
	fetcher->nreading++;
	return true;
}

static uint64_t word_at(const uint8_t *bytes, uint32_t index)
{
	uint64_t word;

	memcpy(&word, bytes + index * sizeof(word), sizeof(word));
	return word;
}

bool mmc_fetcher_mapped(struct mmc_fetcher *fetcher, struct mmc_run words,
			const uint8_t *bytes, uint64_t now_ns)
{
	fetcher->nreading--;
	fetcher->look.nreading--;
	if (is_refused(fetcher))
		return false;
	if (bytes == NULL ||
	    word_at(bytes, words.count) != fetcher->advert.generation) {
		give_up(fetcher);
		return false;
	}
	for (uint32_t i = 0; i < words.count; i++)
		if (mmc_wants_hold(&fetcher->wants, words.first + i,
				   word_at(bytes, i)))
			mmc_look_found(&fetcher->look);
	mmc_look_end(&fetcher->look, now_ns);
	return true;
}

/* ---- the neighbour's data ------------------------------------------------ */

bool mmc_fetcher_data(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run *run)
{
	if (is_refused(fetcher) || fetcher->nreading == MMC_READS_MAX)
		return false;
	*run = mmc_wants_take_due(&fetcher->wants, claimed,
				  fetcher->chunks_max);
	if (run->count == 0)
		return false;
	mmc_wants_begin_read(&fetcher->wants, *run);
	fetcher->nreading++;
	return true;
}

bool mmc_fetcher_read_ended(struct mmc_fetcher *fetcher, struct mmc_run run,
			    uint64_t generation)
{
	bool good = generation != 0 && generation == fetcher->advert.generation;

	fetcher->nreading--;
	if (!good && !is_refused(fetcher))
		give_up(fetcher);
	mmc_wants_end_read(&fetcher->wants, run, good);
	return good;
}

/* ---- messages ------------------------------------------------------------ */

static uint32_t left(const struct mmc_fetcher *fetcher)
{
	uint32_t nranks = fetcher->layout.nranks;

	return (fetcher->rank + nranks - 1) % nranks;
}

/*
 * Writes a NAK for due chunks, which the neighbour must send since it cannot be read.
 */
static bool ask_for_chunks(struct mmc_fetcher *fetcher,
			   const struct mmc_bitmap *claimed,
			   struct mmc_nak *nak)
{
	uint32_t nchunks = claimed->nbits;

	nak->direct = true;
	while (nak->nruns < MMC_RUNS_MAX &&
	       mmc_wants_any_due(&fetcher->wants)) {
		struct mmc_run run =
			mmc_wants_take_due(&fetcher->wants, claimed, nchunks);

		if (run.count > 0)
			nak->runs[nak->nruns++] = run;
	}
	return nak->nruns > 0;
}

/* Writes a NAK that asks for the advert of the data, and names the wanted chunks. */
static bool ask_for_advert(struct mmc_fetcher *fetcher,
			   const struct mmc_bitmap *claimed, uint64_t now_ns,
			   struct mmc_nak *nak)
{
	uint32_t nchunks = claimed->nbits;

	nak->direct = false;
	if (!mmc_backoff_fire(&fetcher->asking, now_ns))
		return false;
	for (uint32_t from = 0; nak->nruns < MMC_RUNS_MAX && from < nchunks;) {
		struct mmc_run run = mmc_bitmap_next_set(&fetcher->wants.wanted,
							 from, nchunks);

		from = run.first + run.count;
		if (run.count > 0 &&
		    mmc_bitmap_count_run(claimed, run) < run.count)
			nak->runs[nak->nruns++] = run;
	}
	if (nak->nruns == 0)
		mmc_backoff_stop(&fetcher->asking);
	return nak->nruns > 0;
}

bool mmc_fetcher_ask(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_nak *nak)
{
	nak->peer = left(fetcher);
	nak->nruns = 0;
	switch (fetcher->access) {
	case MMC_ACCESS_REFUSED:
		return ask_for_chunks(fetcher, claimed, nak);
	case MMC_ACCESS_AWAITED:
		return ask_for_advert(fetcher, claimed, now_ns, nak);
	default:
		return false;
	}
}

bool mmc_fetcher_ask_owner(struct mmc_fetcher *fetcher,
			   const struct mmc_bitmap *claimed, uint64_t now_ns,
			   struct mmc_nak *nak)
{
	struct mmc_lease *lease = &fetcher->lease;

	if (mmc_lease_expire(lease, now_ns))
		for (uint32_t w = 0; w < mmc_wants_words(&fetcher->wants); w++)
			lease->overdue.words[w] &=
				mmc_wants_lacking(&fetcher->wants, claimed, w);
	if (mmc_lease_ask(lease, &fetcher->layout, left(fetcher), nak))
		return true;
	if (mmc_lease_has_ended(lease)) {
		mmc_wants_forget(&fetcher->wants, claimed);
		mmc_lease_renew(lease, &fetcher->wants.wanted, now_ns,
				fetcher->srtt_ns);
	}
	return false;
}

bool mmc_fetcher_next(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, uint64_t now_ns,
		      struct mmc_fetch_step *step)
{
	if (mmc_fetcher_data(fetcher, claimed, &step->run))
		step->kind = MMC_FETCH_DATA;
	else if (mmc_fetcher_map(fetcher, claimed, now_ns, &step->run))
		step->kind = MMC_FETCH_MAP;
	else if (mmc_fetcher_ask(fetcher, claimed, now_ns, &step->nak) ||
		 mmc_fetcher_ask_owner(fetcher, claimed, now_ns, &step->nak))
		step->kind = MMC_FETCH_NAK;
	else
		return false;
	return true;
}

uint64_t mmc_fetcher_deadline(const struct mmc_fetcher *fetcher)
{
	uint64_t at_ns = mmc_lease_deadline(&fetcher->lease);

	if (is_refused(fetcher))
		return mmc_wants_any_due(&fetcher->wants) ? 0 : at_ns;
	if (!is_readable(fetcher))
		return mmc_min_u64(at_ns, fetcher->asking.at_ns);
	if (fetcher->nreading == MMC_READS_MAX)
		return at_ns;
	if (fetcher->look.next_word < fetcher->look.nwords ||
	    mmc_wants_any_due(&fetcher->wants))
		return 0;
	return mmc_min_u64(at_ns, fetcher->look.at_ns);
}
