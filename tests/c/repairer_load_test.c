/* SPDX-License-Identifier: BSD-3-Clause */
/* A repairer under many requests, for a long time, and at random. */
#include "repairer_model.h"

/* Requests that do not fit are dropped; repeating them brings every chunk. */
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

/* An NCF names only what will be multicast, in as many runs as fit. */
static void long_ncfs(void)
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

/* Repeats the requests of all ranks for what they still wait for. */
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

/* Under random requests, every rank that goes on asking is served. */
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

/* A chunk that is requested before it is present is sent as soon as it is. */
static void standing_requests(void)
{
	struct model model;
	struct mmc_run run;
	uint32_t peer;

	model_open(&model, false);
	mmc_bitmap_clear_all(&model.present);
	mmc_repairer_on_nak(&model.repairer, 2, (struct mmc_run){ 10, 100 },
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

/* Each direct NAK is answered by unicast, and only a limited number is kept. */
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
				mmc_repairer_on_direct_nak(
					&model.repairer, asker,
					(struct mmc_run){ 5, 40 });
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
		mmc_repairer_on_direct_nak(&model.repairer, i % NPEERS,
					   (struct mmc_run){ i % NCHUNKS, 1 });
	CHECK(model.repairer.ndirect_naks <= MMC_DIRECT_NAKS_MAX);
	model_close(&model);
}

/*
 * Ranks that lack the same chunks ask one after the other. A few are answered by
 * unicast; then the chunks go to all, ever more rarely, and only direct NAKs get
 * unicasts.
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
	model.repairer.multicast_min = 3;
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t asker = i % NPEERS;
		bool direct = i % 20 == 19;

		model.now_ns += 3 * REST_NS;
		if (direct)
			mmc_repairer_on_direct_nak(&model.repairer, asker, run);
		else
			mmc_repairer_on_nak(&model.repairer, asker, run,
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
	   CHECK_TEST(direct_naks), CHECK_TEST(too_many_requests),
	   CHECK_TEST(long_ncfs), CHECK_TEST(random_requests))
