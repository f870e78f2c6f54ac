/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A repairer sends the right chunks to the right ranks, and at the right time. In each
 * test, ask() lets a rank send a NAK, and serve() sends the repairs that are due and
 * returns how many chunks they have (repairer_model.h).
 */
#include "repairer_model.h"

/*
 * If a NAK is followed by no other, it is answered by unicast after a quarter of the
 * gathering time.
 */
static void a_lone_nak_is_answered_by_unicast(void)
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

/*
 * Chunks that two ranks lack are announced in one NCF, and are multicast when the
 * gathering time ends. A chunk that only one rank lacks goes to that rank alone.
 */
static void what_two_ranks_lack_is_multicast(void)
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

/*
 * A chunk that fewer than multicast_min ranks lack goes to each of them by unicast,
 * without an NCF. A chunk that more ranks lack is multicast.
 */
static void only_what_many_ranks_lack_is_multicast(void)
{
	for (uint32_t multicast_min = 2; multicast_min <= NPEERS;
	     multicast_min++)
		for (uint32_t nasking = 1; nasking <= NPEERS; nasking++) {
			static struct model model;
			unsigned nsent[NPEERS] = { 0 };
			unsigned nmulticast = 0;
			struct mmc_run run;
			uint32_t peer;

			model_open(&model, true);
			model.repairer.multicast_min = multicast_min;
			for (uint32_t p = 0; p < nasking; p++)
				ask(&model, p, p, 30);
			CHECK_EQ(model.repairer.unconfirmed,
				 nasking >= multicast_min);
			model.now_ns += GATHER_NS;
			while (mmc_repairer_next(&model.repairer, model.now_ns,
						 7, &peer, &run))
				if (peer == MMC_PEER_ALL)
					nmulticast += run.count;
				else
					nsent[peer] += run.count;
			for (uint32_t p = 0; p < nasking; p++)
				CHECK(nsent[p] + nmulticast >= 30);
			if (nasking < multicast_min)
				for (uint32_t p = 0; p < nasking; p++)
					CHECK_EQ(nsent[p], 30);
			else
				/*
				 * Rank p asks for chunks p to p + 29, so the ranks
				 * together ask for 30 + nasking - 1 different
				 * chunks. At either end of these, there are
				 * multicast_min - 1 chunks that fewer than
				 * multicast_min ranks lack. All others are multicast.
				 */
				CHECK_EQ(nmulticast,
					 30 + nasking - 1 -
						 2 * (multicast_min - 1));
			CHECK(!mmc_repairer_owes(&model.repairer));
			/* A chunk counts as lost once, however many ranks lack it. */
			CHECK_EQ(model.repairer.nlost, 30 + nasking - 1);
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

	model_open(&model, true);
	ask(&model, 2, 0, 8);
	ask(&model, 2, 4, 8);
	ask(&model, 2, 0, 8);
	model.now_ns += GATHER_NS;
	CHECK_EQ(serve(&model), 12);
	CHECK_EQ(model.nmulticast, 0);
	model_close(&model);
}

/*
 * If a rank asks again for chunks that were sent to it, they are sent again only if the
 * resting time has ended.
 */
static void sent_chunks_rest(void)
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

/*
 * A chunk that was sent to one rank by unicast is held back during the resting time
 * from that rank alone: another rank that asks for it gets it.
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

	model_open(&model, false);
	ask(&model, 2, 0, 8);
	CHECK_EQ(serve(&model), 8);
	ask(&model, 3, 20, 8);
	ask(&model, 4, 40, 8);
	CHECK_EQ(serve(&model), 16);
	CHECK_EQ(model.nmulticast, 0);
	model_close(&model);
}

/*
 * A repairer that does not gather NAKs sends a rank the chunks that it asks for even if
 * another rank got the same chunks before, and their resting time has ended.
 */
static void each_rank_is_served_without_gathering(void)
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

CHECK_MAIN(CHECK_TEST(a_lone_nak_is_answered_by_unicast),
	   CHECK_TEST(what_two_ranks_lack_is_multicast),
	   CHECK_TEST(only_what_many_ranks_lack_is_multicast),
	   CHECK_TEST(a_repeated_nak_counts_once), CHECK_TEST(sent_chunks_rest),
	   CHECK_TEST(a_unicast_serves_one_rank_only),
	   CHECK_TEST(naks_are_answered_at_once_without_gathering),
	   CHECK_TEST(each_rank_is_served_without_gathering))
