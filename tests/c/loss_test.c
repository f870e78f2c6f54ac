/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver's view of what is missing, in virtual time: nothing is asked for
 * before its allowance or twice in a retry interval, and whatever was lost is
 * asked for until it comes.
 */
#include "check.h"
#include "core/layout.h"
#include "core/loss.h"
#include "core/types.h"

#define NRANKS_MAX 9
#define NCHUNKS_MAX 400
#define SRTT_NS (100 * MMC_US_NS)
#define END_NS (10 * MMC_S_NS)

/* More than any test loses at a time, but for the one about it. */
#define BUDGET_CHUNKS 1000

struct receiver {
	struct mmc_layout layout;
	struct mmc_schedule schedule;
	struct mmc_loss loss;
	struct mmc_bitmap claimed;
	uint8_t *memory;
	uint64_t *words;
	uint64_t now_ns;
	uint32_t rank;
	uint32_t nlost;
	unsigned nquestions;
	unsigned nasked[NCHUNKS_MAX];
	uint64_t asked_ns[NCHUNKS_MAX];
};

static void receiver_open(struct receiver *at, uint32_t nranks,
			  uint32_t block_chunks, uint32_t nchains,
			  enum mmc_repair repair)
{
	*at = (struct receiver){ .now_ns = MMC_S_NS };
	CHECK_EQ(mmc_layout_init(&at->layout, nranks,
				 (uint64_t)block_chunks * 100, 100),
		 0);
	mmc_schedule_init(&at->schedule, NULL, &at->layout, nchains, 100000,
			  UINT32_MAX);
	at->words = malloc(mmc_bitmap_bytes(at->layout.nchunks));
	at->memory = malloc(mmc_loss_bytes(at->layout.nchunks, nranks));
	mmc_bitmap_init(&at->claimed, at->words, at->layout.nchunks);
	mmc_bitmap_set_run(&at->claimed,
			   (struct mmc_run){ .count = block_chunks });
	mmc_loss_init(&at->loss, at->memory, 0, at->layout.nchunks, nranks, 18,
		      mmc_repair_strategy(repair));
}

static void receiver_close(struct receiver *at)
{
	free(at->words);
	free(at->memory);
}

static void begin(struct receiver *at)
{
	mmc_loss_begin(&at->loss, &at->schedule, &at->claimed, SRTT_NS, 0, 0,
		       BUDGET_CHUNKS, at->now_ns);
}

static void claim(struct receiver *at, uint32_t chunk)
{
	const struct mmc_block block = mmc_layout_block(
		&at->layout, mmc_layout_owner(&at->layout, chunk));

	if (mmc_bitmap_test_and_set(&at->claimed, chunk))
		return;
	mmc_loss_mend(&at->loss, mmc_schedule_chain(&at->schedule, &block),
		      chunk, at->now_ns);
}

/* A chunk comes by multicast. */
static void hear(struct receiver *at, uint32_t chunk)
{
	const struct mmc_block block = mmc_layout_block(
		&at->layout, mmc_layout_owner(&at->layout, chunk));
	uint32_t position =
		mmc_schedule_start(&at->schedule, &block) + chunk - block.first;

	if (mmc_bitmap_test(&at->claimed, chunk))
		return;
	claim(at, chunk);
	mmc_loss_hear(&at->loss, mmc_schedule_chain(&at->schedule, &block),
		      position, at->now_ns);
}

static void check_question(struct receiver *at, uint32_t donor,
			   struct mmc_run run)
{
	uint64_t once_ns = at->loss.retry_ns;

	CHECK(donor < at->layout.nranks);
	CHECK(donor != 0);
	CHECK(run.count > 0);
	if (!CHECK(run.first + run.count <= at->layout.nchunks))
		return;
	for (uint32_t c = run.first; c < run.first + run.count; c++) {
		CHECK(!mmc_bitmap_test(&at->claimed, c));
		CHECK(at->nasked[c] == 0 ||
		      at->asked_ns[c] + once_ns <= at->now_ns);
		at->asked_ns[c] = at->now_ns;
		at->nasked[c]++;
	}
}

/* A chunk of the own block has been sent. */
static void send_own(struct receiver *at, uint32_t index)
{
	mmc_loss_sent(&at->loss, 0, index, 1, at->now_ns);
}

/* Asks all that is to be asked now; returns the number of chunks. */
static unsigned ask(struct receiver *at)
{
	struct mmc_run runs[MMC_RUNS_MAX];
	uint32_t nruns;
	uint32_t donor;
	unsigned nchunks = 0;

	while (mmc_loss_ask(&at->loss, &at->claimed, at->now_ns, &donor, runs,
			    &nruns, &at->nlost)) {
		CHECK(nruns >= 1);
		if (!CHECK(nruns <= MMC_RUNS_MAX))
			break;
		at->nquestions++;
		for (uint32_t i = 0; i < nruns; i++) {
			check_question(at, donor, runs[i]);
			nchunks += runs[i].count;
		}
	}
	return nchunks;
}

/* Steps from deadline to deadline until `chunk` has been asked for. */
static bool waits_for_question(struct receiver *at, uint32_t chunk)
{
	unsigned before = at->nasked[chunk];
	uint32_t peer;

	while (at->nasked[chunk] == before) {
		uint64_t next_ns = mmc_loss_deadline(&at->loss);

		if (!CHECK(next_ns < END_NS))
			return false;
		at->now_ns = next_ns > at->now_ns ? next_ns : at->now_ns + 1;
		ask(at);
		while (mmc_loss_silent(&at->loss, at->now_ns, &peer))
			CHECK(peer != 0);
	}
	return true;
}

static void nothing_lost(void)
{
	static struct receiver at;

	for (uint32_t nchains = 1; nchains <= 4; nchains++) {
		receiver_open(&at, 4, 10, nchains, MMC_REPAIR_NAK);
		CHECK_EQ(mmc_loss_deadline(&at.loss), MMC_NEVER_NS);
		begin(&at);
		for (uint32_t turn = 0; turn < 4; turn++)
			for (uint32_t i = 0; i < 10 * nchains; i++) {
				uint32_t owner = turn * nchains + i % nchains;

				at.now_ns += 1000;
				if (owner < 4)
					hear(&at, owner * 10 + i / nchains);
				CHECK_EQ(ask(&at), 0);
			}
		CHECK_EQ(at.nlost, 0);
		receiver_close(&at);
	}
}

/* A gap is asked for after the allowance, of the owner, and only the gap. */
static void a_gap(void)
{
	static struct receiver at;
	uint64_t heard_ns;

	receiver_open(&at, 3, 20, 3, MMC_REPAIR_NAK);
	begin(&at);
	for (uint32_t c = 20; c < 30; c++)
		if (c != 24 && c != 25)
			hear(&at, c);
	heard_ns = at.now_ns;
	CHECK_EQ(ask(&at), 0);
	CHECK(waits_for_question(&at, 24));
	CHECK(at.now_ns >= heard_ns + at.loss.allowance_ns);
	CHECK(at.now_ns <= heard_ns + at.loss.allowance_ns + at.loss.jitter_ns);
	CHECK_EQ(at.nasked[25], 1);
	CHECK_EQ(at.nasked[23] + at.nasked[26] + at.nasked[30], 0);
	CHECK_EQ(at.nlost, 2);
	CHECK_EQ(at.nquestions, 1);
	CHECK(waits_for_question(&at, 24));
	CHECK_EQ(at.nlost, 2);
	receiver_close(&at);
}

/* What comes late within the allowance is not asked for. */
static void reordered(void)
{
	static struct receiver at;

	receiver_open(&at, 3, 20, 3, MMC_REPAIR_NAK);
	begin(&at);
	hear(&at, 25);
	for (uint32_t c = 20; c < 25; c++)
		hear(&at, c);
	at.now_ns = mmc_loss_deadline(&at.loss);
	CHECK_EQ(ask(&at), 0);
	CHECK_EQ(at.nlost, 0);
	receiver_close(&at);
}

/* More gaps than one request names, of several owners. */
static void many_gaps(void)
{
	static struct receiver at;

	for (unsigned repair = 0; repair < 2; repair++) {
		receiver_open(&at, 3, 130, 3, (enum mmc_repair)repair);
		begin(&at);
		for (uint32_t c = 131; c < 390; c += 2)
			hear(&at, c);
		at.now_ns += 10 * MMC_MS_NS;
		ask(&at);
		for (uint32_t c = 130; c < 389; c++)
			CHECK_EQ(at.nasked[c],
				 !mmc_bitmap_test(&at.claimed, c));
		CHECK_EQ(at.nlost, 130);
		receiver_close(&at);
	}
}

/* Silence is asked about, and what the record tells is as good as seen. */
static void silence(void)
{
	static struct receiver at;
	uint32_t peer = 0;

	receiver_open(&at, 4, 10, 2, MMC_REPAIR_NAK);
	begin(&at);
	hear(&at, 20); /* rank 2, chain 0, turn 1; chain 1 is silent */
	at.now_ns += 2 * at.loss.quiet_ns;
	CHECK(mmc_loss_silent(&at.loss, at.now_ns, &peer));
	CHECK_EQ(peer, 2);
	CHECK(mmc_loss_silent(&at.loss, at.now_ns, &peer));
	CHECK_EQ(peer, 1);
	CHECK(!mmc_loss_silent(&at.loss, at.now_ns, &peer));
	mmc_loss_tell(&at.loss, 1, 4, true, at.now_ns);
	CHECK(waits_for_question(&at, 10));
	CHECK_EQ(at.nasked[13], 1);
	CHECK_EQ(at.nasked[14], 0);
	CHECK_EQ(at.nasked[30], 0);
	receiver_close(&at);
}

/* A record that tells more than there is reaches no further than the block. */
static void hostile_records(void)
{
	static struct receiver at;

	for (uint32_t nchains = 1; nchains <= 4; nchains++) {
		receiver_open(&at, 4, 10, nchains, MMC_REPAIR_NAK);
		begin(&at);
		for (uint32_t owner = 0; owner < 4; owner++) {
			mmc_loss_tell(&at.loss, owner, 0, true, at.now_ns);
			mmc_loss_tell(&at.loss, owner, UINT32_MAX, owner % 2,
				      at.now_ns);
		}
		CHECK(waits_for_question(&at, 39));
		receiver_close(&at);
	}
}

/*
 * A repair that is announced need not be asked for; but if it is lost too, it
 * must be, whether the gap was seen before the announcement or after.
 */
static void announced_and_lost_again(void)
{
	static struct receiver at;
	const struct mmc_run run = { .first = 24, .count = 1 };

	for (unsigned early = 0; early < 2; early++)
		for (unsigned pause = 0; pause < 2; pause++) {
			receiver_open(&at, 3, 20, 3, MMC_REPAIR_NAK);
			begin(&at);
			for (uint32_t c = 20; c < 40; c++) {
				if (c == (early ? 23 : 27)) {
					CHECK_EQ(mmc_loss_hush(&at.loss,
							       &at.claimed, run,
							       at.now_ns),
						 1);
					at.now_ns += pause * 700 * MMC_US_NS;
					ask(&at);
				}
				if (c != 24)
					hear(&at, c);
			}
			CHECK(waits_for_question(&at, 24));
			receiver_close(&at);
		}
}

/* Whatever was lost is asked for again and again, ever more rarely. */
static void persistent(void)
{
	static struct receiver at;
	uint64_t first_ns;

	for (unsigned repair = 0; repair < 2; repair++) {
		receiver_open(&at, 3, 20, 1, (enum mmc_repair)repair);
		begin(&at);
		hear(&at, 59);
		first_ns = at.now_ns;
		for (int i = 0; i < 30; i++)
			CHECK(waits_for_question(&at, 21));
		CHECK(at.now_ns - first_ns > 20 * MMC_BACKOFF_MAX_NS);
		CHECK(at.now_ns - first_ns < 80 * MMC_BACKOFF_MAX_NS);
		receiver_close(&at);
	}
}

/* What came before the plan was known is neither missing nor counted twice. */
static void early_chunks(void)
{
	static struct receiver at;

	receiver_open(&at, 3, 20, 3, MMC_REPAIR_NAK);
	for (uint32_t c = 20; c < 35; c += 3)
		mmc_bitmap_test_and_set(&at.claimed, c);
	begin(&at);
	CHECK_EQ(at.loss.chains[0].nleft, 0);
	CHECK_EQ(at.loss.chains[1].nleft, 15);
	CHECK_EQ(at.loss.chains[1].seen, 13);
	CHECK(waits_for_question(&at, 21));
	CHECK_EQ(at.nasked[33], 0);
	receiver_close(&at);
}

/* Random loss of chunks, answers and announcements: all comes in the end. */
static void run_randomly(struct receiver *at, struct mmc_prng *prng)
{
	uint32_t nchunks = at->layout.nchunks;
	uint32_t peer;

	for (uint32_t turn = 0; turn * at->schedule.nchains < at->layout.nranks;
	     turn++)
		for (uint32_t i = 0; i < at->layout.block_chunks; i++)
			for (uint32_t m = 0; m < at->schedule.nchains; m++) {
				uint32_t owner =
					turn * at->schedule.nchains + m;
				uint32_t c =
					owner * at->layout.block_chunks + i;

				at->now_ns += 20 * MMC_US_NS;
				if (owner >= at->layout.nranks)
					continue;
				if (owner == 0)
					send_own(at, i);
				if (mmc_prng_below(prng, 8) == 0)
					mmc_loss_hush(&at->loss, &at->claimed,
						      (struct mmc_run){
							      .first = c,
							      .count = 1,
						      },
						      at->now_ns);
				if (mmc_prng_below(prng, 3) != 0)
					hear(at, c);
				ask(at);
			}
	while (mmc_bitmap_count_run(&at->claimed,
				    (struct mmc_run){ .count = nchunks }) <
	       nchunks) {
		uint64_t next_ns = mmc_loss_deadline(&at->loss);

		if (!CHECK(next_ns < END_NS))
			return;
		at->now_ns = next_ns > at->now_ns ? next_ns : at->now_ns + 1;
		while (mmc_loss_silent(&at->loss, at->now_ns, &peer))
			if (mmc_prng_below(prng, 2) == 0)
				mmc_loss_tell(&at->loss, peer,
					      at->layout.block_chunks,
					      mmc_prng_below(prng, 2) == 0,
					      at->now_ns);
		ask(at);
		for (uint32_t c = 0; c < nchunks; c++)
			if (at->asked_ns[c] == at->now_ns &&
			    mmc_prng_below(prng, 2) == 0)
				claim(at, c);
	}
}

static void everything_comes(void)
{
	static struct receiver at;
	struct mmc_prng prng = { .state = 19 };

	for (uint32_t seed = 0; seed < 600; seed++) {
		uint32_t nranks = 2 + seed % (NRANKS_MAX - 1);

		prng.state = seed;
		receiver_open(&at, nranks,
			      1 + (uint32_t)mmc_prng_below(&prng, 40),
			      1 + (uint32_t)mmc_prng_below(&prng, nranks),
			      (enum mmc_repair)(seed % 2));
		begin(&at);
		run_randomly(&at, &prng);
		receiver_close(&at);
		if (check_failures > 0) {
			fprintf(stderr, "seed %" PRIu32 "\n", seed);
			break;
		}
	}
}

/* No more is asked for than fits the budget; then the rest, as answers come. */
static void within_the_budget(void)
{
	struct receiver at;
	uint32_t nwaited = 0;
	uint32_t next = 100;

	receiver_open(&at, 3, 100, 3, MMC_REPAIR_NEIGHBOUR);
	begin(&at);
	at.loss.budget_chunks = 24;
	mmc_loss_expect_nothing(
		&at.loss, mmc_repair_strategy(MMC_REPAIR_NEIGHBOUR), at.now_ns);
	while (next < 300) {
		struct mmc_run runs[MMC_RUNS_MAX];
		uint32_t nruns;
		uint32_t donor;

		while (mmc_loss_ask(&at.loss, &at.claimed, at.now_ns, &donor,
				    runs, &nruns, &at.nlost)) {
			CHECK_EQ(donor, 2);
			for (uint32_t i = 0; i < nruns; i++)
				nwaited += runs[i].count;
		}
		CHECK(nwaited <= 24);
		if (!CHECK(nwaited > 0))
			break;
		claim(&at, next++);
		nwaited--;
	}
	CHECK_EQ(at.loss.waited_chunks, 0);
	receiver_close(&at);
}

CHECK_MAIN(CHECK_TEST(within_the_budget), CHECK_TEST(nothing_lost),
	   CHECK_TEST(a_gap), CHECK_TEST(reordered), CHECK_TEST(many_gaps),
	   CHECK_TEST(silence), CHECK_TEST(hostile_records),
	   CHECK_TEST(announced_and_lost_again), CHECK_TEST(persistent),
	   CHECK_TEST(early_chunks), CHECK_TEST(everything_comes))
