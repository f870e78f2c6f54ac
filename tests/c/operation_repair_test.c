/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation asks for lost chunks, reads them, and serves others. */
#include "core/operation/repair.h"

#include "one_operation.h"

#define RANK 1
#define LEFT 0
#define RIGHT 2
#define FAR 3
#define BLOCK_CHUNKS 5
#define NCHUNKS 20
#define GENERATION 5

static struct mmc_op_config config_of(enum mmc_repair repair)
{
	struct mmc_op_config config = one_config;

	config.repair = repair;
	if (repair == MMC_REPAIR_READ) {
		config.read_bytes = 1000;
		config.advert.generation = GENERATION;
	}
	return config;
}

static struct mmc_message nak_of(enum mmc_message_kind kind, struct mmc_run run)
{
	struct mmc_message nak = one_message(kind);

	nak.nitems = 1;
	nak.runs[0] = run;
	return nak;
}

/* Delivers the chunks from `first` up to `end`, except `lost`. */
static void bring_but(struct one *one, uint32_t first, uint32_t end,
		      uint32_t lost)
{
	for (uint32_t c = first; c < end; c++)
		if (c != lost)
			CHECK_EQ(one_bring(one, c), MMC_VERDICT_PLACE);
}

/* ---- asking -------------------------------------------------------------- */

/*
 * A missing chunk is asked for after a while, from its owner or, with
 * `neighbour`, from the left neighbour.
 */
static void a_gap_is_asked_for(void)
{
	const uint32_t lost = FAR * BLOCK_CHUNKS + 2;
	static struct one one;

	for (unsigned neighbour = 0; neighbour < 2; neighbour++) {
		const struct mmc_op_config config = config_of(
			neighbour ? MMC_REPAIR_NEIGHBOUR : MMC_REPAIR_NAK);
		uint32_t asked = neighbour ? LEFT : FAR;
		const struct mmc_message *nak = NULL;

		one_open(&one, &config);
		one_begin(&one);
		bring_but(&one, FAR * BLOCK_CHUNKS, NCHUNKS, lost);
		one_run(&one);
		CHECK(one_find_said(&one, asked, MMC_MESSAGE_NAK) == NULL);
		for (unsigned i = 0; i < 100 && nak == NULL; i++) {
			one_run_next(&one, 2 * MMC_S_NS);
			nak = one_find_said(&one, asked, MMC_MESSAGE_NAK);
		}
		if (CHECK(nak != NULL) && CHECK_EQ(nak->nitems, 1)) {
			CHECK_EQ(nak->runs[0].first, lost);
			CHECK_EQ(nak->runs[0].count, 1);
		}
		CHECK_EQ(one.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 1);
		CHECK_EQ(mmc_op_on_chunk(one.op, FAR, lost | MMC_INDEX_REPAIR,
					 100, one.now_ns),
			 MMC_VERDICT_PLACE);
		CHECK_EQ(one.counters.value[MMC_COUNT_RX_REPAIRED_CHUNKS], 1);
		one_close(&one);
	}
}

/* While datagrams lie unread, no chunk counts as lost: it may be among them. */
static void a_backlog_proves_no_loss(void)
{
	static struct one one;

	one_open(&one, &one_config);
	one_begin(&one);
	bring_but(&one, FAR * BLOCK_CHUNKS, NCHUNKS, FAR * BLOCK_CHUNKS + 2);
	one.path.backlog = true;
	for (unsigned i = 0; i < 100; i++) {
		one.now_ns += MMC_MS_NS;
		one_run(&one);
		CHECK(one_find_said(&one, FAR, MMC_MESSAGE_NAK) == NULL);
	}
	CHECK_EQ(one.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 0);
	one.path.backlog = false;
	one_run(&one);
	one.now_ns += MMC_MS_NS;
	one_run(&one);
	CHECK(one_find_said(&one, FAR, MMC_MESSAGE_NAK) != NULL);
	one_close(&one);
}

/* ---- serving ------------------------------------------------------------- */

/* Runs for up to 10 ms; returns the action by which `chunk` is sent again. */
static struct mmc_action await_repair(struct one *one, uint32_t chunk)
{
	for (unsigned i = 0; i < 100; i++) {
		one->now_ns += 100 * MMC_US_NS;
		one_run(one);
		for (unsigned k = 0; k < one->ndone; k++)
			if (one->done[k].repair &&
			    chunk - one->done[k].run.first <
				    one->done[k].run.count)
				return one->done[k];
	}
	CHECK(false);
	return (struct mmc_action){ .peer = 0 };
}

/* One rank that lacks a chunk gets it by unicast, several by multicast. */
static void repairs_go_to_those_who_lack_them(void)
{
	const struct mmc_run run = { RANK * BLOCK_CHUNKS + 1, 2 };
	const struct mmc_message nak = nak_of(MMC_MESSAGE_NAK, run);
	static struct one one;

	for (unsigned nasking = 1; nasking <= 2; nasking++) {
		struct mmc_action repair;

		one_open(&one, &one_config);
		one_begin(&one);
		one_hear(&one, LEFT, &nak);
		if (nasking == 2)
			one_hear(&one, FAR, &nak);
		one_run(&one);
		CHECK_EQ(one_find_said(&one, MMC_PEER_ALL, MMC_MESSAGE_NCF) !=
				 NULL,
			 nasking == 2);
		repair = await_repair(&one, run.first);
		CHECK_EQ(repair.peer, nasking == 2 ? MMC_PEER_ALL : LEFT);
		CHECK_EQ(repair.run.first, run.first);
		CHECK_EQ(repair.run.count, run.count);
		one_close(&one);
	}
}

/* A direct NAK is answered to its sender alone, whoever else lacks chunks. */
static void direct_naks_are_answered_directly(void)
{
	const struct mmc_run run = { RANK * BLOCK_CHUNKS, 1 };
	const struct mmc_message nak = nak_of(MMC_MESSAGE_DIRECT_NAK, run);
	static struct one one;

	one_open(&one, &one_config);
	one_begin(&one);
	one_hear(&one, LEFT, &nak);
	CHECK_EQ(await_repair(&one, run.first).peer, LEFT);
	one_hear(&one, FAR, &nak);
	CHECK_EQ(await_repair(&one, run.first).peer, FAR);
	one_close(&one);
}

/*
 * With `nak` a rank repairs its own block only; with `neighbour` it repairs all
 * that it has, for its right neighbour alone.
 */
static void the_policy_says_who_serves(void)
{
	const struct mmc_run run = { FAR * BLOCK_CHUNKS, BLOCK_CHUNKS };
	const struct mmc_message nak = nak_of(MMC_MESSAGE_NAK, run);
	static struct one one;

	for (unsigned neighbour = 0; neighbour < 2; neighbour++) {
		const struct mmc_op_config config = config_of(
			neighbour ? MMC_REPAIR_NEIGHBOUR : MMC_REPAIR_NAK);
		uint32_t nsent = 0;

		one_open(&one, &config);
		one_begin(&one);
		one_bring(&one, run.first + 3);
		one_hear(&one, RIGHT, &nak);
		one_hear(&one, LEFT, &nak);
		for (unsigned i = 0; i < 20; i++) {
			one.now_ns += MMC_MS_NS;
			one_run(&one);
			for (unsigned k = 0; k < one.ndone; k++) {
				CHECK_EQ(one.done[k].peer, RIGHT);
				CHECK_EQ(one.done[k].run.first, run.first + 3);
				nsent += one.done[k].run.count;
			}
		}
		CHECK_EQ(nsent, neighbour ? 1 : 0);
		one_close(&one);
	}
}

/* A lost chunk that an NCF has announced is not asked for. */
static void a_confirmation_stands_for_a_request(void)
{
	const uint32_t lost = FAR * BLOCK_CHUNKS + 2;
	const struct mmc_message ncf =
		nak_of(MMC_MESSAGE_NCF, (struct mmc_run){ lost, 1 });
	static struct one one;

	one_open(&one, &one_config);
	one_begin(&one);
	bring_but(&one, FAR * BLOCK_CHUNKS, NCHUNKS, lost);
	one_hear(&one, FAR, &ncf);
	CHECK_EQ(one.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 1);
	one.now_ns += 50 * MMC_US_NS;
	one_run(&one);
	CHECK(one_find_said(&one, FAR, MMC_MESSAGE_NAK) == NULL);
	one_close(&one);
}

/* ---- reading ------------------------------------------------------------- */

/* The right neighbour gets an advert when registration succeeds or fails. */
static void an_advert_follows_registration(void)
{
	const struct mmc_op_config config = config_of(MMC_REPAIR_READ);
	const struct mmc_message nak =
		nak_of(MMC_MESSAGE_NAK, (struct mmc_run){ 0, 1 });
	const struct mmc_message *said;
	static struct one one;

	for (unsigned succeeds = 0; succeeds < 2; succeeds++) {
		one_open(&one, &config);
		one_begin(&one);
		one_hear(&one, RIGHT, &nak);
		one_run(&one);
		CHECK(one_find_done(&one, MMC_ACTION_REGISTER) != NULL);
		one_hear(&one, RIGHT, &nak);
		one_run(&one);
		CHECK(one_find_done(&one, MMC_ACTION_REGISTER) == NULL);
		CHECK(one_find_said(&one, RIGHT, MMC_MESSAGE_ADVERT) == NULL);
		mmc_op_registered(one.op, succeeds, 0x1234, 9);
		one_run(&one);
		said = one_find_said(&one, RIGHT, MMC_MESSAGE_ADVERT);
		if (CHECK(said != NULL) && succeeds) {
			CHECK_EQ(said->advert.generation, GENERATION);
			CHECK(said->advert.has_data);
			CHECK_EQ(said->advert.data_address, 0x1234);
			CHECK_EQ(said->advert.data_key, 9);
		} else if (said != NULL) {
			CHECK_EQ(said->advert.generation, 0);
		}
		one_close(&one);
	}
}

/* Runs until the operation wants to read; returns that action. */
static const struct mmc_action *await_read(struct one *one,
					   enum mmc_action_kind kind)
{
	const struct mmc_action *action = one_find_done(one, kind);

	for (unsigned i = 0; i < 100 && action == NULL; i++) {
		one_run_next(one, 2 * MMC_S_NS);
		action = one_find_done(one, kind);
	}
	CHECK(action != NULL);
	return action;
}

/* Opens an operation that may read its left neighbour, and lacks `lost`. */
static void open_reader(struct one *one, uint32_t lost)
{
	const struct mmc_op_config config = config_of(MMC_REPAIR_READ);
	struct mmc_message advert = one_message(MMC_MESSAGE_ADVERT);

	advert.nitems = 1;
	advert.advert =
		(struct mmc_advert){ .generation = 7, .has_data = true };
	one_open(one, &config);
	one_begin(one);
	one_hear(one, LEFT, &advert);
	bring_but(one, 0, RANK * BLOCK_CHUNKS, lost);
	bring_but(one, RIGHT * BLOCK_CHUNKS, NCHUNKS, lost);
}

/* The neighbour's bitmap is read first, then the chunks present there. */
static void lost_chunks_are_read(void)
{
	const uint32_t lost = FAR * BLOCK_CHUNKS + 2;
	const uint64_t map[] = { UINT64_C(1) << lost, 7 };
	const struct mmc_action *read;
	static struct one one;

	open_reader(&one, lost);
	read = await_read(&one, MMC_ACTION_READ_MAP);
	CHECK_EQ(read->peer, LEFT);
	CHECK_EQ(read->run.first, 0);
	CHECK_EQ(read->run.count, 1);
	CHECK_EQ(one.counters.value[MMC_COUNT_MAP_READS], 1);
	CHECK_EQ(one.counters.value[MMC_COUNT_READS], 0);
	mmc_op_on_map(one.op, read->run, (const uint8_t *)map, one.now_ns);
	one.ndone = 0;
	read = await_read(&one, MMC_ACTION_READ);
	CHECK_EQ(read->peer, LEFT);
	CHECK_EQ(read->run.first, lost);
	CHECK_EQ(read->run.count, 1);
	CHECK(mmc_op_on_read(one.op, read->run, 7));
	CHECK_EQ(mmc_op_on_fetched(one.op, lost, one.now_ns),
		 MMC_VERDICT_PLACE);
	mmc_op_on_placed(one.op, lost);
	one_run(&one);
	CHECK_EQ(one.op->state, MMC_OP_RELEASE);
	CHECK_EQ(one.counters.value[MMC_COUNT_READS], 1);
	CHECK_EQ(one.counters.value[MMC_COUNT_MAP_READS], 1);
	CHECK_EQ(one.counters.value[MMC_COUNT_FAILED_READS], 0);
	one_close(&one);
}

/* Runs until a NAK for `chunk` is sent. */
static void await_nak(struct one *one, uint32_t chunk)
{
	for (unsigned i = 0; i < 100; i++) {
		one_run_next(one, 2 * MMC_S_NS);
		for (unsigned k = 0; k < one->nsaid; k++) {
			const struct mmc_message *said = &one->said[k].message;

			if ((said->kind == MMC_MESSAGE_NAK ||
			     said->kind == MMC_MESSAGE_DIRECT_NAK) &&
			    said->nitems == 1 && said->runs[0].first == chunk)
				return;
		}
	}
	CHECK(false);
}

/*
 * Chunks that cannot be read are asked for. A read counts as failed if it
 * fails, and also if the memory has another generation.
 */
static void reads_of_no_use_are_counted(void)
{
	const uint32_t lost = FAR * BLOCK_CHUNKS + 2;
	const uint64_t map[] = { UINT64_C(1) << lost, 7 };
	const struct mmc_action *read;
	static struct one one;

	for (unsigned stale = 0; stale < 2; stale++) {
		open_reader(&one, lost);
		read = await_read(&one, MMC_ACTION_READ_MAP);
		mmc_op_on_map(one.op, read->run,
			      stale ? (const uint8_t *)map : NULL, one.now_ns);
		if (stale) {
			one.ndone = 0;
			read = await_read(&one, MMC_ACTION_READ);
			CHECK(!mmc_op_on_read(one.op, read->run, 8));
		}
		CHECK_EQ(one.counters.value[MMC_COUNT_FAILED_READS], 1);
		await_nak(&one, lost);
		CHECK_EQ(one.op->state, MMC_OP_FLOW);
		one_close(&one);
	}
}

CHECK_MAIN(CHECK_TEST(a_gap_is_asked_for), CHECK_TEST(a_backlog_proves_no_loss),
	   CHECK_TEST(repairs_go_to_those_who_lack_them),
	   CHECK_TEST(direct_naks_are_answered_directly),
	   CHECK_TEST(the_policy_says_who_serves),
	   CHECK_TEST(a_confirmation_stands_for_a_request),
	   CHECK_TEST(an_advert_follows_registration),
	   CHECK_TEST(lost_chunks_are_read),
	   CHECK_TEST(reads_of_no_use_are_counted))
