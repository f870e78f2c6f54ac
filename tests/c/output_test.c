/* SPDX-License-Identifier: BSD-3-Clause */
/* The actions of an operation: its block, its end, and batches without room. */
#include "one_operation.h"

#define RANK 1
#define LEFT 0
#define NRANKS 4
#define BLOCK_CHUNKS 5
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)

/* Checks that this rank's block was multicast, in order, and no other chunk. */
static void check_own_block_sent(const struct one *one, uint32_t nchunks)
{
	uint32_t next = RANK * nchunks;

	for (unsigned i = 0; i < one->ndone; i++) {
		const struct mmc_action *action = &one->done[i];

		if (action->kind != MMC_ACTION_SEND || action->repair)
			continue;
		CHECK_EQ(action->peer, MMC_PEER_ALL);
		CHECK_EQ(action->run.first, next);
		next += action->run.count;
	}
	CHECK_EQ(next, (RANK + 1) * nchunks);
}

/* ---- the block ----------------------------------------------------------- */

/* The block leaves once, in order, and not before all ranks have entered. */
static void the_block_leaves_once(void)
{
	static struct one one;

	one_open(&one, &one_config);
	one_run(&one);
	CHECK(one_find_done(&one, MMC_ACTION_SEND) == NULL);
	one_begin(&one);
	check_own_block_sent(&one, BLOCK_CHUNKS);
	one.now_ns += MMC_MS_NS;
	one_run(&one);
	CHECK(one_find_done(&one, MMC_ACTION_SEND) == NULL);
	one_close(&one);
}

/* A small block leaves at once, unless too many earlier epochs are not done. */
static void a_small_block_is_eager(void)
{
	static const struct {
		uint64_t block_bytes;
		uint64_t eager_bytes;
		uint32_t lag_epochs;
		bool eager;
	} rows[] = {
		{ 100, 400, 1, true },	 { 60, 240, 2, true },
		{ 100, 400, 3, false },	 { 100, 399, 1, false },
		{ 101, 1000, 1, false }, { 0, 1000, 1, false },
	};
	struct mmc_op_config config = one_config;
	static struct one one;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool sends = rows[i].block_bytes > 0;

		config.block_bytes = rows[i].block_bytes;
		config.eager_bytes = rows[i].eager_bytes;
		config.lag_epochs = rows[i].lag_epochs;
		one_open(&one, &config);
		one_run(&one);
		CHECK_EQ(one_find_done(&one, MMC_ACTION_SEND) != NULL,
			 rows[i].eager);
		if (rows[i].eager)
			check_own_block_sent(&one, 1);
		one_begin(&one);
		CHECK_EQ(one_find_done(&one, MMC_ACTION_SEND) != NULL,
			 sends && !rows[i].eager);
		one_close(&one);
	}
}

/* ---- the end ------------------------------------------------------------- */

/* Buffers come back once all chunks are here and no other rank needs them. */
static void buffers_are_released(void)
{
	const struct mmc_action *done;
	static struct one one;

	one_open(&one, &one_config);
	one_begin(&one);
	one_bring_all(&one);
	one_run(&one);
	CHECK_EQ(one.op->state, MMC_OP_RELEASE);
	CHECK(one_find_done(&one, MMC_ACTION_DONE) == NULL);
	one_all_are_done(&one);
	one_run(&one);
	done = one_find_done(&one, MMC_ACTION_DONE);
	CHECK(done != NULL && !done->retain);
	CHECK(one_find_done(&one, MMC_ACTION_CLOSED) != NULL);
	one_close(&one);
}

/* A rank that copies its block returns its buffers and serves from the copy. */
static void a_copy_releases_buffers(void)
{
	struct mmc_op_config config = one_config;
	struct mmc_message nak = one_message(MMC_MESSAGE_DIRECT_NAK);
	const struct mmc_action *done;
	static struct one one;

	config.retain_bytes = config.block_bytes;
	nak.nitems = 1;
	nak.runs[0] = (struct mmc_run){ RANK * BLOCK_CHUNKS, 2 };
	one_open(&one, &config);
	one_begin(&one);
	one_bring_all(&one);
	one_run(&one);
	done = one_find_done(&one, MMC_ACTION_DONE);
	CHECK(done != NULL && done->retain);
	CHECK(one_find_done(&one, MMC_ACTION_CLOSED) == NULL);
	one_hear(&one, LEFT, &nak);
	one_run(&one);
	done = one_find_done(&one, MMC_ACTION_SEND);
	CHECK(done != NULL && done->repair && done->peer == LEFT);
	mmc_op_all_done(one.op);
	one_run(&one);
	CHECK(one_find_done(&one, MMC_ACTION_CLOSED) != NULL);
	one_close(&one);
}

/* No operation ends while a chunk is being sent or a payload being placed. */
static void buffers_in_use_are_kept(void)
{
	static struct mmc_actions actions;
	static struct one one;
	uint32_t last = NCHUNKS - 1;

	one_open(&one, &one_config);
	one_begin(&one);
	one_bring_all(&one);
	one.op->nsending = 1; /* as if the last chunk had not left yet */
	one_run(&one);
	CHECK_EQ(one.op->state, MMC_OP_FLOW);
	mmc_op_on_sent(one.op, 1);
	one_run(&one);
	CHECK_EQ(one.op->state, MMC_OP_RELEASE);
	one_close(&one);
	one_open(&one, &one_config);
	one_begin(&one);
	CHECK_EQ(mmc_op_on_chunk(one.op, 3, last, 100, one.now_ns),
		 MMC_VERDICT_PLACE);
	mmc_op_fail(one.op, MMC_ECANCELED, RANK, false);
	one_run(&one);
	CHECK(one_find_done(&one, MMC_ACTION_FAILED) == NULL);
	mmc_op_on_placed(one.op, last);
	mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
	mmc_op_poll(one.op, one.now_ns, &actions);
	CHECK_EQ(actions.count, 2);
	CHECK_EQ(actions.items[0].kind, MMC_ACTION_FAILED);
	CHECK_EQ(actions.items[1].kind, MMC_ACTION_CLOSED);
	one_close(&one);
}

/* The operation of a single rank is done at once, without any message. */
static void one_rank_is_done_alone(void)
{
	struct mmc_op_config config = one_config;
	static struct one one;

	config.nranks = 1;
	config.rank = 0;
	for (config.repair = MMC_REPAIR_NAK; config.repair <= MMC_REPAIR_READ;
	     config.repair++) {
		config.read_bytes = config.repair == MMC_REPAIR_READ ? 1000 : 0;
		one_open(&one, &config);
		one_run(&one);
		CHECK(one_find_done(&one, MMC_ACTION_DONE) != NULL);
		CHECK_EQ(one.nsaid, 0);
		one_close(&one);
	}
}

/* ---- room ---------------------------------------------------------------- */

/* Polls with room for only `nfree` actions, until there are no more. */
static void run_cramped(struct one *one, uint32_t nfree)
{
	static struct mmc_actions actions;
	uint32_t begin = MMC_ACTIONS_MAX - nfree;

	do {
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		while (actions.count < begin)
			mmc_actions_add(&actions, MMC_ACTION_CLOSED, NULL);
		mmc_op_poll(one->op, one->now_ns, &actions);
		actions.count -= begin;
		memmove(actions.items, actions.items + begin,
			actions.count * sizeof(*actions.items));
		one_note(one, &actions);
	} while (actions.count > 0);
}

/* With little room an operation does the same, in more batches. */
static void little_room_changes_nothing(void)
{
	const struct mmc_message record = one_message(MMC_MESSAGE_RECORD);
	static struct one one;
	unsigned nsaid = 0;

	for (uint32_t nfree = MMC_ACTIONS_MAX; nfree > 0; nfree--) {
		one_open(&one, &one_config);
		for (uint32_t r = 0; r < NRANKS; r++)
			if (r != RANK)
				one_hear(&one, r, &record);
		run_cramped(&one, nfree);
		check_own_block_sent(&one, BLOCK_CHUNKS);
		one_bring_all(&one);
		run_cramped(&one, nfree);
		one_all_are_done(&one);
		run_cramped(&one, nfree);
		CHECK(one_find_done(&one, MMC_ACTION_DONE) != NULL);
		CHECK(one_find_done(&one, MMC_ACTION_CLOSED) != NULL);
		nsaid = nfree == MMC_ACTIONS_MAX ? one.nsaid : nsaid;
		CHECK_EQ(one.nsaid, nsaid);
		one_close(&one);
	}
}

/* A failure is multicast three times, however little room there is. */
static void alarms_find_room(void)
{
	static struct one one;

	for (uint32_t nfree = MMC_ACTIONS_MAX; nfree > 0; nfree--) {
		one_open(&one, &one_config);
		mmc_op_fail(one.op, MMC_ECANCELED, RANK, true);
		run_cramped(&one, nfree);
		CHECK_EQ(one.nsaid, 3);
		for (unsigned i = 0; i < one.nsaid; i++)
			CHECK_EQ(one.said[i].peer, MMC_PEER_ALL);
		CHECK(one_find_done(&one, MMC_ACTION_FAILED) != NULL);
		CHECK(one_find_done(&one, MMC_ACTION_CLOSED) != NULL);
		one_close(&one);
	}
}

CHECK_MAIN(CHECK_TEST(the_block_leaves_once),
	   CHECK_TEST(a_small_block_is_eager), CHECK_TEST(buffers_are_released),
	   CHECK_TEST(a_copy_releases_buffers),
	   CHECK_TEST(buffers_in_use_are_kept),
	   CHECK_TEST(one_rank_is_done_alone),
	   CHECK_TEST(little_room_changes_nothing),
	   CHECK_TEST(alarms_find_room))
