/* SPDX-License-Identifier: BSD-3-Clause */
/* The repair of one rank under each policy: whom it asks, serves and reads. */
#include "check.h"
#include "core/repair/repair.h"
#include "support/memory.h"

#define NRANKS 4
#define BLOCK_CHUNKS 10
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define NWORDS ((NCHUNKS + 63) / 64)
#define RANK 2
#define LEFT 1
#define RIGHT 3
#define SRTT_NS (50 * MMC_US_NS)

struct world {
	struct mmc_layout layout;
	struct mmc_schedule schedule;
	struct mmc_bitmap claimed;
	struct mmc_bitmap present;
	uint64_t claimed_words[NWORDS];
	uint64_t present_words[NWORDS];
	uint8_t *memory;
	struct mmc_repair_state repair;
	uint64_t now_ns;
};

static const struct mmc_run own = { RANK * BLOCK_CHUNKS, BLOCK_CHUNKS };

static void open_world(struct world *at, enum mmc_repair policy)
{
	const struct mmc_loss_terms terms = {
		.srtt_ns = SRTT_NS,
		.budget_chunks = 1000,
	};
	struct mmc_repair_config config = {
		.policy = policy,
		.rank = RANK,
		.nchains = NRANKS,
		.read_bytes = 4096,
		.layout = &at->layout,
		.claimed = &at->claimed,
		.present = &at->present,
		.generation = 5,
	};

	*at = (struct world){ .now_ns = MMC_S_NS };
	CHECK_EQ(mmc_layout_init(&at->layout, NRANKS, BLOCK_CHUNKS * 100, 100),
		 0);
	mmc_schedule_init(&at->schedule, NULL, &at->layout, NRANKS, 100000,
			  UINT32_MAX);
	mmc_bitmap_init(&at->claimed, at->claimed_words, NCHUNKS);
	mmc_bitmap_init(&at->present, at->present_words, NCHUNKS);
	mmc_bitmap_set_run(&at->claimed, own);
	mmc_bitmap_set_run(&at->present, own);
	at->memory = aligned_alloc(
		MMC_ALIGN_BYTES,
		mmc_part_bytes(mmc_repair_bytes(&at->layout, NRANKS, policy)));
	mmc_repair_init(&at->repair, at->memory, &config);
	mmc_repair_begin(&at->repair, &at->schedule, &terms, at->now_ns);
}

static void close_world(struct world *at)
{
	free(at->memory);
}

static bool next_step(struct world *at, struct mmc_fetch_step *step)
{
	return at->repair.policy->poll(&at->repair, at->now_ns, step);
}

/* Serves a NAK of `peer` for `run`; returns how many chunks `peer` is sent. */
static uint32_t serves(struct world *at, uint32_t peer, struct mmc_run run,
		       uint32_t sent_chunks)
{
	const struct mmc_nak nak = {
		.peer = peer,
		.direct = true,
		.nruns = 1,
		.runs = { run },
	};
	uint32_t nchunks = 0;
	uint32_t whom;

	mmc_repair_on_nak(&at->repair, &nak, sent_chunks, at->now_ns);
	at->now_ns += MMC_S_NS;
	while (mmc_repairer_next(&at->repair.repairer, at->now_ns, NCHUNKS,
				 &whom, &run)) {
		CHECK_EQ(whom, peer);
		nchunks += run.count;
	}
	return nchunks;
}

/* The chunks that multicast has not brought are asked for as the policy says. */
static void whom_to_ask(void)
{
	for (unsigned policy = 0; policy < 3; policy++) {
		struct world at;
		struct mmc_nak nak;
		uint32_t nasked = 0;

		open_world(&at, (enum mmc_repair)policy);
		CHECK_EQ(mmc_repair_awaited(&at.repair),
			 policy == MMC_REPAIR_NAK ? 0 : LEFT);
		mmc_loss_expect_nothing(&at.repair.loss, at.repair.policy,
					at.now_ns);
		while (mmc_repair_ask(&at.repair, at.now_ns, &nak)) {
			uint32_t owner = nak.runs[0].first / BLOCK_CHUNKS;

			CHECK_EQ(nak.peer,
				 policy == MMC_REPAIR_NAK ? owner : LEFT);
			for (uint32_t i = 0; i < nak.nruns; i++)
				nasked += nak.runs[i].count;
		}
		CHECK_EQ(nasked, policy == MMC_REPAIR_READ
					 ? 0
					 : NCHUNKS - BLOCK_CHUNKS);
		CHECK_EQ(at.repair.loss.nlost, NCHUNKS - BLOCK_CHUNKS);
		close_world(&at);
	}
}

/* Only `read` fetches; it first asks for the left neighbour's advert. */
static void fetches(void)
{
	const struct mmc_advert advert = { .generation = 8, .has_data = true };
	const uint64_t held[] = { 0x3ff, 8 };
	struct mmc_fetch_step step;
	struct mmc_nak nak;
	struct world at;

	open_world(&at, MMC_REPAIR_READ);
	CHECK_EQ(at.repair.policy->deadline(&at.repair), MMC_NEVER_NS);
	mmc_loss_expect_nothing(&at.repair.loss, at.repair.policy, at.now_ns);
	CHECK(!mmc_repair_ask(&at.repair, at.now_ns, &nak));
	CHECK(next_step(&at, &step));
	CHECK_EQ(step.kind, MMC_FETCH_NAK);
	CHECK_EQ(step.nak.peer, LEFT);
	CHECK(!step.nak.direct);
	at.repair.policy->on_advert(&at.repair, RIGHT, &advert, at.now_ns);
	CHECK(!next_step(&at, &step));
	at.repair.policy->on_advert(&at.repair, LEFT, &advert, at.now_ns);
	CHECK(next_step(&at, &step));
	CHECK_EQ(step.kind, MMC_FETCH_MAP);
	CHECK_EQ(mmc_repair_awaited(&at.repair), LEFT);
	CHECK(mmc_fetcher_mapped(&at.repair.fetcher, step.run,
				 (const uint8_t *)held, at.now_ns));
	CHECK(next_step(&at, &step));
	CHECK_EQ(step.kind, MMC_FETCH_DATA);
	CHECK_EQ(step.run.first, 0);
	CHECK_EQ(step.run.count, BLOCK_CHUNKS);
	close_world(&at);
	open_world(&at, MMC_REPAIR_NEIGHBOUR);
	at.repair.policy->on_advert(&at.repair, LEFT, &advert, at.now_ns);
	CHECK(!next_step(&at, &step));
	CHECK_EQ(at.repair.policy->deadline(&at.repair), MMC_NEVER_NS);
	close_world(&at);
}

/* When the left neighbour is done, its bitmap is read again, once. */
static void looks_when_the_left_is_done(void)
{
	const struct mmc_advert advert = { .generation = 8, .has_data = true };
	const uint64_t nothing[] = { 0, 8 };
	struct mmc_fetch_step step;
	struct mmc_nak nak;
	struct world at;

	open_world(&at, MMC_REPAIR_READ);
	at.repair.policy->on_advert(&at.repair, LEFT, &advert, at.now_ns);
	mmc_loss_expect_nothing(&at.repair.loss, at.repair.policy, at.now_ns);
	CHECK(!mmc_repair_ask(&at.repair, at.now_ns, &nak));
	for (unsigned i = 0; i < 2; i++) {
		CHECK(next_step(&at, &step));
		CHECK_EQ(step.kind, MMC_FETCH_MAP);
		CHECK(mmc_fetcher_mapped(&at.repair.fetcher, step.run,
					 (const uint8_t *)nothing, at.now_ns));
		CHECK(!next_step(&at, &step));
		at.repair.policy->on_peer_done(&at.repair, RIGHT, at.now_ns);
		CHECK(!next_step(&at, &step));
		at.repair.policy->on_peer_done(&at.repair, LEFT, at.now_ns);
	}
	CHECK(!next_step(&at, &step));
	close_world(&at);
}

/* Owners serve what they have sent; neighbours pass on all that they hold. */
static void whom_to_serve(void)
{
	const struct mmc_run all = { 0, NCHUNKS };
	const struct mmc_run nonsense = { NCHUNKS - 1, 2 };
	struct world at;

	for (unsigned policy = 0; policy < 3; policy++) {
		bool passes_on = policy != MMC_REPAIR_NAK;

		open_world(&at, (enum mmc_repair)policy);
		CHECK_EQ(serves(&at, 0, nonsense, BLOCK_CHUNKS), 0);
		CHECK_EQ(serves(&at, 0, all, 0), 0);
		CHECK_EQ(serves(&at, 0, all, 3), 3);
		mmc_bitmap_set_run(&at.present, (struct mmc_run){ 0, 4 });
		mmc_repairer_fresh(&at.repair.repairer);
		at.now_ns += MMC_S_NS;
		CHECK_EQ(serves(&at, RIGHT, all, BLOCK_CHUNKS),
			 BLOCK_CHUNKS + (passes_on ? 4 : 0));
		CHECK_EQ(mmc_repair_accepts(&at.repair, LEFT, 0), passes_on);
		CHECK(!mmc_repair_accepts(&at.repair, RIGHT, 0));
		CHECK(mmc_repair_accepts(&at.repair, 0, 0));
		close_world(&at);
	}
}

/* With `read`, the right neighbour's NAK asks for an advert, not for chunks. */
static void asked_for_memory(void)
{
	struct mmc_nak nak = { .peer = RIGHT, .nruns = 1, .runs = { own } };
	struct world at;
	struct mmc_run run;
	uint32_t whom;

	open_world(&at, MMC_REPAIR_READ);
	CHECK(mmc_repair_advertises_to(&at.repair, RIGHT));
	CHECK(!mmc_repair_advertises_to(&at.repair, LEFT));
	mmc_repair_on_nak(&at.repair, &nak, BLOCK_CHUNKS, at.now_ns);
	CHECK(mmc_advertiser_is_due(&at.repair.advertiser));
	at.now_ns += MMC_S_NS;
	CHECK(!mmc_repairer_next(&at.repair.repairer, at.now_ns, NCHUNKS, &whom,
				 &run));
	close_world(&at);
	open_world(&at, MMC_REPAIR_NEIGHBOUR);
	CHECK(!mmc_repair_advertises_to(&at.repair, RIGHT));
	mmc_repair_on_nak(&at.repair, &nak, BLOCK_CHUNKS, at.now_ns);
	CHECK(!mmc_advertiser_is_due(&at.repair.advertiser));
	CHECK(mmc_repairer_next(&at.repair.repairer, at.now_ns, NCHUNKS, &whom,
				&run));
	close_world(&at);
}

/* Without multicast every policy gives way to `neighbour`. */
static void without_multicast(void)
{
	for (unsigned policy = 0; policy < 3; policy++) {
		struct world at;
		struct mmc_nak nak;

		open_world(&at, (enum mmc_repair)policy);
		mmc_repair_expect_nothing(&at.repair, at.now_ns);
		CHECK(at.repair.policy ==
		      mmc_repair_policy(MMC_REPAIR_NEIGHBOUR));
		CHECK(mmc_repair_ask(&at.repair, at.now_ns, &nak));
		CHECK_EQ(nak.peer, LEFT);
		close_world(&at);
	}
}

/*
 * A rank that asks for its chunks again and again, directly or not, is answered as often
 * as its budget allows, and the others as before.
 */
static void requests_without_end(void)
{
	for (unsigned policy = 0; policy < 3; policy++) {
		struct mmc_nak nak = { .peer = 0, .nruns = 1, .runs = { own } };
		uint32_t nserved = 0;
		struct world at;

		open_world(&at, (enum mmc_repair)policy);
		for (uint32_t i = 0; i < 10000; i++) {
			nak.direct = i % 2 == 0;
			nserved += mmc_repair_on_nak(&at.repair, &nak,
						     BLOCK_CHUNKS, at.now_ns);
		}
		CHECK_EQ(nserved, MMC_BUDGET_TIMES * MMC_BUDGET_CHUNKS_MIN /
					  BLOCK_CHUNKS);
		nak.peer = LEFT;
		CHECK(mmc_repair_on_nak(&at.repair, &nak, BLOCK_CHUNKS,
					at.now_ns));
		close_world(&at);
	}
}

CHECK_MAIN(CHECK_TEST(requests_without_end), CHECK_TEST(whom_to_ask),
	   CHECK_TEST(fetches), CHECK_TEST(looks_when_the_left_is_done),
	   CHECK_TEST(whom_to_serve), CHECK_TEST(asked_for_memory),
	   CHECK_TEST(without_multicast))
