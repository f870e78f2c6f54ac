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
	static struct net net;

	for (uint32_t nranks = 2; nranks <= NRANKS_MAX;
	     nranks += 1 + nranks / 9)
		for (uint64_t seed = 0; seed < 6; seed++) {
			/* Whole barriers of a Bcast would need chunks. */
			net_open(&net, nranks, false, seed, losses[seed % 3]);
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
			bool owed =
				(source == 4 && nbytes == BLOCK_BYTES) ||
				(source == 3 && nbytes == 2 * BLOCK_BYTES) ||
				(source == 1 && nbytes == BLOCK_BYTES);

			CHECK_EQ(mmc_op_on_blocks(op, source, nbytes, &run),
				 owed ? MMC_VERDICT_PLACE
				      : MMC_VERDICT_FOREIGN);
		}
	CHECK_EQ(op->npresent, 1);
	CHECK_EQ(mmc_op_on_blocks(op, 3, 2 * BLOCK_BYTES, &run),
		 MMC_VERDICT_PLACE);
	CHECK_EQ(run.first, 2);
	CHECK_EQ(run.count, 2);
	CHECK(mmc_op_take_block(op, 2));
	CHECK(mmc_op_take_block(op, 3));
	CHECK(!mmc_op_take_block(op, 3));
	mmc_op_on_carried(op, 3, net.now_ns);
	CHECK_EQ(op->npresent, 3);
	CHECK_EQ(mmc_op_on_blocks(op, 3, 2 * BLOCK_BYTES, &run),
		 MMC_VERDICT_DUPLICATE);
	net_close(&net);
}

CHECK_MAIN(CHECK_TEST(loss_and_duplication), CHECK_TEST(exact_messages),
	   CHECK_TEST(bare_bcast), CHECK_TEST(disagreement),
	   CHECK_TEST(hostile_blocks))
