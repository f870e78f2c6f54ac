/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation sends parity behind its chunks, and has mended what it can. */
#include "core/operation/parity.h"

#include "coded_subject.h"

static void begin(struct subject *subject)
{
	const struct mmc_op_config config = config_of(K, M);

	subject_open(subject, &config);
	subject_begin(subject);
	CHECK(mmc_op_is_coded(subject->op));
}

/* Each group's parity goes out behind its chunks; then the whole block counts as sent. */
static void parity_follows_chunks(void)
{
	static struct subject subject;
	uint32_t nchunks = 0;
	uint32_t nrows = 0;

	begin(&subject);
	for (unsigned i = 0; i < subject.ndone; i++) {
		const struct mmc_action *action = &subject.done[i];

		if (action->kind == MMC_ACTION_SEND)
			nchunks += action->run.count;
		if (action->kind != MMC_ACTION_PARITY)
			continue;
		CHECK_EQ(action->peer, MMC_PEER_ALL);
		CHECK_EQ(action->first, nrows);
		CHECK(!action->repair);
		CHECK_EQ(action->run.first, 0);
		CHECK_EQ(action->run.count, 1);
		CHECK_EQ(nchunks, BLOCK_CHUNKS);
		nrows++;
	}
	CHECK_EQ(nrows, 3);
	CHECK_EQ(subject.op->record.sent_chunks, BLOCK_CHUNKS);
	CHECK_EQ(subject.counters.value[MMC_COUNT_PARITY_SENT], 3);
	subject_close(&subject);
}

/*
 * A lost chunk is mended at once when parity takes its place, without a request; a late
 * copy of it is a duplicate.
 */
static void a_loss_is_mended(void)
{
	static struct subject subject;
	uint32_t first = FAR * BLOCK_CHUNKS;
	const struct mmc_action *action;
	struct mmc_mend mend;

	begin(&subject);
	for (uint32_t i = 1; i < BLOCK_CHUNKS; i++)
		CHECK_EQ(subject_deliver(&subject, first + i),
			 MMC_VERDICT_PLACE);
	CHECK_EQ(hear_parity(&subject, 1, 0), MMC_UNKEPT_USELESS);
	CHECK(hear_parity(&subject, 0, 0) >= 0);
	subject_run(&subject);
	action = find_mend(&subject, 0);
	if (action == NULL)
		return;
	mmc_op_describe_mend(subject.op, action, &mend);
	CHECK_EQ(mend.nlost, 1);
	CHECK_EQ(mend.first + mend.columns[0] * mend.stride, first);
	CHECK_EQ(subject_deliver(&subject, first), MMC_VERDICT_DUPLICATE);
	CHECK(!mmc_bitmap_test(&subject.op->present, first));
	mmc_op_on_mended(subject.op, action);
	CHECK(mmc_bitmap_test(&subject.op->present, first));
	CHECK_EQ(subject.op->nplacing, 0);
	CHECK_EQ(subject.counters.value[MMC_COUNT_GROUPS_MENDED], 1);
	CHECK_EQ(subject.counters.value[MMC_COUNT_PARITY_USED], 1);
	CHECK_EQ(subject.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 0);
	subject_close(&subject);
}

/* While datagrams may be waiting, they go first. */
static void a_backlog_goes_first(void)
{
	static struct subject subject;
	uint32_t first = FAR * BLOCK_CHUNKS;

	begin(&subject);
	for (uint32_t i = 1; i < BLOCK_CHUNKS; i++)
		subject_deliver(&subject, first + i);
	CHECK(hear_parity(&subject, 0, 0) >= 0);
	subject.path.backlog = true;
	subject_run(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_MEND) == NULL);
	subject.path.backlog = false;
	CHECK_EQ(mmc_op_deadline(subject.op), 0);
	subject_run(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_MEND) != NULL);
	subject_close(&subject);
}

/* Parity is dropped once its operation is over, and if the operation has no code. */
static void parity_may_be_of_no_use(void)
{
	const struct mmc_op_config coded = config_of(K, M);
	static struct subject subject;

	subject_open(&subject, &coded);
	CHECK_EQ(mmc_op_slots(&coded), 4 * BLOCK_CHUNKS);
	subject_begin(&subject);
	subject_deliver_all(&subject);
	subject_run(&subject);
	CHECK(subject.op->state > MMC_OP_FLOW);
	CHECK_EQ(hear_parity(&subject, 0, 0), MMC_UNKEPT_USELESS);
	subject_close(&subject);
	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	CHECK(!mmc_op_is_coded(subject.op));
	CHECK_EQ(hear_parity(&subject, 0, 0), MMC_UNKEPT_USELESS);
	CHECK_EQ(mmc_op_slots(&subject_config), 0);
	subject_close(&subject);
}

/* Opens an operation of a long path, on which a tenth of all chunks is lost if `lossy`. */
static void open_far(struct subject *subject, enum mmc_reliability reliability,
		     bool lossy)
{
	struct mmc_op_config config = config_of(K, M);
	struct mmc_path path;

	config.reliability = reliability;
	mmc_path_init(&path);
	mmc_path_round_trip(&path, 100 * MMC_MS_NS);
	mmc_path_set_rate(&path, 100000000);
	mmc_losses_add(&path.losses,
		       &(struct mmc_losses){
			       MMC_LOSSES_CHUNKS_MAX,
			       lossy ? MMC_LOSSES_CHUNKS_MAX / 10 : 0, 0 });
	subject_open_on(subject, &config, &path);
}

/* Each rank says what it wants; what one of them wants is done, unless one decides. */
static void ranks_agree_on_parity(void)
{
	const struct {
		enum mmc_reliability own;
		bool lossy;
		uint16_t others; /* what they want */
		uint16_t said;
		bool coded;
	} rows[] = {
		{ MMC_RELIABILITY_CODE, false, M + 1, M + 1, true },
		{ MMC_RELIABILITY_AUTO, false, 0, 0, false },
		{ MMC_RELIABILITY_AUTO, false, M + 1, 0, true },
		{ MMC_RELIABILITY_AUTO, true, 0, M + 1, true },
		{ MMC_RELIABILITY_DECIDE_REPEAT, true, M + 1,
		  MMC_PARITY_DECIDED, false },
		{ MMC_RELIABILITY_DECIDE_CODE, false, 0,
		  MMC_PARITY_DECIDED + M + 1, true },
		{ MMC_RELIABILITY_AUTO, true, MMC_PARITY_DECIDED, M + 1,
		  false },
		/* More than the code has cannot be meant. */
		{ MMC_RELIABILITY_AUTO, true, M + 2, M + 1, false },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mmc_message record = subject_message(MMC_MESSAGE_RECORD);
		static struct subject subject;

		open_far(&subject, rows[i].own, rows[i].lossy);
		CHECK_EQ(subject.op->record.terms.parity, rows[i].said);
		record.record.terms.parity = rows[i].others;
		for (uint32_t r = 0; r < 4; r++)
			if (r != subject.op->config.rank)
				subject_hear(&subject, r, &record);
		subject_run(&subject);
		CHECK_EQ(mmc_op_is_coded(subject.op), rows[i].coded);
		CHECK_EQ(subject.counters.value[MMC_COUNT_PARITY_SENT],
			 rows[i].coded ? 3 : 0);
		subject_close(&subject);
	}
}

/* What was mended was lost; what was lost is known to the path's next operation. */
static void mended_chunks_count_as_lost(void)
{
	static struct subject subject;
	uint32_t first = FAR * BLOCK_CHUNKS;

	begin(&subject);
	for (uint32_t c = 0; c < 4 * BLOCK_CHUNKS; c++)
		if (mmc_layout_owner(&subject.op->layout, c) != 1 && c != first)
			subject_deliver(&subject, c);
	CHECK(hear_parity(&subject, 0, 0) >= 0);
	subject_run(&subject);
	mmc_op_on_mended(subject.op,
			 subject_find_done(&subject, MMC_ACTION_MEND));
	subject_run(&subject);
	CHECK(subject.op->state > MMC_OP_FLOW);
	CHECK_EQ(subject.path.losses.sent_chunks, 3 * BLOCK_CHUNKS);
	CHECK_EQ(subject.path.losses.lost_chunks, 1);
	CHECK_EQ(subject.path.losses.nruns, 1);
	subject_close(&subject);
}

/* Counts how often `peer` was told something in the last subject_run(). */
static unsigned count_said_to(const struct subject *subject, uint32_t peer)
{
	unsigned n = 0;

	for (unsigned i = 0; i < subject->nsaid; i++)
		n += subject->said[i].peer == peer;
	return n;
}

/* With a code a lost message of a barrier must not cost the round trip that parity spares. */
static void a_coded_barrier_tells_twice(void)
{
	const struct {
		uint32_t parity;
		enum mmc_reliability reliability;
		uint32_t block_bytes;
		unsigned often;
	} rows[] = {
		{ M, MMC_RELIABILITY_CODE, 500, 2 },
		{ M, MMC_RELIABILITY_DECIDE_REPEAT, 500, 1 },
		{ 0, MMC_RELIABILITY_CODE, 500, 1 }, /* none goes unasked */
		{ M, MMC_RELIABILITY_CODE, 100, 1 }, /* eager: not coded */
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mmc_op_config config = config_of(K, rows[i].parity);
		static struct subject subject;

		config.reliability = rows[i].reliability;
		config.block_bytes = rows[i].block_bytes;
		config.eager_bytes = 400;
		subject_open(&subject, &config);
		subject_run(&subject);
		CHECK_EQ(count_said_to(&subject, 2), rows[i].often);
		if (config.block_bytes == 500) {
			subject_begin(&subject);
			subject_deliver_all(&subject);
			subject_run(&subject);
			CHECK_EQ(subject.op->state, MMC_OP_RELEASE);
			CHECK_EQ(count_said_to(&subject, 2), rows[i].often);
		}
		subject_close(&subject);
	}
}

/*
 * As long as nothing has arrived losses are to be feared, and a round trip that is long. A
 * rank to which nothing comes never learns of any, and leaves the choice to the others.
 */
static void an_unknown_path_may_be_lossy(void)
{
	for (uint32_t root = 0; root < 2; root++) {
		struct mmc_op_config config = config_of(K, M);
		static struct subject subject;

		config.reliability = MMC_RELIABILITY_AUTO;
		config.sole = true;
		config.root = root;
		subject_open(&subject, &config);
		CHECK_EQ(mmc_terms_wanted(&subject.op->record.terms),
			 root == config.rank ? 0 : M + 1);
		subject_close(&subject);
	}
}

/* All ranks wait as long as the one with the longest round trip. */
static void the_longest_round_trip_counts(void)
{
	for (unsigned is_long = 0; is_long < 2; is_long++) {
		struct mmc_op_config config = config_of(K, M);
		struct mmc_message record = subject_message(MMC_MESSAGE_RECORD);
		static struct subject subject;
		struct mmc_path path;

		mmc_path_init(&path);
		mmc_path_set_rate(&path, 1000000);
		mmc_path_round_trip(&path, 100 * MMC_US_NS);
		mmc_losses_add(&path.losses,
			       &(struct mmc_losses){ 2000, 2, 2 });
		config.reliability = MMC_RELIABILITY_AUTO;
		subject_open_on(&subject, &config, &path);
		CHECK_EQ(mmc_terms_wanted(&subject.op->record.terms), 0);
		record.record.terms.srtt_us = is_long ? 200000 : 0;
		for (uint32_t r = 0; r < 4; r++)
			if (r != config.rank)
				subject_hear(&subject, r, &record);
		subject_run(&subject);
		path = subject.path;
		subject_close(&subject);
		subject_open_on(&subject, &config, &path);
		CHECK_EQ(mmc_terms_wanted(&subject.op->record.terms),
			 is_long ? M + 1 : 0);
		subject_close(&subject);
	}
}

/* A rank that wants no parity itself goes by what was agreed on before. */
static void the_last_operation_tells(void)
{
	for (unsigned coded = 0; coded < 2; coded++) {
		struct mmc_op_config config = config_of(K, M);
		static struct subject subject;
		struct mmc_path path;

		mmc_path_init(&path);
		mmc_losses_add(&path.losses,
			       &(struct mmc_losses){ MMC_LOSSES_CHUNKS_MAX, 0,
						     0 });
		path.coded = coded;
		config.reliability = MMC_RELIABILITY_AUTO;
		subject_open_on(&subject, &config, &path);
		subject_run(&subject);
		CHECK_EQ(mmc_terms_wanted(&subject.op->record.terms), 0);
		CHECK_EQ(count_said_to(&subject, 2), 1 + coded);
		subject_begin(&subject);
		CHECK(!subject.path.coded);
		subject_close(&subject);
	}
}

CHECK_MAIN(CHECK_TEST(a_coded_barrier_tells_twice),
	   CHECK_TEST(an_unknown_path_may_be_lossy),
	   CHECK_TEST(the_longest_round_trip_counts),
	   CHECK_TEST(the_last_operation_tells),
	   CHECK_TEST(parity_follows_chunks), CHECK_TEST(a_loss_is_mended),
	   CHECK_TEST(a_backlog_goes_first),
	   CHECK_TEST(parity_may_be_of_no_use),
	   CHECK_TEST(ranks_agree_on_parity),
	   CHECK_TEST(mended_chunks_count_as_lost))
