/* SPDX-License-Identifier: BSD-3-Clause */
/* The actions of an operation: its block, its end, and batches without room. */
#include "subject.h"

#define RANK 1
#define LEFT 0
#define NRANKS 4
#define BLOCK_CHUNKS 5
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)

/* Checks that this rank's block was multicast, in order, and no other chunk. */
static void check_own_block_sent(const struct subject *subject,
				 uint32_t nchunks)
{
	uint32_t next = RANK * nchunks;

	for (unsigned i = 0; i < subject->ndone; i++) {
		const struct mmc_action *action = &subject->done[i];

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
	static struct subject subject;

	subject_open(&subject, &subject_config);
	subject_run(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_SEND) == NULL);
	subject_begin(&subject);
	check_own_block_sent(&subject, BLOCK_CHUNKS);
	subject.now_ns += MMC_MS_NS;
	subject_run(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_SEND) == NULL);
	subject_close(&subject);
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
	struct mmc_op_config config = subject_config;
	static struct subject subject;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool sends = rows[i].block_bytes > 0;

		config.block_bytes = rows[i].block_bytes;
		config.eager_bytes = rows[i].eager_bytes;
		config.lag_epochs = rows[i].lag_epochs;
		subject_open(&subject, &config);
		subject_run(&subject);
		CHECK_EQ(subject_find_done(&subject, MMC_ACTION_SEND) != NULL,
			 rows[i].eager);
		if (rows[i].eager)
			check_own_block_sent(&subject, 1);
		subject_begin(&subject);
		CHECK_EQ(subject_find_done(&subject, MMC_ACTION_SEND) != NULL,
			 sends && !rows[i].eager);
		subject_close(&subject);
	}
}

/* ---- the end ------------------------------------------------------------- */

/* Buffers come back once all chunks are here and no other rank needs them. */
static void buffers_are_released(void)
{
	const struct mmc_action *done;
	static struct subject subject;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	subject_deliver_all(&subject);
	subject_run(&subject);
	CHECK_EQ(subject.op->state, MMC_OP_RELEASE);
	CHECK(subject_find_done(&subject, MMC_ACTION_DONE) == NULL);
	subject_all_are_done(&subject);
	subject_run(&subject);
	done = subject_find_done(&subject, MMC_ACTION_DONE);
	CHECK(done != NULL && !done->retain);
	CHECK(subject_find_done(&subject, MMC_ACTION_CLOSED) != NULL);
	subject_close(&subject);
}

/* A rank that copies its block returns its buffers and serves from the copy. */
static void a_copy_releases_buffers(void)
{
	struct mmc_op_config config = subject_config;
	struct mmc_message nak = subject_message(MMC_MESSAGE_DIRECT_NAK);
	const struct mmc_action *done;
	static struct subject subject;

	config.retain_bytes = config.block_bytes;
	nak.nitems = 1;
	nak.runs[0] = (struct mmc_run){ RANK * BLOCK_CHUNKS, 2 };
	subject_open(&subject, &config);
	subject_begin(&subject);
	subject_deliver_all(&subject);
	subject_run(&subject);
	done = subject_find_done(&subject, MMC_ACTION_DONE);
	CHECK(done != NULL && done->retain);
	CHECK(subject_find_done(&subject, MMC_ACTION_CLOSED) == NULL);
	subject_hear(&subject, LEFT, &nak);
	subject_run(&subject);
	done = subject_find_done(&subject, MMC_ACTION_SEND);
	CHECK(done != NULL && done->repair && done->peer == LEFT);
	mmc_op_all_done(subject.op);
	subject_run(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_CLOSED) != NULL);
	subject_close(&subject);
}

/* No operation ends while a chunk is being sent or a payload being placed. */
static void buffers_in_use_are_kept(void)
{
	static struct mmc_actions actions;
	static struct subject subject;
	uint32_t last = NCHUNKS - 1;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	subject_deliver_all(&subject);
	subject.op->nsending = 1; /* as if the last chunk had not left yet */
	subject_run(&subject);
	CHECK_EQ(subject.op->state, MMC_OP_FLOW);
	mmc_op_on_sent(subject.op, 1);
	subject_run(&subject);
	CHECK_EQ(subject.op->state, MMC_OP_RELEASE);
	subject_close(&subject);
	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	CHECK_EQ(mmc_op_on_chunk(subject.op, 3, last, 100, subject.now_ns),
		 MMC_VERDICT_PLACE);
	mmc_op_fail(subject.op, MMC_ECANCELED, RANK, false);
	subject_run(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_FAILED) == NULL);
	mmc_op_on_placed(subject.op, last);
	mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
	mmc_op_poll(subject.op, subject.now_ns, &actions);
	CHECK_EQ(actions.count, 2);
	CHECK_EQ(actions.items[0].kind, MMC_ACTION_FAILED);
	CHECK_EQ(actions.items[1].kind, MMC_ACTION_CLOSED);
	subject_close(&subject);
}

/* The operation of a single rank is done at once, without any message. */
static void one_rank_is_done_alone(void)
{
	struct mmc_op_config config = subject_config;
	static struct subject subject;

	config.nranks = 1;
	config.rank = 0;
	for (config.repair = MMC_REPAIR_NAK; config.repair <= MMC_REPAIR_READ;
	     config.repair++) {
		config.read_bytes = config.repair == MMC_REPAIR_READ ? 1000 : 0;
		subject_open(&subject, &config);
		subject_run(&subject);
		CHECK(subject_find_done(&subject, MMC_ACTION_DONE) != NULL);
		CHECK_EQ(subject.nsaid, 0);
		subject_close(&subject);
	}
}

/* ---- room ---------------------------------------------------------------- */

/* Polls with room for only `nfree` actions, until there are no more. */
static void run_cramped(struct subject *subject, uint32_t nfree)
{
	static struct mmc_actions actions;
	uint32_t begin = MMC_ACTIONS_MAX - nfree;

	do {
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		while (actions.count < begin)
			mmc_actions_add(&actions, MMC_ACTION_CLOSED, NULL);
		mmc_op_poll(subject->op, subject->now_ns, &actions);
		actions.count -= begin;
		memmove(actions.items, actions.items + begin,
			actions.count * sizeof(*actions.items));
		subject_note(subject, &actions);
	} while (actions.count > 0);
}

/* With little room an operation does the same, in more batches. */
static void little_room_changes_nothing(void)
{
	const struct mmc_message record = subject_message(MMC_MESSAGE_RECORD);
	static struct subject subject;
	unsigned nsaid = 0;

	for (uint32_t nfree = MMC_ACTIONS_MAX; nfree > 0; nfree--) {
		subject_open(&subject, &subject_config);
		for (uint32_t r = 0; r < NRANKS; r++)
			if (r != RANK)
				subject_hear(&subject, r, &record);
		run_cramped(&subject, nfree);
		check_own_block_sent(&subject, BLOCK_CHUNKS);
		subject_deliver_all(&subject);
		run_cramped(&subject, nfree);
		subject_all_are_done(&subject);
		run_cramped(&subject, nfree);
		CHECK(subject_find_done(&subject, MMC_ACTION_DONE) != NULL);
		CHECK(subject_find_done(&subject, MMC_ACTION_CLOSED) != NULL);
		nsaid = nfree == MMC_ACTIONS_MAX ? subject.nsaid : nsaid;
		CHECK_EQ(subject.nsaid, nsaid);
		subject_close(&subject);
	}
}

/* A failure is multicast three times, however little room there is. */
static void alarms_find_room(void)
{
	static struct subject subject;

	for (uint32_t nfree = MMC_ACTIONS_MAX; nfree > 0; nfree--) {
		subject_open(&subject, &subject_config);
		mmc_op_fail(subject.op, MMC_ECANCELED, RANK, true);
		run_cramped(&subject, nfree);
		CHECK_EQ(subject.nsaid, 3);
		for (unsigned i = 0; i < subject.nsaid; i++)
			CHECK_EQ(subject.said[i].peer, MMC_PEER_ALL);
		CHECK(subject_find_done(&subject, MMC_ACTION_FAILED) != NULL);
		CHECK(subject_find_done(&subject, MMC_ACTION_CLOSED) != NULL);
		subject_close(&subject);
	}
}

CHECK_MAIN(CHECK_TEST(the_block_leaves_once),
	   CHECK_TEST(a_small_block_is_eager), CHECK_TEST(buffers_are_released),
	   CHECK_TEST(a_copy_releases_buffers),
	   CHECK_TEST(buffers_in_use_are_kept),
	   CHECK_TEST(one_rank_is_done_alone),
	   CHECK_TEST(little_room_changes_nothing),
	   CHECK_TEST(alarms_find_room))
