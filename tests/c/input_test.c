/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation accepts from the network only what the rules of the protocol allow. */
#include "subject.h"
#include "support/prng.h"

#define RANK 1
#define LEFT 0
#define RIGHT 2
#define NRANKS 4
#define BLOCK_CHUNKS 5
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)

/* The last chunk of each block is short. */
static const uint32_t tail_bytes = 30;

static struct mmc_op_config config_of(enum mmc_repair repair)
{
	struct mmc_op_config config = subject_config;

	config.block_bytes = 430;
	config.repair = repair;
	config.read_bytes = repair == MMC_REPAIR_READ ? 1000 : 0;
	return config;
}

/* ---- chunks -------------------------------------------------------------- */

struct datagram {
	uint32_t source;
	uint32_t chunk;
	bool repair;
	uint32_t payload_bytes;
};

static struct datagram draw(struct mmc_prng *prng)
{
	struct datagram datagram = {
		.source = (uint32_t)mmc_prng_below(prng, NRANKS),
		.chunk = (uint32_t)mmc_prng_below(prng, NCHUNKS + 2),
		.repair = mmc_prng_below(prng, 3) == 0,
	};
	bool last = datagram.chunk % BLOCK_CHUNKS == BLOCK_CHUNKS - 1;

	datagram.payload_bytes = last ? tail_bytes : 100;
	if (mmc_prng_below(prng, 2) != 0)
		datagram.source = datagram.chunk / BLOCK_CHUNKS % NRANKS;
	if (mmc_prng_below(prng, 8) == 0)
		datagram.payload_bytes = (uint32_t)mmc_prng_below(prng, 102);
	if (mmc_prng_below(prng, 50) == 0)
		datagram.chunk = (uint32_t)mmc_prng_next(prng) & MMC_INDEX_MASK;
	return datagram;
}

/*
 * Returns the verdict that a datagram must get; `claimed` tells which chunks are here.
 */
static enum mmc_verdict expected(const struct datagram *datagram,
				 enum mmc_repair repair, const bool *claimed)
{
	uint32_t chunk = datagram->chunk;
	uint32_t owner = chunk / BLOCK_CHUNKS;
	bool last = chunk % BLOCK_CHUNKS == BLOCK_CHUNKS - 1;
	bool may_send = datagram->source == owner;

	if (datagram->repair && repair != MMC_REPAIR_NAK)
		may_send |= datagram->source == LEFT;
	if (chunk >= NCHUNKS || !may_send ||
	    datagram->payload_bytes != (last ? tail_bytes : 100))
		return MMC_VERDICT_FOREIGN;
	return claimed[chunk] ? MMC_VERDICT_DUPLICATE : MMC_VERDICT_PLACE;
}

/*
 * Delivers random datagrams and checks the verdicts; returns how many were duplicates.
 */
static unsigned bring_some(struct subject *subject, struct mmc_prng *prng,
			   bool *claimed)
{
	enum mmc_repair repair = subject->op->config.repair;
	unsigned nduplicates = 0;

	for (unsigned i = 0; i < 60; i++) {
		struct datagram datagram = draw(prng);
		uint32_t index = datagram.chunk;
		enum mmc_verdict verdict = expected(&datagram, repair, claimed);

		index |= datagram.repair ? MMC_INDEX_REPAIR : 0;
		CHECK_EQ(mmc_op_on_chunk(subject->op, datagram.source, index,
					 datagram.payload_bytes,
					 subject->now_ns),
			 verdict);
		nduplicates += verdict == MMC_VERDICT_DUPLICATE;
		if (verdict != MMC_VERDICT_PLACE)
			continue;
		claimed[datagram.chunk] = true;
		mmc_op_on_placed(subject->op, datagram.chunk);
	}
	return nduplicates;
}

static void own_chunks(bool *claimed)
{
	for (uint32_t c = 0; c < NCHUNKS; c++)
		claimed[c] = c / BLOCK_CHUNKS == RANK;
}

/* Chunks are judged alike before and after the operation begins. */
static void any_chunks(void)
{
	struct mmc_prng prng = { .state = check_seed() };
	static struct subject subject;
	bool claimed[NCHUNKS];

	for (unsigned i = 0; i < 300; i++) {
		const struct mmc_op_config config =
			config_of((enum mmc_repair)(i % 3));
		unsigned nduplicates;
		uint32_t npresent = 0;

		own_chunks(claimed);
		subject_open(&subject, &config);
		nduplicates = bring_some(&subject, &prng, claimed);
		subject_begin(&subject);
		nduplicates += bring_some(&subject, &prng, claimed);
		for (uint32_t c = 0; c < NCHUNKS; c++) {
			npresent += claimed[c];
			CHECK_EQ(mmc_bitmap_test(&subject.op->present, c),
				 claimed[c]);
		}
		CHECK_EQ(subject.op->npresent, npresent);
		CHECK_EQ(subject.counters.value[MMC_COUNT_RX_DUPLICATE_CHUNKS],
			 nduplicates);
		subject_close(&subject);
	}
}

/* After a failure nothing is placed: the user may have the buffers back. */
static void nothing_is_placed_after_a_failure(void)
{
	static struct subject subject;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	mmc_op_fail(subject.op, MMC_ECANCELED, RANK, false);
	for (uint32_t c = 0; c < NCHUNKS; c++)
		CHECK_EQ(subject_deliver(&subject, c), MMC_VERDICT_DUPLICATE);
	subject_close(&subject);
}

/* Chunks that a read has brought are claimed like others, and counted as read. */
static void fetched_chunks_are_counted(void)
{
	const struct mmc_op_config config = config_of(MMC_REPAIR_READ);
	static struct subject subject;

	subject_open(&subject, &config);
	subject_begin(&subject);
	CHECK_EQ(subject_deliver(&subject, 13), MMC_VERDICT_PLACE);
	for (uint32_t c = 12; c < 15; c++)
		CHECK_EQ(mmc_op_on_fetched(subject.op, c, subject.now_ns),
			 c == 13 ? MMC_VERDICT_DUPLICATE : MMC_VERDICT_PLACE);
	CHECK_EQ(subject.counters.value[MMC_COUNT_READ_CHUNKS], 3);
	CHECK_EQ(subject.counters.value[MMC_COUNT_READ_BYTES],
		 200 + tail_bytes);
	CHECK_EQ(subject.counters.value[MMC_COUNT_RX_DUPLICATE_CHUNKS], 1);
	subject_close(&subject);
}

/* ---- messages ------------------------------------------------------------ */

/*
 * Until the operation begins, each term becomes the least or the greatest value heard.
 */
static void terms_are_merged(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	const struct mmc_terms *terms;
	static struct subject subject;

	subject_open(&subject, &subject_config);
	terms = &subject.op->record.terms;
	message.record.entry_rounds = 0;
	message.record.terms =
		(struct mmc_terms){ 7, 7, 4000, 3000, 500, 4, 0, 2 };
	subject_hear(&subject, 3, &message);
	message.record.terms =
		(struct mmc_terms){ 7, 7, 9000, 2000, 400, 2, 0, 1 };
	subject_hear(&subject, LEFT, &message);
	CHECK_EQ(terms->window_bytes, 4000);
	CHECK_EQ(terms->source_bytes, 2000);
	CHECK_EQ(terms->srtt_us, 500);
	CHECK_EQ(terms->lag_epochs, 4);
	CHECK_EQ(terms->parity, 2);
	subject_begin(&subject);
	message.record.terms.window_bytes = 1;
	subject_hear(&subject, LEFT, &message);
	CHECK_EQ(terms->window_bytes, 4000);
	subject_close(&subject);
}

/* A failure that another rank reports is adopted unchanged, and not reported again. */
static void reported_failures_are_adopted(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	static struct subject subject;

	message.record.flags |= MMC_RECORD_FAILED;
	message.record.failure = MMC_ENOANSWER;
	message.record.culprit = 3;
	for (unsigned begins = 0; begins < 2; begins++) {
		subject_open(&subject, &subject_config);
		if (begins)
			subject_begin(&subject);
		subject_hear(&subject, LEFT, &message);
		subject_run(&subject);
		CHECK(subject.op->record.flags & MMC_RECORD_FAILED);
		CHECK_EQ(subject.op->record.failure, MMC_ENOANSWER);
		CHECK_EQ(subject.op->record.culprit, 3);
		CHECK(subject_find_done(&subject, MMC_ACTION_FAILED) != NULL);
		CHECK_EQ(subject.nsaid, 0);
		subject_close(&subject);
	}
}

/*
 * An operation that awaits the entry of a rank fails when that rank leaves. One that
 * all have entered goes on.
 */
static void a_rank_leaves(void)
{
	const struct mmc_message left = {
		.kind = MMC_MESSAGE_RECORD,
		.late_rank = MMC_PEER_NONE,
		.record = { .flags = MMC_RECORD_LEFT },
	};
	static struct subject subject;

	subject_open(&subject, &subject_config);
	subject_hear(&subject, 3, &left);
	subject_run(&subject);
	CHECK(subject.op->record.flags & MMC_RECORD_FAILED);
	CHECK_EQ(subject.op->record.failure, MMC_ELEFT);
	CHECK_EQ(subject.op->record.culprit, 3);
	CHECK(subject_find_said(&subject, MMC_PEER_ALL, MMC_MESSAGE_RECORD) !=
	      NULL);
	subject_close(&subject);
	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	subject_hear(&subject, 3, &left);
	CHECK_EQ(subject.op->state, MMC_OP_FLOW);
	subject_close(&subject);
}

/*
 * Requests that arrive before the operation begins are kept, as far as there is room.
 */
static void early_requests_are_served(void)
{
	const struct mmc_op_config config = config_of(MMC_REPAIR_NEIGHBOUR);
	struct mmc_message nak = subject_message(MMC_MESSAGE_NAK);
	static struct subject subject;
	uint32_t nserved = 0;

	nak.record.entry_rounds = 0;
	nak.nitems = 1;
	subject_open(&subject, &config);
	for (uint32_t i = 0; i < MMC_OP_EARLY_MAX + 2; i++) {
		nak.runs[0] = (struct mmc_run){ NCHUNKS - 1 - i, 1 };
		subject_hear(&subject, RIGHT, &nak);
	}
	CHECK_EQ(subject.counters.value[MMC_COUNT_RX_UNKEPT_REQUESTS], 2);
	subject_begin(&subject);
	for (uint32_t c = 2 * BLOCK_CHUNKS; c < NCHUNKS; c++)
		subject_deliver(&subject, c);
	subject_run(&subject);
	for (unsigned i = 0; i < subject.ndone; i++) {
		const struct mmc_action *action = &subject.done[i];

		CHECK_EQ(action->peer, RIGHT);
		CHECK(action->repair);
		CHECK(action->run.first >= NCHUNKS - MMC_OP_EARLY_MAX);
		nserved += action->run.count;
	}
	CHECK_EQ(nserved, MMC_OP_EARLY_MAX);
	subject_close(&subject);
}

/* A request beyond the last chunk, or for more chunks than there are, is not served. */
static void senseless_requests_are_dropped(void)
{
	static const struct mmc_run rows[][2] = {
		{ { NCHUNKS, 1 }, { 0, 0 } },
		{ { NCHUNKS - 1, 2 }, { 0, 0 } },
		{ { 0, NCHUNKS + 1 }, { 0, 0 } },
		{ { MMC_CHUNKS_MAX - 1, 1 }, { 0, 0 } },
		{ { 0, 10 }, { 5, 11 } },
	};
	struct mmc_message nak = subject_message(MMC_MESSAGE_DIRECT_NAK);
	struct mmc_op_config config = config_of(MMC_REPAIR_NAK);
	static struct subject subject;

	config.rank = NRANKS - 1;
	nak.nitems = 2;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		memcpy(nak.runs, rows[i], sizeof(rows[i]));
		subject_open(&subject, &config);
		subject_begin(&subject);
		subject_hear(&subject, LEFT, &nak);
		subject_run(&subject);
		CHECK_EQ(subject.ndone, 0);
		subject_close(&subject);
	}
}

CHECK_MAIN(CHECK_TEST(any_chunks),
	   CHECK_TEST(nothing_is_placed_after_a_failure),
	   CHECK_TEST(fetched_chunks_are_counted), CHECK_TEST(terms_are_merged),
	   CHECK_TEST(reported_failures_are_adopted), CHECK_TEST(a_rank_leaves),
	   CHECK_TEST(early_requests_are_served),
	   CHECK_TEST(senseless_requests_are_dropped))
