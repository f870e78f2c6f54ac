/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A repairer against what it was asked for: nothing unasked for is sent, nothing
 * twice within the resting time, and whoever goes on asking is served.
 */
#include "check.h"
#include "core/repair/repairer.h"
#include "core/types.h"
#include "support/prng.h"

#define NCHUNKS 150
#define NPEERS 6
#define GATHER_NS (100 * MMC_US_NS)
#define REST_NS (400 * MMC_US_NS)

struct model {
	struct mmc_repairer repairer;
	uint8_t *memory;
	uint64_t words[(NCHUNKS + 63) / 64];
	struct mmc_bitmap present;
	uint64_t now_ns;
	uint64_t asked_ns[NPEERS][NCHUNKS]; /* 0: not, or served since */
	uint64_t sent_ns[NPEERS][NCHUNKS];  /* 0: never */
	unsigned nsent;
	unsigned nmulticast;
};

static void model_open(struct model *model, bool gathers)
{
	*model = (struct model){
		.memory = malloc(mmc_repairer_bytes(NCHUNKS)),
		.now_ns = MMC_S_NS,
	};
	mmc_bitmap_init(&model->present, model->words, NCHUNKS);
	mmc_bitmap_set_run(&model->present,
			   (struct mmc_run){ .count = NCHUNKS });
	mmc_repairer_init(&model->repairer, model->memory, NCHUNKS,
			  (struct mmc_run){ 0, NCHUNKS }, &model->present,
			  gathers, 2, GATHER_NS, REST_NS);
}

static void model_close(struct model *model)
{
	free(model->memory);
}

static void ask(struct model *model, uint32_t peer, uint32_t first,
		uint32_t count)
{
	struct mmc_run run = { .first = first, .count = count };

	for (uint32_t i = 0; i < count; i++)
		if (model->asked_ns[peer][first + i] == 0)
			model->asked_ns[peer][first + i] = model->now_ns;
	mmc_repairer_ask(&model->repairer, peer, run, model->now_ns);
}

/* Takes note of a chunk sent to `peer`, and whether it should have been. */
static void check_sent(struct model *model, uint32_t peer, uint32_t chunk)
{
	unsigned nasked = 0;
	bool rested = false;

	for (uint32_t p = 0; p < NPEERS; p++)
		nasked += model->asked_ns[p][chunk] != 0;
	CHECK(nasked > 0);
	for (uint32_t p = 0; p < NPEERS; p++)
		if (peer == p || peer == MMC_PEER_ALL) {
			uint64_t sent_ns = model->sent_ns[p][chunk];

			rested |= sent_ns == 0 ||
				  sent_ns + REST_NS <= model->now_ns;
			model->sent_ns[p][chunk] = model->now_ns;
		}
	CHECK(rested);
	if (peer != MMC_PEER_ALL) {
		CHECK(model->asked_ns[peer][chunk] != 0);
		model->asked_ns[peer][chunk] = 0;
		return;
	}
	model->nmulticast++;
	CHECK(model->repairer.gathers);
	for (uint32_t p = 0; p < NPEERS; p++)
		model->asked_ns[p][chunk] = 0;
}

/* Sends all that is to be sent now; returns how many chunks that was. */
static unsigned serve(struct model *model)
{
	unsigned before = model->nsent;
	struct mmc_run run;
	uint32_t peer;

	while (mmc_repairer_next(&model->repairer, model->now_ns, 5, &peer,
				 &run)) {
		CHECK(run.count >= 1);
		CHECK(run.count <= 5);
		CHECK(peer < NPEERS || peer == MMC_PEER_ALL);
		if (!CHECK(run.first + run.count <= NCHUNKS))
			break;
		for (uint32_t i = 0; i < run.count; i++)
			check_sent(model, peer, run.first + i);
		model->nsent += run.count;
	}
	CHECK(mmc_repairer_deadline(&model->repairer) > model->now_ns);
	return model->nsent - before;
}

static void one_asker_by_unicast(void)
{
	struct model model;
	struct mmc_run runs[MMC_RUNS_MAX];
	uint32_t nruns;

	model_open(&model, true);
	CHECK_EQ(mmc_repairer_deadline(&model.repairer), MMC_NEVER_NS);
	ask(&model, 3, 10, 12);
	CHECK_EQ(mmc_repairer_deadline(&model.repairer),
		 model.now_ns + GATHER_NS / 4);
	CHECK_EQ(serve(&model), 0);
	model.now_ns += GATHER_NS / 4 - 1;
	CHECK_EQ(serve(&model), 0);
	CHECK(!mmc_repairer_confirm(&model.repairer, runs, &nruns));
	model.now_ns++;
	CHECK_EQ(serve(&model), 12);
	CHECK_EQ(model.nmulticast, 0);
	CHECK_EQ(mmc_repairer_deadline(&model.repairer), MMC_NEVER_NS);
	model_close(&model);
}

static void several_by_multicast(void)
{
	struct model model;
	struct mmc_run runs[MMC_RUNS_MAX];
	uint32_t nruns = 0;

	model_open(&model, true);
	ask(&model, 0, 10, 20);
	model.now_ns += GATHER_NS / 8;
	ask(&model, 1, 20, 20);
	CHECK(mmc_repairer_confirm(&model.repairer, runs, &nruns));
	CHECK_EQ(nruns, 1);
	CHECK_EQ(runs[0].first, 20);
	CHECK_EQ(runs[0].count, 10);
	CHECK(!mmc_repairer_confirm(&model.repairer, runs, &nruns));
	model.now_ns += GATHER_NS * 7 / 8 - 1;
	CHECK_EQ(serve(&model), 0);
	model.now_ns++;
	CHECK_EQ(serve(&model), 30);
	CHECK_EQ(model.nmulticast, 10);
	model_close(&model);
}

/* Of fewer than are worth a multicast each gets its own, and nobody is told. */
static void few_by_unicast(void)
{
	for (uint32_t sharers = 2; sharers <= NPEERS; sharers++)
		for (uint32_t nasking = 1; nasking <= NPEERS; nasking++) {
			static struct model model;
			unsigned nsent[NPEERS] = { 0 };
			unsigned nmulticast = 0;
			struct mmc_run run;
			uint32_t peer;

			model_open(&model, true);
			model.repairer.sharers = sharers;
			for (uint32_t p = 0; p < nasking; p++)
				ask(&model, p, p, 30);
			CHECK_EQ(model.repairer.unconfirmed,
				 nasking >= sharers);
			model.now_ns += GATHER_NS;
			while (mmc_repairer_next(&model.repairer, model.now_ns,
						 7, &peer, &run))
				if (peer == MMC_PEER_ALL)
					nmulticast += run.count;
				else
					nsent[peer] += run.count;
			/* Chunk c is wanted by those up to c. */
			for (uint32_t p = 0; p < nasking; p++)
				CHECK(nsent[p] + nmulticast >= 30);
			if (nasking < sharers)
				for (uint32_t p = 0; p < nasking; p++)
					CHECK_EQ(nsent[p], 30);
			else
				CHECK_EQ(nmulticast,
					 30 + nasking - 1 - 2 * (sharers - 1));
			CHECK(!mmc_repairer_owes(&model.repairer));
			CHECK_EQ(model.repairer.nlost, 30 + nasking - 1);
			model_close(&model);
		}
}

/* Who asks twice is still one asker. */
static void twice_by_one(void)
{
	struct model model;

	model_open(&model, true);
	ask(&model, 2, 0, 8);
	ask(&model, 2, 4, 8);
	ask(&model, 2, 0, 8);
	model.now_ns += GATHER_NS;
	CHECK_EQ(serve(&model), 12);
	CHECK_EQ(model.nmulticast, 0);
	model_close(&model);
}

/* A request that crossed the repair is not answered again. */
static void rests(void)
{
	struct model model;

	model_open(&model, true);
	ask(&model, 2, 0, 8);
	model.now_ns += GATHER_NS;
	CHECK_EQ(serve(&model), 8);
	model.now_ns += REST_NS / 2;
	ask(&model, 2, 0, 8);
	model.now_ns += GATHER_NS;
	CHECK_EQ(serve(&model), 0);
	model.now_ns += 2 * REST_NS;
	ask(&model, 2, 0, 8);
	model.now_ns += GATHER_NS;
	CHECK_EQ(serve(&model), 8);
	model_close(&model);
}

/* What one rank has been sent by itself another has not. */
static void another_is_not_served_by_it(void)
{
	for (int gathers = 0; gathers < 2; gathers++) {
		struct model model;

		model_open(&model, gathers);
		ask(&model, 2, 0, 8);
		model.now_ns += GATHER_NS;
		CHECK_EQ(serve(&model), 8);
		model.now_ns += REST_NS / 4;
		ask(&model, 3, 4, 8);
		ask(&model, 2, 4, 2);
		model.now_ns += GATHER_NS;
		CHECK_EQ(serve(&model), 8);
		CHECK_EQ(model.nmulticast, 0);
		model_close(&model);
	}
}

static void at_once_without_gathering(void)
{
	struct model model;

	model_open(&model, false);
	ask(&model, 2, 0, 8);
	CHECK_EQ(serve(&model), 8);
	ask(&model, 3, 20, 8);
	ask(&model, 4, 40, 8);
	CHECK_EQ(serve(&model), 16);
	CHECK_EQ(model.nmulticast, 0);
	model_close(&model);
}

/* Two who lack the same are both served, one after the other. */
static void each_asker_without_gathering(void)
{
	struct model model;

	model_open(&model, false);
	ask(&model, 2, 0, 8);
	CHECK_EQ(serve(&model), 8);
	model.now_ns += 2 * REST_NS;
	ask(&model, 3, 0, 8);
	CHECK_EQ(serve(&model), 8);
	model_close(&model);
}

/* What does not fit is dropped; asking again later brings all. */
static void too_many_requests(void)
{
	struct model model;

	model_open(&model, true);
	for (unsigned round = 0; round < 4; round++)
		for (uint32_t peer = 0; peer < NPEERS; peer++)
			for (uint32_t c = 0; c < NCHUNKS; c++)
				ask(&model, peer, c, 1);
	model.now_ns += GATHER_NS;
	CHECK_EQ(serve(&model), NCHUNKS);
	CHECK_EQ(model.nmulticast, NCHUNKS);
	model_close(&model);
}

/* Echoes tell of no more than is to be multicast, in as many parts as fit. */
static void long_echoes(void)
{
	struct model model;
	struct mmc_run runs[MMC_RUNS_MAX];
	uint32_t nruns = 0;

	model_open(&model, true);
	for (uint32_t c = 0; c < NCHUNKS; c += 2)
		ask(&model, 0, c, 1);
	ask(&model, 1, 0, NCHUNKS);
	CHECK(mmc_repairer_confirm(&model.repairer, runs, &nruns));
	CHECK_EQ(nruns, MMC_RUNS_MAX);
	for (uint32_t i = 0; i < nruns; i++) {
		CHECK_EQ(runs[i].first, 2 * i);
		CHECK_EQ(runs[i].count, 1);
	}
	model_close(&model);
}

/* Asks again whatever it still waits for, as a rank would. */
static void ask_all_again(struct model *model)
{
	for (uint32_t p = 0; p < NPEERS; p++)
		for (uint32_t c = 0; c < NCHUNKS; c++)
			if (model->asked_ns[p][c] != 0)
				ask(model, p, c, 1);
}

static bool all_served(const struct model *model)
{
	for (uint32_t p = 0; p < NPEERS; p++)
		for (uint32_t c = 0; c < NCHUNKS; c++)
			if (model->asked_ns[p][c] != 0)
				return false;
	return true;
}

static void random_requests(void)
{
	struct mmc_prng prng = { .state = 17 };
	struct model model;

	for (unsigned round = 0; round < 200; round++) {
		unsigned nrounds = 0;

		model_open(&model, round % 2 == 0);
		for (unsigned step = 0; step < 300; step++) {
			uint32_t first =
				(uint32_t)mmc_prng_below(&prng, NCHUNKS);
			uint32_t most = mmc_prng_chance(&prng, 1u << 31) ? 4
									 : 40;

			most = most < NCHUNKS - first ? most : NCHUNKS - first;
			ask(&model, (uint32_t)mmc_prng_below(&prng, NPEERS),
			    first, 1 + (uint32_t)mmc_prng_below(&prng, most));
			model.now_ns += mmc_prng_below(&prng, GATHER_NS / 2);
			serve(&model);
		}
		while (!all_served(&model) && CHECK(nrounds++ < 20)) {
			ask_all_again(&model);
			model.now_ns += GATHER_NS;
			serve(&model);
			model.now_ns += 2 * REST_NS;
		}
		model_close(&model);
	}
}

/* What is asked for before it is here is sent as soon as it is. */
static void standing_requests(void)
{
	struct model model;
	struct mmc_run run;
	uint32_t peer;

	model_open(&model, false);
	mmc_bitmap_clear_all(&model.present);
	mmc_repairer_ask(&model.repairer, 2, (struct mmc_run){ 10, 100 },
			 model.now_ns);
	for (uint32_t chunk = 109; chunk >= 10; chunk--) {
		CHECK(!mmc_repairer_next(&model.repairer, model.now_ns, 16,
					 &peer, &run));
		CHECK_EQ(mmc_repairer_deadline(&model.repairer), MMC_NEVER_NS);
		mmc_bitmap_publish(&model.present, chunk);
		mmc_repairer_fresh(&model.repairer);
		CHECK(mmc_repairer_next(&model.repairer, model.now_ns, 16,
					&peer, &run));
		CHECK_EQ(peer, 2);
		CHECK_EQ(run.first, chunk);
		CHECK_EQ(run.count, 1);
	}
	CHECK(!mmc_repairer_next(&model.repairer, model.now_ns, 16, &peer,
				 &run));
	model_close(&model);
}

/* Who hears no multicast is answered alone, each time it asks directly, and bounded. */
static void direct_naks(void)
{
	struct model model;
	struct mmc_run run;
	uint32_t peer;
	uint32_t nsent[3] = { 0 };

	model_open(&model, true);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t asker = 1; asker < 3; asker++)
			for (int copy = 0; copy < 2; copy++)
				mmc_repairer_ask_direct(&model.repairer, asker,
							(struct mmc_run){ 5,
									  40 });
		while (mmc_repairer_next(&model.repairer, model.now_ns, 16,
					 &peer, &run)) {
			if (!CHECK(peer == 1 || peer == 2))
				break;
			CHECK(run.count <= 16);
			nsent[peer] += run.count;
		}
	}
	CHECK_EQ(nsent[1], 80);
	CHECK_EQ(nsent[2], 80);
	for (uint32_t i = 0; i < 1000; i++)
		mmc_repairer_ask_direct(&model.repairer, i % NPEERS,
					(struct mmc_run){ i % NCHUNKS, 1 });
	CHECK(model.repairer.ndirect_naks <= MMC_DIRECT_NAKS_MAX);
	model_close(&model);
}

/*
 * Of those who lack the same, but ask one after the other, few are answered alone; then
 * it goes to all, ever more rarely, and alone to whoever asks directly.
 */
static void one_after_the_other(void)
{
	struct model model;
	struct mmc_run run = { 5, 10 };
	uint32_t peer;
	uint32_t nalone = 0;
	uint32_t ndirect_naks = 0;
	uint64_t last_ns = 0;
	uint64_t pause_ns = 0;

	model_open(&model, true);
	model.repairer.sharers = 3;
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t asker = i % NPEERS;
		bool direct = i % 20 == 19;

		model.now_ns += 3 * REST_NS;
		if (direct)
			mmc_repairer_ask_direct(&model.repairer, asker, run);
		else
			mmc_repairer_ask(&model.repairer, asker, run,
					 model.now_ns);
		model.now_ns += GATHER_NS;
		while (mmc_repairer_next(&model.repairer, model.now_ns, 16,
					 &peer, &run)) {
			CHECK_EQ(run.count, 10);
			CHECK_EQ(peer, i < 5 || direct ? asker : MMC_PEER_ALL);
			ndirect_naks += direct;
			nalone += peer == asker && !direct;
			if (peer != MMC_PEER_ALL)
				continue;
			CHECK(model.now_ns - last_ns >= pause_ns);
			if (model.nmulticast++ > 0)
				pause_ns = mmc_min_u64(model.now_ns - last_ns,
						       MMC_BACKOFF_MAX_NS);
			last_ns = model.now_ns;
		}
	}
	CHECK_EQ(nalone, 5);
	CHECK_EQ(ndirect_naks, 10);
	CHECK(model.nmulticast >= 4);
	CHECK(model.nmulticast <= 20);
	model_close(&model);
}

CHECK_MAIN(CHECK_TEST(one_after_the_other), CHECK_TEST(standing_requests),
	   CHECK_TEST(direct_naks), CHECK_TEST(one_asker_by_unicast),
	   CHECK_TEST(several_by_multicast), CHECK_TEST(few_by_unicast),
	   CHECK_TEST(twice_by_one), CHECK_TEST(rests),
	   CHECK_TEST(another_is_not_served_by_it),
	   CHECK_TEST(at_once_without_gathering),
	   CHECK_TEST(each_asker_without_gathering),
	   CHECK_TEST(too_many_requests), CHECK_TEST(long_echoes),
	   CHECK_TEST(random_requests))
