/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures other than loss: every rank gets its data or the same error. */
#include "failures.h"

#define TIMEOUT_NS (10 * MMC_S_NS)

static const struct ranks_shape plain = {
	.nranks = 4,
	.nepochs = 1,
	.nactive = 1,
	.block_bytes = 2500,
	.chunk_bytes = 100,
	.window_bytes = 6000,
	.delay_ns = 10 * MMC_US_NS,
	.late = MMC_PEER_ALL,
	.odd = MMC_PEER_NONE,
	.dead = MMC_PEER_NONE,
	.read_bytes = 408,
};

/* If a rank never answers, all others fail, and name it. */
static void dead_from_the_beginning(void)
{
	static struct ranks net;

	for (uint32_t nranks = 2; nranks <= 9; nranks++)
		for (uint32_t dead = 0; dead < nranks; dead++) {
			struct ranks_shape shape = plain;

			shape.nranks = nranks;
			shape.dead = dead;
			ranks_open(&net, &shape);
			CHECK(ranks_run(&net));
			ranks_check_failed(&net, MMC_ENOANSWER, dead);
			CHECK(net.now_ns < 2 * TIMEOUT_NS);
			ranks_close(&net);
		}
}

/*
 * Lets a rank die after `nsteps`: all others end in time, and those that get no answer
 * name it. Returns whether it died before the end.
 */
static bool die_after(const struct ranks_shape *shape, uint32_t dead,
		      uint32_t nsteps)
{
	static struct ranks net;
	bool died;

	ranks_open(&net, shape);
	died = ranks_step_to(&net, nsteps);
	net.shape.dead = dead;
	CHECK(ranks_run(&net));
	CHECK(net.now_ns < 3 * TIMEOUT_NS);
	for (uint32_t r = 0; r < shape->nranks; r++) {
		const struct mmc_poison *poison = &net.rank[r].epochs.poison;

		if (r != dead && poison->error != MMC_OK) {
			CHECK(poison->error == MMC_ENOANSWER ||
			      poison->error == MMC_ENOPROGRESS);
			if (poison->error == MMC_ENOANSWER)
				CHECK_EQ(poison->culprit, dead);
		}
	}
	ranks_close(&net);
	return died;
}

/* Whenever a rank dies, the operations of all others end in time. */
static void dies_at_any_moment(void)
{
	for (uint32_t repair = 0; repair < 3; repair++)
		for (uint32_t copies = 0; copies < 2; copies++)
			for (uint32_t dead = 0; dead < 3; dead++) {
				struct ranks_shape shape = plain;
				uint32_t nsteps = 0;

				shape.nranks = 3;
				shape.repair = (enum mmc_repair)repair;
				shape.retain_bytes = copies * 10000;
				shape.nepochs = 2;
				shape.block_bytes = 800;
				while (die_after(&shape, dead, nsteps))
					nsteps += 1 + nsteps / 30;
			}
}

/* Whenever a rank cancels, operations that fail report that as their error. */
static void gives_up_at_any_moment(void)
{
	static struct ranks net;
	bool ended = false;

	for (uint32_t nsteps = 0; !ended; nsteps += 7) {
		struct ranks_shape shape = plain;
		const struct mmc_poison poison = {
			.error = MMC_ECANCELED,
			.epoch = 1,
			.culprit = 2,
		};

		shape.repair = (enum mmc_repair)(nsteps % 3);
		shape.seed = nsteps;
		shape.loss = 1 << 28;
		ranks_open(&net, &shape);
		ended = !ranks_step_to(&net, nsteps);
		mmc_epochs_poison(&net.rank[2].epochs, poison, true);
		ranks_poll(&net, 2);
		CHECK(ranks_run(&net));
		for (uint32_t r = 0; r < 4; r++)
			if (net.rank[r].epoch[1].failed)
				CHECK_EQ(net.rank[r].epochs.poison.error,
					 MMC_ECANCELED);
		CHECK(ended || net.rank[2].epochs.poison.error != MMC_OK);
		ranks_close(&net);
	}
}

/* If one rank calls another operation, all ranks fail with a mismatch. */
static void different_operations(void)
{
	static struct ranks net;

	for (uint32_t nranks = 2; nranks <= 9; nranks++)
		for (uint32_t odd = 0; odd < nranks; odd++) {
			struct ranks_shape shape = plain;

			shape.nranks = nranks;
			shape.odd = odd;
			shape.loss = 1 << 28;
			ranks_open(&net, &shape);
			CHECK(ranks_run(&net));
			ranks_check_failed(&net, MMC_EMISMATCH, MMC_PEER_NONE);
			ranks_close(&net);
		}
}

/* MPI lets a rank do something else for ten minutes before it calls a collective. */
static void lateness_is_legal(void)
{
	static struct ranks net;

	for (uint32_t late = 0; late < 5; late++) {
		struct ranks_shape shape = plain;

		shape.nranks = 5;
		shape.nepochs = 2;
		shape.late = late;
		shape.late_ns = 600 * MMC_S_NS;
		shape.loss = 1 << 28;
		ranks_open(&net, &shape);
		CHECK(ranks_run(&net));
		ranks_check_failed(&net, MMC_OK, 0);
		CHECK(net.now_ns > 1200 * MMC_S_NS);
		ranks_close(&net);
	}
}

/* With an entry timeout, all ranks give up on a late rank, and name it. */
static void lateness_may_be_limited(void)
{
	static struct ranks net;

	for (uint32_t nranks = 2; nranks <= 9; nranks++)
		for (uint32_t late = 0; late < nranks; late++) {
			struct ranks_shape shape = plain;

			shape.nranks = nranks;
			shape.late = late;
			shape.late_ns = 600 * MMC_S_NS;
			shape.entry_timeout_ns = 30 * MMC_S_NS;
			ranks_open(&net, &shape);
			CHECK(ranks_run(&net));
			ranks_check_failed(&net, MMC_ENOENTRY, late);
			CHECK(net.rank[late].epochs.last == 0);
			CHECK(net.now_ns > 30 * MMC_S_NS);
			CHECK(net.now_ns < 40 * MMC_S_NS);
			ranks_close(&net);
		}
}

/* A rank that enters just in time is not blamed; the late rank that it awaits is. */
static void just_in_time(void)
{
	static struct ranks net;

	for (uint32_t nranks = 3; nranks <= 9; nranks++)
		for (uint32_t late = 0; late < nranks; late++)
			for (uint64_t left_ms = 1; left_ms < 25; left_ms += 4) {
				struct ranks_shape shape = plain;

				shape.nranks = nranks;
				shape.late = late;
				shape.late_ns = 600 * MMC_S_NS;
				shape.tardy = (late + 1) % nranks;
				shape.tardy_ns = MMC_S_NS - left_ms * MMC_MS_NS;
				shape.entry_timeout_ns = MMC_S_NS;
				ranks_open(&net, &shape);
				CHECK(ranks_run(&net));
				ranks_check_failed(&net, MMC_ENOENTRY, late);
				ranks_close(&net);
			}
}

/* Stopping a machine for an hour, with all its ranks, fails none of them. */
static void a_stopped_machine(void)
{
	static struct ranks net;

	for (uint32_t nsteps = 0; nsteps < 400; nsteps += 5) {
		struct ranks_shape shape = plain;

		shape.seed = nsteps;
		shape.loss = 1 << 28;
		shape.entry_timeout_ns = TIMEOUT_NS;
		shape.repair = (enum mmc_repair)(nsteps % 3);
		ranks_open(&net, &shape);
		ranks_step_to(&net, nsteps);
		net.now_ns += 3600 * MMC_S_NS;
		events_put_off(&net.events, 3600 * MMC_S_NS);
		CHECK(ranks_run(&net));
		ranks_check_failed(&net, MMC_OK, 0);
		ranks_close(&net);
	}
}

static const char *const event_names[] = {
	"ALL_ENTERED",	  "COMPLETE",	"COMPLETE_WITH_COPY",
	"COMPLETE_AHEAD", "RIGHT_DONE", "ALL_DONE",
	"FAILURE",
};

static void check_seen(enum mmc_op_state state, enum mmc_op_event event,
		       enum mmc_op_state next)
{
	char text[128];

	if (ranks_seen[state][next][event == MMC_OP_FAILURE])
		return;
	snprintf(text, sizeof(text), "never seen: %s %s %s",
		 mmc_op_state_name(state), event_names[event],
		 mmc_op_state_name(next));
	check_failed(text, __FILE__, __LINE__);
}

/*
 * The root's block is too large to copy, so the root waits in the release
 * barrier. The other ranks have nothing to copy: they are done before it, and
 * take part in its barrier.
 */
static void root_keeps_no_copy(void)
{
	static struct ranks net;
	struct ranks_shape shape = plain;

	shape.nranks = 5;
	shape.sole = true;
	shape.retain_bytes = shape.block_bytes - 1;
	ranks_open(&net, &shape);
	CHECK(ranks_run(&net));
	ranks_close(&net);
}

/* The tests take every transition of the table, and all others are refused. */
static void every_transition(void)
{
	enum mmc_op_state next;

	if (!ranks_seen[MMC_OP_RELEASE][MMC_OP_CLOSED][true]) {
		dies_at_any_moment();
		gives_up_at_any_moment();
	}
	root_keeps_no_copy();
#define CHECK_ROW(state, event, next)                                          \
	check_seen(MMC_OP_##state, MMC_OP_##event, MMC_OP_##next);
	MMC_OP_TABLE(CHECK_ROW)
#undef CHECK_ROW
	CHECK(!mmc_op_next_state(MMC_OP_CLOSED, MMC_OP_FAILURE, &next));
	CHECK(!mmc_op_next_state(MMC_OP_FAILED, MMC_OP_ALL_DONE, &next));
	CHECK(!mmc_op_next_state(MMC_OP_ENTRY, MMC_OP_COMPLETE, &next));
	CHECK(mmc_op_next_state(MMC_OP_ENTRY, MMC_OP_ALL_ENTERED, &next));
	CHECK_EQ(next, MMC_OP_FLOW);
}

CHECK_MAIN(CHECK_TEST(dead_from_the_beginning), CHECK_TEST(dies_at_any_moment),
	   CHECK_TEST(gives_up_at_any_moment), CHECK_TEST(different_operations),
	   CHECK_TEST(lateness_is_legal), CHECK_TEST(lateness_may_be_limited),
	   CHECK_TEST(just_in_time), CHECK_TEST(a_stopped_machine),
	   CHECK_TEST(every_transition))
