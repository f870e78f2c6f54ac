/* SPDX-License-Identifier: BSD-3-Clause */
/* What parity may still mend is late, but not lost. */
#include "core/operation/parity.h"
#include "subject.h"

#define FAR 3
#define BLOCK_CHUNKS 40
#define K 4
#define M 2

/* Begins an operation of four ranks, with spans of K * depth chunks. */
static void begin(struct subject *subject)
{
	struct mmc_op_config config = subject_config;

	config.block_bytes = BLOCK_CHUNKS * 100;
	config.code_data = K;
	config.code_parity = M;
	subject_open(subject, &config);
	subject_begin(subject);
}

static const struct mmc_message *nak(const struct subject *subject)
{
	return subject_find_said(subject, FAR, MMC_MESSAGE_NAK);
}

/* Lets time pass until the far rank is asked for chunks, `limit_ns` at most. */
static bool is_asked_within(struct subject *subject, uint64_t limit_ns)
{
	uint64_t end_ns = subject->now_ns + limit_ns;

	while (subject->now_ns < end_ns) {
		subject->now_ns += 20 * MMC_US_NS;
		subject_run(subject);
		if (nak(subject) != NULL)
			return true;
	}
	return false;
}

static void hear_parity(struct subject *subject, uint32_t group, uint32_t row)
{
	mmc_op_on_parity(subject->op, FAR,
			 MMC_INDEX_PARITY | group << MMC_INDEX_GROUP_SHIFT |
				 row,
			 100, subject->now_ns);
}

/*
 * Of a span whose parity has not passed nothing is asked for until the sender has been
 * silent; once the last of its parity has come, what that did not mend is.
 */
static void parity_is_waited_for(void)
{
	static struct subject subject;
	uint32_t first = FAR * BLOCK_CHUNKS;
	uint32_t span;

	for (unsigned passes = 0; passes < 2; passes++) {
		begin(&subject);
		span = mmc_grouping_span(&subject.op->mender->grouping);
		for (uint32_t i = 0; i + 1 < span; i++)
			if (i > 2)
				subject_deliver(&subject, first + i);
		subject_run(&subject);
		if (passes) {
			uint32_t depth = subject.op->mender->grouping.depth;

			hear_parity(&subject, depth - 1, M - 1);
			CHECK(is_asked_within(&subject, 250 * MMC_US_NS));
		} else {
			CHECK(!is_asked_within(&subject, 250 * MMC_US_NS));
			CHECK(is_asked_within(&subject, 20 * MMC_MS_NS));
		}
		subject_close(&subject);
	}
}

/* A chunk behind a span shows that its parity has passed. */
static void later_chunks_show_that_it_passed(void)
{
	static struct subject subject;
	uint32_t first = FAR * BLOCK_CHUNKS;
	uint32_t span;

	begin(&subject);
	span = mmc_grouping_span(&subject.op->mender->grouping);
	for (uint32_t i = 1; i <= span; i++)
		subject_deliver(&subject, first + i);
	CHECK(is_asked_within(&subject, 250 * MMC_US_NS));
	CHECK_EQ(nak(&subject)->runs[0].first, first);
	CHECK_EQ(nak(&subject)->runs[0].count, 1);
	CHECK_EQ(subject.counters.value[MMC_COUNT_FELL_BACK], 1);
	subject_close(&subject);
}

/* For a parity chunk that is kept one missing chunk less is asked for. */
static void what_parity_replaces_is_not_asked_for(void)
{
	static struct subject subject;
	uint32_t first = FAR * BLOCK_CHUNKS;
	uint32_t depth;

	begin(&subject);
	depth = subject.op->mender->grouping.depth;
	for (uint32_t i = 0; i < depth * K; i++)
		if (i % depth != 0 || i / depth == 3)
			subject_deliver(&subject, first + i);
	hear_parity(&subject, 0, 0);
	hear_parity(&subject, depth - 1, M - 1);
	for (unsigned i = 0; i < 100; i++)
		is_asked_within(&subject, 20 * MMC_US_NS);
	CHECK_EQ(subject.counters.value[MMC_COUNT_FELL_BACK], 2);
	CHECK(!mmc_bitmap_test(&subject.op->repair.loss.lost,
			       first + 2 * depth));
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(parity_is_waited_for),
	   CHECK_TEST(later_chunks_show_that_it_passed),
	   CHECK_TEST(what_parity_replaces_is_not_asked_for))
