/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation asks for lost chunks, reads them, and serves others. */
#include "core/operation/repair.h"

#include "subject.h"

#define RANK 1
#define LEFT 0
#define RIGHT 2
#define FAR 3
#define BLOCK_CHUNKS 5
#define NCHUNKS 20
#define GENERATION 5

static struct mmc_op_config config_of(enum mmc_repair repair)
{
	struct mmc_op_config config = subject_config;

	config.repair = repair;
	if (repair == MMC_REPAIR_READ) {
		config.read_bytes = 1000;
		config.generation = GENERATION;
	}
	return config;
}

static struct mmc_message nak_of(enum mmc_message_kind kind, struct mmc_run run)
{
	struct mmc_message nak = subject_message(kind);

	nak.nitems = 1;
	nak.runs[0] = run;
	return nak;
}

/* Delivers the chunks from `first` up to `end`, except `lost`. */
static void deliver_but(struct subject *subject, uint32_t first, uint32_t end,
			uint32_t lost)
{
	for (uint32_t c = first; c < end; c++)
		if (c != lost)
			CHECK_EQ(subject_deliver(subject, c),
				 MMC_VERDICT_PLACE);
}

/* ---- asking -------------------------------------------------------------- */

/*
 * A missing chunk is asked for after a while, from its owner or, with
 * `neighbour`, from the left neighbour.
 */
static void a_gap_is_asked_for(void)
{
	const uint32_t lost = FAR * BLOCK_CHUNKS + 2;
	static struct subject subject;

	for (unsigned neighbour = 0; neighbour < 2; neighbour++) {
		const struct mmc_op_config config = config_of(
			neighbour ? MMC_REPAIR_NEIGHBOUR : MMC_REPAIR_NAK);
		uint32_t asked = neighbour ? LEFT : FAR;
		const struct mmc_message *nak = NULL;

		subject_open(&subject, &config);
		subject_begin(&subject);
		deliver_but(&subject, FAR * BLOCK_CHUNKS, NCHUNKS, lost);
		subject_run(&subject);
		CHECK(subject_find_said(&subject, asked, MMC_MESSAGE_NAK) ==
		      NULL);
		for (unsigned i = 0; i < 100 && nak == NULL; i++) {
			subject_run_next(&subject, 2 * MMC_S_NS);
			nak = subject_find_said(&subject, asked,
						MMC_MESSAGE_NAK);
		}
		if (CHECK(nak != NULL) && CHECK_EQ(nak->nitems, 1)) {
			CHECK_EQ(nak->runs[0].first, lost);
			CHECK_EQ(nak->runs[0].count, 1);
		}
		CHECK_EQ(subject.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 1);
		CHECK_EQ(mmc_op_on_chunk(subject.op, FAR,
					 lost | MMC_INDEX_REPAIR, 100,
					 subject.now_ns),
			 MMC_VERDICT_PLACE);
		CHECK_EQ(subject.counters.value[MMC_COUNT_RX_REPAIRED_CHUNKS],
			 1);
		subject_close(&subject);
	}
}

/* While datagrams lie unread, no chunk counts as lost: it may be among them. */
static void a_backlog_proves_no_loss(void)
{
	static struct subject subject;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	deliver_but(&subject, FAR * BLOCK_CHUNKS, NCHUNKS,
		    FAR * BLOCK_CHUNKS + 2);
	subject.path.backlog = true;
	for (unsigned i = 0; i < 100; i++) {
		subject.now_ns += MMC_MS_NS;
		subject_run(&subject);
		CHECK(subject_find_said(&subject, FAR, MMC_MESSAGE_NAK) ==
		      NULL);
	}
	CHECK_EQ(subject.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 0);
	subject.path.backlog = false;
	subject_run(&subject);
	subject.now_ns += MMC_MS_NS;
	subject_run(&subject);
	CHECK(subject_find_said(&subject, FAR, MMC_MESSAGE_NAK) != NULL);
	subject_close(&subject);
}

/* ---- serving ------------------------------------------------------------- */

/* Runs for up to 10 ms; returns the action by which `chunk` is sent again. */
static struct mmc_action await_repair(struct subject *subject, uint32_t chunk)
{
	for (unsigned i = 0; i < 100; i++) {
		subject->now_ns += 100 * MMC_US_NS;
		subject_run(subject);
		for (unsigned k = 0; k < subject->ndone; k++)
			if (subject->done[k].repair &&
			    chunk - subject->done[k].run.first <
				    subject->done[k].run.count)
				return subject->done[k];
	}
	CHECK(false);
	return (struct mmc_action){ .peer = 0 };
}

/* One rank that lacks a chunk gets it by unicast, several by multicast. */
static void repairs_go_to_those_who_lack_them(void)
{
	const struct mmc_run run = { RANK * BLOCK_CHUNKS + 1, 2 };
	const struct mmc_message nak = nak_of(MMC_MESSAGE_NAK, run);
	static struct subject subject;

	for (unsigned nasking = 1; nasking <= 2; nasking++) {
		struct mmc_action repair;

		subject_open(&subject, &subject_config);
		subject_begin(&subject);
		subject_hear(&subject, LEFT, &nak);
		if (nasking == 2)
			subject_hear(&subject, FAR, &nak);
		subject_run(&subject);
		CHECK_EQ(subject_find_said(&subject, MMC_PEER_ALL,
					   MMC_MESSAGE_NCF) != NULL,
			 nasking == 2);
		repair = await_repair(&subject, run.first);
		CHECK_EQ(repair.peer, nasking == 2 ? MMC_PEER_ALL : LEFT);
		CHECK_EQ(repair.run.first, run.first);
		CHECK_EQ(repair.run.count, run.count);
		subject_close(&subject);
	}
}

/* A direct NAK is answered to its sender alone, whoever else lacks chunks. */
static void direct_naks_are_answered_directly(void)
{
	const struct mmc_run run = { RANK * BLOCK_CHUNKS, 1 };
	const struct mmc_message nak = nak_of(MMC_MESSAGE_DIRECT_NAK, run);
	static struct subject subject;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	subject_hear(&subject, LEFT, &nak);
	CHECK_EQ(await_repair(&subject, run.first).peer, LEFT);
	subject_hear(&subject, FAR, &nak);
	CHECK_EQ(await_repair(&subject, run.first).peer, FAR);
	subject_close(&subject);
}

/*
 * With `nak` a rank repairs its own block only; with `neighbour` it repairs all
 * that it has, for its right neighbour alone.
 */
static void the_policy_says_who_serves(void)
{
	const struct mmc_run run = { FAR * BLOCK_CHUNKS, BLOCK_CHUNKS };
	const struct mmc_message nak = nak_of(MMC_MESSAGE_NAK, run);
	static struct subject subject;

	for (unsigned neighbour = 0; neighbour < 2; neighbour++) {
		const struct mmc_op_config config = config_of(
			neighbour ? MMC_REPAIR_NEIGHBOUR : MMC_REPAIR_NAK);
		uint32_t nsent = 0;

		subject_open(&subject, &config);
		subject_begin(&subject);
		subject_deliver(&subject, run.first + 3);
		subject_hear(&subject, RIGHT, &nak);
		subject_hear(&subject, LEFT, &nak);
		for (unsigned i = 0; i < 20; i++) {
			subject.now_ns += MMC_MS_NS;
			subject_run(&subject);
			for (unsigned k = 0; k < subject.ndone; k++) {
				CHECK_EQ(subject.done[k].peer, RIGHT);
				CHECK_EQ(subject.done[k].run.first,
					 run.first + 3);
				nsent += subject.done[k].run.count;
			}
		}
		CHECK_EQ(nsent, neighbour ? 1 : 0);
		subject_close(&subject);
	}
}

/* A lost chunk that an NCF has announced is not asked for. */
static void a_confirmation_stands_for_a_request(void)
{
	const uint32_t lost = FAR * BLOCK_CHUNKS + 2;
	const struct mmc_message ncf =
		nak_of(MMC_MESSAGE_NCF, (struct mmc_run){ lost, 1 });
	static struct subject subject;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	deliver_but(&subject, FAR * BLOCK_CHUNKS, NCHUNKS, lost);
	subject_hear(&subject, FAR, &ncf);
	CHECK_EQ(subject.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 1);
	subject.now_ns += 50 * MMC_US_NS;
	subject_run(&subject);
	CHECK(subject_find_said(&subject, FAR, MMC_MESSAGE_NAK) == NULL);
	subject_close(&subject);
}

/* ---- reading ------------------------------------------------------------- */

/* The right neighbour gets an advert when registration succeeds or fails. */
static void an_advert_follows_registration(void)
{
	const struct mmc_op_config config = config_of(MMC_REPAIR_READ);
	const struct mmc_message nak =
		nak_of(MMC_MESSAGE_NAK, (struct mmc_run){ 0, 1 });
	const struct mmc_message *said;
	static const struct mmc_readable readable = {
		.state_address = 0x100000,
		.data_address = 0x1234,
		.state_key = 8,
		.data_key = 9,
	};
	static struct subject subject;

	for (unsigned succeeds = 0; succeeds < 2; succeeds++) {
		subject_open(&subject, &config);
		subject_begin(&subject);
		subject_hear(&subject, RIGHT, &nak);
		subject_run(&subject);
		CHECK(subject_find_done(&subject, MMC_ACTION_REGISTER) != NULL);
		subject_hear(&subject, RIGHT, &nak);
		subject_run(&subject);
		CHECK(subject_find_done(&subject, MMC_ACTION_REGISTER) == NULL);
		CHECK(subject_find_said(&subject, RIGHT, MMC_MESSAGE_ADVERT) ==
		      NULL);
		mmc_op_registered(subject.op, succeeds ? &readable : NULL);
		subject_run(&subject);
		said = subject_find_said(&subject, RIGHT, MMC_MESSAGE_ADVERT);
		if (CHECK(said != NULL) && succeeds) {
			CHECK_EQ(said->advert.generation, GENERATION);
			CHECK(said->advert.has_data);
			CHECK_EQ(said->advert.data_address, 0x1234);
			CHECK_EQ(said->advert.data_key, 9);
			CHECK_EQ(said->advert.map_address - 0x100000,
				 (uint64_t)((uint8_t *)
						    subject.op->present.words -
					    (uint8_t *)subject.op));
			CHECK_EQ(said->advert.map_key, 8);
		} else if (said != NULL) {
			CHECK_EQ(said->advert.generation, 0);
		}
		subject_close(&subject);
	}
}

/* Runs until the operation wants to read; returns that action. */
static const struct mmc_action *await_read(struct subject *subject,
					   enum mmc_action_kind kind)
{
	const struct mmc_action *action = subject_find_done(subject, kind);

	for (unsigned i = 0; i < 100 && action == NULL; i++) {
		subject_run_next(subject, 2 * MMC_S_NS);
		action = subject_find_done(subject, kind);
	}
	CHECK(action != NULL);
	return action;
}

/* Opens an operation that may read its left neighbour, and lacks `lost`. */
static void open_reader(struct subject *subject, uint32_t lost)
{
	const struct mmc_op_config config = config_of(MMC_REPAIR_READ);
	struct mmc_message advert = subject_message(MMC_MESSAGE_ADVERT);

	advert.nitems = 1;
	advert.advert =
		(struct mmc_advert){ .generation = 7, .has_data = true };
	subject_open(subject, &config);
	subject_begin(subject);
	subject_hear(subject, LEFT, &advert);
	deliver_but(subject, 0, RANK * BLOCK_CHUNKS, lost);
	deliver_but(subject, RIGHT * BLOCK_CHUNKS, NCHUNKS, lost);
}

/* The neighbour's bitmap is read first, then the chunks present there. */
static void lost_chunks_are_read(void)
{
	const uint32_t lost = FAR * BLOCK_CHUNKS + 2;
	const uint64_t map[] = { UINT64_C(1) << lost, 7 };
	const struct mmc_action *read;
	static struct subject subject;

	open_reader(&subject, lost);
	read = await_read(&subject, MMC_ACTION_READ_MAP);
	CHECK_EQ(read->peer, LEFT);
	CHECK_EQ(read->run.first, 0);
	CHECK_EQ(read->run.count, 1);
	CHECK_EQ(subject.counters.value[MMC_COUNT_MAP_READS], 1);
	CHECK_EQ(subject.counters.value[MMC_COUNT_READS], 0);
	mmc_op_on_map(subject.op, read->run, (const uint8_t *)map,
		      subject.now_ns);
	subject.ndone = 0;
	read = await_read(&subject, MMC_ACTION_READ);
	CHECK_EQ(read->peer, LEFT);
	CHECK_EQ(read->run.first, lost);
	CHECK_EQ(read->run.count, 1);
	CHECK(mmc_op_on_read(subject.op, read->run, 7));
	CHECK_EQ(mmc_op_on_fetched(subject.op, lost, subject.now_ns),
		 MMC_VERDICT_PLACE);
	mmc_op_on_placed(subject.op, lost);
	subject_run(&subject);
	CHECK_EQ(subject.op->state, MMC_OP_RELEASE);
	CHECK_EQ(subject.counters.value[MMC_COUNT_READS], 1);
	CHECK_EQ(subject.counters.value[MMC_COUNT_MAP_READS], 1);
	CHECK_EQ(subject.counters.value[MMC_COUNT_FAILED_READS], 0);
	subject_close(&subject);
}

/* Runs until a NAK for `chunk` is sent. */
static void await_nak(struct subject *subject, uint32_t chunk)
{
	for (unsigned i = 0; i < 100; i++) {
		subject_run_next(subject, 2 * MMC_S_NS);
		for (unsigned k = 0; k < subject->nsaid; k++) {
			const struct mmc_message *said =
				&subject->said[k].message;

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
	static struct subject subject;

	for (unsigned stale = 0; stale < 2; stale++) {
		open_reader(&subject, lost);
		read = await_read(&subject, MMC_ACTION_READ_MAP);
		mmc_op_on_map(subject.op, read->run,
			      stale ? (const uint8_t *)map : NULL,
			      subject.now_ns);
		if (stale) {
			subject.ndone = 0;
			read = await_read(&subject, MMC_ACTION_READ);
			CHECK(!mmc_op_on_read(subject.op, read->run, 8));
		}
		CHECK_EQ(subject.counters.value[MMC_COUNT_FAILED_READS], 1);
		await_nak(&subject, lost);
		CHECK_EQ(subject.op->state, MMC_OP_FLOW);
		subject_close(&subject);
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
