/* SPDX-License-Identifier: BSD-3-Clause */
/* What the entry barrier's messages carry, under loss and among hostile ranks. */
#include "carried_net.h"

static uint32_t rounds_of(uint32_t nranks)
{
	uint32_t nrounds = 0;

	while (UINT32_C(1) << nrounds < nranks)
		nrounds++;
	return nrounds;
}

/* All results are right, whatever the network does to the messages. */
static void loss_and_duplication(void)
{
	static const uint64_t losses[] = { 0, UINT64_C(1) << 29,
					   UINT64_C(1) << 31 };
	static const uint32_t sizes[] = { 3, BLOCK_BYTES_MAX };
	static struct net net;

	for (uint32_t nranks = 2; nranks <= NRANKS_MAX;
	     nranks += 1 + nranks / 9)
		for (uint64_t seed = 0; seed < 6; seed++) {
			/* Whole barriers of a Bcast would need chunks. */
			net_open(&net, nranks, false, seed, losses[seed % 3]);
			net.block_bytes = sizes[seed / 3];
			run(&net);
			for (uint32_t r = 0; r < nranks; r++)
				for (uint32_t e = 1; e <= NEPOCHS; e++)
					CHECK(net.ranks[r].done[e]);
			net_close(&net);
		}
}

/* Without loss an Allgather costs each rank one message a round, and no multicast. */
static void exact_messages(void)
{
	static struct net net;

	for (uint32_t nranks = 2; nranks <= NRANKS_MAX; nranks++) {
		net_open(&net, nranks, false, nranks, 0);
		for (uint32_t r = 0; r < nranks; r++)
			start(&net, r);
		for (uint32_t r = 0; r < nranks; r++)
			poll_rank(&net, r);
		while (net.nmessages > 0)
			deliver_any(&net);
		CHECK_EQ(net.nsent, nranks * rounds_of(nranks));
		CHECK_EQ(net.nmulticast, 0);
		for (uint32_t r = 0; r < nranks; r++)
			CHECK(net.ranks[r].done[1]);
		net_close(&net);
	}
}

/* Moves all ranks on to epoch 2, as if they had passed the barrier of epoch 1. */
static void skip_first(struct net *net)
{
	for (uint32_t r = 0; r < net->nranks; r++) {
		net->ranks[r].epochs.last = 1;
		net->ranks[r].epochs.done = 1;
		net->ranks[r].epochs.lead = 7;
	}
}

/* A bare Bcast is one multicast; its root waits for nobody, lost or not. */
static void bare_bcast(void)
{
	static struct net net;

	for (uint32_t nranks = 2; nranks <= NRANKS_MAX; nranks++)
		for (uint32_t lost = 0; lost < 2; lost++) {
			uint32_t root;

			net_open(&net, nranks, true, nranks, 0);
			net.block_bytes = BLOCK_BYTES_MAX;
			skip_first(&net);
			root = root_of(&net, 2);
			start(&net, root);
			net.loss = lost ? UINT64_C(1) << 32 : 0;
			poll_rank(&net, root);
			CHECK(net.ranks[root].done[2]);
			CHECK_EQ(net.nsent, 1);
			CHECK_EQ(net.nmulticast, 1);
			net.loss = 0;
			for (uint32_t r = 0; r < nranks; r++)
				if (r != root)
					start(&net, r);
			for (uint32_t i = 0; i < 100; i++) {
				while (net.nmessages > 0)
					deliver_any(&net);
				for (uint32_t r = 0; r < nranks; r++)
					poll_rank(&net, r);
				net.now_ns += STEP_NS;
			}
			for (uint32_t r = 0; r < nranks; r++)
				CHECK(net.ranks[r].done[2]);
			/* Each rank that heard nothing asks, and is answered, once. */
			CHECK_EQ(net.nsent, 1 + 2 * lost * (nranks - 1));
			net_close(&net);
		}
}

/* A rank that starts something else makes all fail, in any epoch and also at its root. */
static void disagreement(void)
{
	static struct net net;

	for (uint32_t nranks = 2; nranks <= 9; nranks++)
		for (uint32_t odd = 0; odd < nranks; odd++)
			for (uint32_t epoch = 1; epoch <= 3; epoch++) {
				net_open(&net, nranks, false, odd, 0);
				net.odd = odd;
				net.odd_epoch = epoch;
				run(&net);
				for (uint32_t r = 0; r < nranks; r++)
					CHECK_EQ(net.ranks[r]
							 .epochs.poison.error,
						 MMC_EMISMATCH);
				net_close(&net);
			}
}

/* Blocks that are not owed are refused, and change nothing. */
static void hostile_blocks(void)
{
	static struct net net;
	struct mmc_op *op;
	struct mmc_run run;

	net_open(&net, 5, false, 1, 0);
	start(&net, 0);
	op = net.ranks[0].ops[1];
	for (uint32_t source = 0; source < 5; source++)
		for (uint32_t nbytes = 0; nbytes < 20; nbytes++) {
			bool owed = (source == 4 && nbytes == 3) ||
				    (source == 3 && nbytes == 6) ||
				    (source == 1 && nbytes == 3);

			CHECK_EQ(mmc_op_on_part(op, source, 0, nbytes, &run),
				 owed ? MMC_VERDICT_PLACE
				      : MMC_VERDICT_FOREIGN);
			CHECK_EQ(mmc_op_on_part(op, source, 3, nbytes, &run),
				 MMC_VERDICT_FOREIGN);
		}
	CHECK_EQ(op->npresent, 1);
	CHECK_EQ(mmc_op_on_part(op, 3, 0, 6, &run), MMC_VERDICT_PLACE);
	CHECK_EQ(run.first, 2);
	CHECK_EQ(run.count, 2);
	mmc_op_on_carried(op, 3, 0, net.now_ns);
	CHECK_EQ(op->npresent, 3);
	CHECK_EQ(mmc_op_on_part(op, 3, 0, 6, &run), MMC_VERDICT_DUPLICATE);
	/* A part that comes again is a message, and no chunk. */
	CHECK_EQ(net.ranks[0].counters.value[MMC_COUNT_RX_DUPLICATE_CHUNKS], 0);
	net_close(&net);
}

/* A round counts only when all its parts have come, in any order, each once. */
static void parts(void)
{
	static const uint32_t firsts[] = { 960, 0, 1920 };
	static struct net net;
	struct mmc_op *op;
	struct mmc_run run;

	net_open(&net, 9, false, 1, 0);
	net.block_bytes = BLOCK_BYTES_MAX;
	start(&net, 0);
	op = net.ranks[0].ops[1];
	CHECK_EQ(mmc_op_on_part(op, 5, 2880, 0, &run), MMC_VERDICT_FOREIGN);
	CHECK_EQ(mmc_op_on_part(op, 5, 1920, 960, &run), MMC_VERDICT_FOREIGN);
	CHECK_EQ(mmc_op_on_part(op, 5, UINT32_MAX - 255, 880, &run),
		 MMC_VERDICT_FOREIGN);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t nbytes = firsts[i] == 1920 ? 880 : 960;

		CHECK_EQ(op->npresent, 7);
		CHECK_EQ(op->entry.brought, 0);
		CHECK_EQ(mmc_op_on_part(op, 5, firsts[i], nbytes, &run),
			 MMC_VERDICT_PLACE);
		CHECK_EQ(run.first, 2);
		CHECK_EQ(run.count, 4);
		mmc_op_on_carried(op, 5, firsts[i], net.now_ns);
		CHECK_EQ(mmc_op_on_part(op, 5, firsts[i], nbytes, &run),
			 MMC_VERDICT_DUPLICATE);
	}
	CHECK_EQ(op->npresent, 7 * 5);
	CHECK_EQ(op->entry.brought, 1 << 2);
	net_close(&net);
}

/* Parts that a question has crossed are not sent again, until they must have been lost. */
static void crossed_question(void)
{
	static struct net net;
	struct mmc_op *op;

	net_open(&net, 2, false, 1, 0);
	start(&net, 0);
	op = net.ranks[0].ops[1];
	CHECK(!mmc_op_has_lent(op, 1, net.now_ns));
	mmc_op_lend(op, 1, net.now_ns);
	CHECK(mmc_op_has_lent(op, 1, net.now_ns));
	CHECK(!mmc_op_has_lent(op, 2, net.now_ns));
	CHECK(mmc_op_has_lent(op, 1, net.now_ns + 199 * MMC_US_NS));
	CHECK(!mmc_op_has_lent(op, 1, net.now_ns + MMC_MS_NS));
	mmc_op_lend(op, MMC_PEER_ALL, net.now_ns);
	CHECK(mmc_op_has_lent(op, 2, net.now_ns));
	net_close(&net);
}

CHECK_MAIN(CHECK_TEST(loss_and_duplication), CHECK_TEST(exact_messages),
	   CHECK_TEST(bare_bcast), CHECK_TEST(disagreement),
	   CHECK_TEST(hostile_blocks), CHECK_TEST(parts),
	   CHECK_TEST(crossed_question))
