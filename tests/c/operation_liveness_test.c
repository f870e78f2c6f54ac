/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that stand still, or end, while others wait for them. */
#include "failures.h"

#define TIMEOUT_NS (10 * MMC_S_NS)
#define STOP_NS (6 * TIMEOUT_NS)

static const struct ranks_shape plain = {
	.nranks = 4,
	.nepochs = 2,
	.nactive = 1,
	.block_bytes = 2500,
	.chunk_bytes = 100,
	.window_bytes = 6000,
	.delay_ns = 10 * MMC_US_NS,
	.late = MMC_PEER_ALL,
	.odd = MMC_PEER_NONE,
	.dead = MMC_PEER_NONE,
	.read_bytes = 408,
	.inquires = true,
	.late_timeout_ns = 600 * MMC_S_NS,
};

/* Stops a rank after `nsteps` for STOP_NS; returns whether that was before the end. */
static bool stop_after(struct ranks *net, const struct ranks_shape *shape,
		       uint32_t stopped, uint32_t nsteps)
{
	bool amid;

	ranks_open(net, shape);
	amid = ranks_step_to(net, nsteps);
	net->shape.stopped = stopped;
	net->shape.stop_begin_ns = net->now_ns;
	net->shape.stop_end_ns = net->now_ns + STOP_NS;
	return amid;
}

/* Whenever a rank stops, no operation fails: all wait, and get all data. */
static void stopped_at_any_moment(void)
{
	static struct ranks net;

	for (uint32_t nranks = 2; nranks <= 5; nranks += nranks < 3 ? 1 : 2)
		for (uint32_t repair = 0; repair < 3; repair++)
			for (uint32_t copies = 0; copies < 2; copies++) {
				struct ranks_shape shape = plain;
				uint32_t nsteps = 0;

				shape.nranks = nranks;
				shape.repair = (enum mmc_repair)repair;
				shape.retain_bytes = copies * 10000;
				shape.block_bytes = 800;
				shape.loss = 1 << 28;
				for (bool amid = true; amid;
				     nsteps += 1 + nsteps / 2) {
					shape.seed = nsteps + nranks;
					amid = stop_after(&net, &shape,
							  nsteps % nranks,
							  nsteps);
					CHECK(ranks_run(&net));
					ranks_check_failed(&net, MMC_OK, 0);
					CHECK(net.now_ns < 2 * STOP_NS);
					ranks_close(&net);
				}
			}
}

/* Where nothing vouches for a silent rank, it counts as dead after TIMEOUT. */
static void stopped_without_a_witness(void)
{
	static struct ranks net;

	for (uint32_t stopped = 0; stopped < 4; stopped++) {
		struct ranks_shape shape = plain;

		shape.inquires = false;
		shape.nepochs = 1;
		stop_after(&net, &shape, stopped, 0);
		CHECK(ranks_run(&net));
		ranks_check_failed(&net, MMC_ENOANSWER, stopped);
		ranks_close(&net);
	}
}

/* A rank that stands still for longer than LATE_TIMEOUT is given up, and named. */
static void late_for_too_long(void)
{
	static struct ranks net;

	for (uint32_t repair = 0; repair < 3; repair++)
		for (uint32_t nsteps = 0; nsteps < 60; nsteps += 7) {
			struct ranks_shape shape = plain;

			shape.repair = (enum mmc_repair)repair;
			shape.late_timeout_ns = 2 * TIMEOUT_NS;
			shape.nepochs = 1;
			shape.loss = 1 << 28;
			shape.seed = nsteps;
			CHECK(stop_after(&net, &shape, nsteps % 4, nsteps));
			CHECK(ranks_run(&net));
			ranks_check_failed(&net, MMC_ELATE, nsteps % 4);
			for (uint32_t r = 0; r < 4; r++)
				CHECK(r == nsteps % 4 ||
				      net.rank[r].epoch[1].failed);
			ranks_close(&net);
		}
}

/* A process that has ended is named at once, by all ranks that lack data. */
static void ended_at_any_moment(void)
{
	static struct ranks net;

	for (uint32_t repair = 0; repair < 3; repair++)
		for (uint32_t ended = 0; ended < 3; ended++) {
			struct ranks_shape shape = plain;
			bool amid = true;

			shape.nranks = 3;
			shape.repair = (enum mmc_repair)repair;
			shape.ended = true;
			for (uint32_t nsteps = 0; amid;
			     nsteps += 1 + nsteps / 2) {
				ranks_open(&net, &shape);
				amid = ranks_step_to(&net, nsteps);
				net.shape.dead = ended;
				CHECK(ranks_run(&net));
				CHECK(net.now_ns < 2 * MMC_S_NS);
				for (uint32_t r = 0; r < 3; r++) {
					const struct mmc_poison *poison =
						&net.rank[r].epochs.poison;

					if (r == ended ||
					    poison->error == MMC_OK)
						continue;
					CHECK_EQ(poison->error, MMC_EGONE);
					CHECK_EQ(poison->culprit, ended);
				}
				ranks_close(&net);
			}
		}
}

/* A process that ends while it is stopped is not waited for any longer. */
static void killed_while_it_is_stopped(void)
{
	static struct ranks net;

	for (uint32_t nsteps = 0; nsteps < 60; nsteps += 7) {
		struct ranks_shape shape = plain;
		uint32_t stopped = nsteps % 4;

		shape.nepochs = 1;
		shape.repair = (enum mmc_repair)(nsteps % 3);
		CHECK(stop_after(&net, &shape, stopped, nsteps));
		while (net.now_ns < net.shape.stop_begin_ns + STOP_NS / 2)
			CHECK(ranks_step(&net));
		ranks_check_failed(&net, MMC_OK, 0);
		net.shape.dead = stopped;
		net.shape.ended = true;
		CHECK(ranks_run(&net));
		ranks_check_failed(&net, MMC_EGONE, stopped);
		CHECK(net.now_ns <
		      net.shape.stop_begin_ns + STOP_NS / 2 + 3 * MMC_S_NS);
		ranks_close(&net);
	}
}

/* If a stopped rank's machine falls silent, the rank is dead after TIMEOUT. */
static void cut_off_while_it_is_stopped(void)
{
	static struct ranks net;

	for (uint32_t nsteps = 0; nsteps < 60; nsteps += 7) {
		struct ranks_shape shape = plain;
		uint32_t stopped = nsteps % 4;

		shape.nepochs = 1;
		stop_after(&net, &shape, stopped, nsteps);
		while (net.now_ns < net.shape.stop_begin_ns + STOP_NS / 2)
			CHECK(ranks_step(&net));
		net.shape.dead = stopped;
		CHECK(ranks_run(&net));
		ranks_check_failed(&net, MMC_ENOANSWER, stopped);
		CHECK(net.now_ns < net.shape.stop_begin_ns + STOP_NS / 2 +
					   TIMEOUT_NS + 2 * MMC_S_NS);
		ranks_close(&net);
	}
}

/*
 * Where ranks answer only in their own calls, a rank that computes for longer
 * than TIMEOUT makes no other fail, though nothing vouches for it.
 */
static void unattended(void)
{
	static struct ranks net;

	for (uint32_t computing = 0; computing < 4; computing++) {
		struct ranks_shape shape = plain;

		shape.unattended = true;
		shape.inquires = false;
		shape.nepochs = 1;
		stop_after(&net, &shape, computing, 0);
		CHECK(ranks_run(&net));
		ranks_check_failed(&net, MMC_OK, 0);
		CHECK(net.now_ns > STOP_NS);
		ranks_close(&net);
	}
}

/* ---- hearsay ------------------------------------------------------------- */

/* Hearsay of a third rank expires, however often two ranks repeat it. */
static void hearsay_wears_out(void)
{
	static struct ranks net;
	struct ranks_shape shape = plain;
	uint64_t told_ns;

	shape.nranks = 3;
	shape.nepochs = 1;
	shape.repair = MMC_REPAIR_NEIGHBOUR;
	stop_after(&net, &shape, 2, 0);
	while (net.rank[0].epochs.open[1] == NULL ||
	       mmc_liveness_late(&net.rank[0].epochs.open[1]->liveness,
				 TIMEOUT_NS) != 2)
		CHECK(ranks_step(&net));
	told_ns = net.now_ns;
	/* From here on the machine of the stopped rank answers nothing. */
	net.shape.dead = 2;
	CHECK(ranks_run(&net));
	ranks_check_failed(&net, MMC_ENOANSWER, 2);
	CHECK(net.now_ns < told_ns + TIMEOUT_NS + 2 * MMC_S_NS);
	ranks_close(&net);
}

/*
 * Older evidence does not change the late rank, evidence from the future counts as of
 * now, and hearing another rank clears nothing.
 */
static void nonsense(void)
{
	struct mmc_liveness liveness;

	mmc_liveness_init(&liveness, 0);
	for (uint64_t now_ns = 0; now_ns <= MMC_S_NS;
	     now_ns += MMC_OBSERVED_NS_MAX)
		mmc_liveness_observe(&liveness, now_ns);
	CHECK_EQ(mmc_liveness_late(&liveness, TIMEOUT_NS), MMC_PEER_NONE);
	mmc_liveness_note_late(&liveness, 7, MMC_S_NS / 2, false);
	CHECK_EQ(liveness.unexplained_ns, MMC_S_NS / 2);
	CHECK_EQ(liveness.stalled_ns, MMC_S_NS);
	CHECK_EQ(liveness.unproven_ns, MMC_S_NS);
	mmc_liveness_note_late(&liveness, 8, MMC_S_NS / 4, true);
	CHECK_EQ(liveness.late_rank, 7);
	CHECK_EQ(liveness.unexplained_ns, MMC_S_NS / 2);
	CHECK_EQ(liveness.unproven_ns, 3 * (MMC_S_NS / 4));
	mmc_liveness_note_late(&liveness, 8, 2 * MMC_S_NS, true);
	CHECK_EQ(liveness.late_rank, 8);
	CHECK_EQ(liveness.late_ns, MMC_S_NS);
	CHECK_EQ(liveness.unproven_ns, 0);
	mmc_liveness_hear_rank(&liveness, 7);
	CHECK_EQ(mmc_liveness_late(&liveness, 1), 8);
	mmc_liveness_hear_rank(&liveness, 8);
	CHECK_EQ(mmc_liveness_late(&liveness, TIMEOUT_NS), MMC_PEER_NONE);
}

CHECK_MAIN(CHECK_TEST(stopped_at_any_moment),
	   CHECK_TEST(stopped_without_a_witness), CHECK_TEST(late_for_too_long),
	   CHECK_TEST(ended_at_any_moment),
	   CHECK_TEST(killed_while_it_is_stopped),
	   CHECK_TEST(cut_off_while_it_is_stopped), CHECK_TEST(unattended),
	   CHECK_TEST(hearsay_wears_out), CHECK_TEST(nonsense))
