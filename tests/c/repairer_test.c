/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A repairer sends the right chunks to the right ranks, and at the right time. In the
 * tests, ask(&model, rank, first, count) lets `rank` send a NAK for `count` chunks from
 * chunk `first` on. serve() sends the repairs that are due, and returns how many there
 * are (repairer_model.h).
 */
#include "repairer_model.h"

/* The argument `gathers` of model_open(): whether NAKs are gathered before an answer. */
#define GATHERING true
#define NO_GATHERING false

/* The maximum number of chunks that one call of mmc_repairer_next() may return. */
#define BATCH_CHUNKS 7

/*
 * If no other NAK follows a NAK, the NAK is answered by unicast after a quarter of the
 * gathering time.
 */
static void a_lone_nak_is_answered_by_unicast(void)
{
	struct model model;
	struct mmc_run runs[MMC_RUNS_MAX];
	uint32_t nruns;

	model_open(&model, GATHERING);
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

/*
 * One NCF announces the chunks that two ranks lack. They are multicast when the
 * gathering time ends. A chunk that only one rank lacks goes to that rank alone.
 */
static void what_two_ranks_lack_is_multicast(void)
{
	struct model model;
	struct mmc_run runs[MMC_RUNS_MAX];
	uint32_t nruns = 0;

	model_open(&model, GATHERING);
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

/*
 * A chunk that fewer than multicast_min ranks lack goes to each of them by unicast,
 * without an NCF. A chunk that at least multicast_min ranks lack is multicast.
 */
static void only_what_many_ranks_lack_is_multicast(void)
{
	enum { ASKED_CHUNKS = 30 }; /* by each rank */

	for (uint32_t multicast_min = 2; multicast_min <= NPEERS;
	     multicast_min++)
		for (uint32_t nasking = 1; nasking <= NPEERS; nasking++) {
			static struct model model;
			unsigned nsent[NPEERS] = { 0 };
			unsigned nmulticast = 0;
			/*
			 * How many chunks some rank lacks: rank p lacks ASKED_CHUNKS
			 * chunks from chunk p on.
			 */
			uint32_t nlost = ASKED_CHUNKS + nasking - 1;
			struct mmc_run run;
			uint32_t peer;

			model_open(&model, GATHERING);
			model.repairer.multicast_min = multicast_min;
			for (uint32_t p = 0; p < nasking; p++)
				ask(&model, p, p, ASKED_CHUNKS);
			/* `unconfirmed` says that an NCF is due. */
			CHECK_EQ(model.repairer.unconfirmed,
				 nasking >= multicast_min);
			model.now_ns += GATHER_NS;
			while (mmc_repairer_next(&model.repairer, model.now_ns,
						 BATCH_CHUNKS, &peer, &run))
				if (peer == MMC_PEER_ALL)
					nmulticast += run.count;
				else
					nsent[peer] += run.count;
			for (uint32_t p = 0; p < nasking; p++)
				CHECK(nsent[p] + nmulticast >= ASKED_CHUNKS);
			if (nasking < multicast_min)
				for (uint32_t p = 0; p < nasking; p++)
					CHECK_EQ(nsent[p], ASKED_CHUNKS);
			else
				/*
				 * At either end of the `nlost` chunks, there are
				 * multicast_min - 1 that fewer than multicast_min
				 * ranks lack. All others are multicast.
				 */
				CHECK_EQ(nmulticast,
					 nlost - 2 * (multicast_min - 1));
			CHECK(!mmc_repairer_owes(&model.repairer));
			/* A chunk counts as lost once, however many ranks lack it. */
			CHECK_EQ(model.repairer.nlost, nlost);
			model_close(&model);
		}
}

/*
 * A rank that asks for the same chunk twice counts as one rank that lacks it, so the
 * chunk is not multicast.
 */
static void a_repeated_nak_counts_once(void)
{
	struct model model;

	model_open(&model, GATHERING);
	ask(&model, 2, 0, 8);
	ask(&model, 2, 4, 8);
	ask(&model, 2, 0, 8);
	model.now_ns += GATHER_NS;
	CHECK_EQ(serve(&model), 12);
	CHECK_EQ(model.nmulticast, 0);
	model_close(&model);
}

/*
 * A rank may ask again for chunks that were sent to it. They are sent again only if the
 * resting time has ended.
 */
static void sent_chunks_rest(void)
{
	struct model model;

	model_open(&model, GATHERING);
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

/*
 * A chunk that was sent to one rank by unicast is not sent to that rank again during
 * the resting time. Any other rank that asks for the chunk then still gets it.
 */
static void a_unicast_serves_one_rank_only(void)
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

/* A repairer that does not gather NAKs answers each of them at once, by unicast. */
static void naks_are_answered_at_once_without_gathering(void)
{
	struct model model;

	model_open(&model, NO_GATHERING);
	ask(&model, 2, 0, 8);
	CHECK_EQ(serve(&model), 8);
	ask(&model, 3, 20, 8);
	ask(&model, 4, 40, 8);
	CHECK_EQ(serve(&model), 16);
	CHECK_EQ(model.nmulticast, 0);
	model_close(&model);
}

/*
 * A repairer that does not gather NAKs also serves a rank that asks very late: another
 * rank got the same chunks before, and the resting time of these chunks has ended.
 */
static void each_rank_is_served_without_gathering(void)
{
	struct model model;

	model_open(&model, NO_GATHERING);
	ask(&model, 2, 0, 8);
	CHECK_EQ(serve(&model), 8);
	model.now_ns += 2 * REST_NS;
	ask(&model, 3, 0, 8);
	CHECK_EQ(serve(&model), 8);
	model_close(&model);
}

CHECK_MAIN(CHECK_TEST(a_lone_nak_is_answered_by_unicast),
	   CHECK_TEST(what_two_ranks_lack_is_multicast),
	   CHECK_TEST(only_what_many_ranks_lack_is_multicast),
	   CHECK_TEST(a_repeated_nak_counts_once), CHECK_TEST(sent_chunks_rest),
	   CHECK_TEST(a_unicast_serves_one_rank_only),
	   CHECK_TEST(naks_are_answered_at_once_without_gathering),
	   CHECK_TEST(each_rank_is_served_without_gathering))
