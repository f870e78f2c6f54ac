/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation sends parity behind its chunks, and has mended what it can. */
#include "core/operation/parity.h"

#include "subject.h"

#define K 2
#define M 1
#define FAR 3
#define BLOCK_CHUNKS 5

static struct mmc_op_config config_of(uint32_t data, uint32_t parity)
{
	struct mmc_op_config config = subject_config;

	config.code_data = data;
	config.code_parity = parity;
	return config;
}

static void begin(struct subject *subject)
{
	const struct mmc_op_config config = config_of(K, M);

	subject_open(subject, &config);
	subject_begin(subject);
	CHECK(mmc_op_is_coded(subject->op));
}

/* Returns the slot for a parity chunk of the far rank, as it would arrive. */
static int hear_parity(struct subject *subject, uint32_t group, uint32_t row)
{
	return mmc_op_on_parity(subject->op, FAR,
				MMC_INDEX_PARITY |
					group << MMC_INDEX_GROUP_SHIFT | row,
				100, subject->now_ns);
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
	action = subject_find_done(&subject, MMC_ACTION_MEND);
	if (!CHECK(action != NULL))
		return;
	CHECK_EQ(action->peer, FAR);
	CHECK_EQ(action->first, 0);
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

/* Parity that comes too early, or of an operation without a code, is of no use. */
static void parity_may_be_of_no_use(void)
{
	const struct mmc_op_config coded = config_of(K, M);
	static struct subject subject;

	subject_open(&subject, &coded);
	CHECK_EQ(hear_parity(&subject, 0, 0), MMC_UNKEPT_USELESS);
	CHECK_EQ(mmc_op_slots(&coded), 4 * BLOCK_CHUNKS);
	subject_close(&subject);
	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	CHECK(!mmc_op_is_coded(subject.op));
	CHECK_EQ(hear_parity(&subject, 0, 0), MMC_UNKEPT_USELESS);
	CHECK_EQ(mmc_op_slots(&subject_config), 0);
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(parity_follows_chunks), CHECK_TEST(a_loss_is_mended),
	   CHECK_TEST(a_backlog_goes_first),
	   CHECK_TEST(parity_may_be_of_no_use))
