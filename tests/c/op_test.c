/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of all ranks in one process; see ranks.h. */
#include "ranks.h"

#define NRANDOM 250

static const struct ranks_shape plain = {
	.nranks = 4,
	.nepochs = 1,
	.nactive = 1,
	.block_bytes = 2500,
	.chunk_bytes = 100,
	.window_bytes = 60000,
	.delay_ns = 10 * MMC_US_NS,
	.late = MMC_PEER_ALL,
	.odd = MMC_PEER_NONE,
	.dead = MMC_PEER_NONE,
};

/* Runs all epochs to their end, which must be DONE on all ranks. */
static bool run_to_done(const struct ranks_shape *shape)
{
	static struct ranks net;

	ranks_open(&net, shape);
	if (ranks_run(&net))
		for (uint32_t r = 0; r < shape->nranks; r++)
			for (uint32_t e = 1; e <= shape->nepochs; e++)
				CHECK(!net.rank[r].epoch[e].failed);
	ranks_close(&net);
	return check_failures == 0;
}

/* Blocks arrive, whether empty, short of a whole chunk, or a byte longer. */
static void every_size(void)
{
	for (uint32_t nranks = 1; nranks <= 9; nranks++)
		for (uint64_t nbytes = 0; nbytes <= 301; nbytes++) {
			struct ranks_shape shape = plain;

			if (nbytes % 100 > 1 && nbytes % 100 < 99)
				continue;
			shape.nranks = nranks;
			shape.block_bytes = nbytes;
			shape.nchains = (uint32_t)nbytes % (nranks + 1);
			shape.repair = (enum mmc_repair)(nbytes % 3);
			if (!run_to_done(&shape))
				return;
		}
}

/* A Bcast of any size arrives from any root. */
static void every_root(void)
{
	for (uint32_t nranks = 1; nranks <= 9; nranks++)
		for (uint32_t root = 0; root < nranks; root++)
			for (uint64_t nbytes = 0; nbytes <= 3001;
			     nbytes += 1 + nbytes * 5) {
				struct ranks_shape shape = plain;

				shape.nranks = nranks;
				shape.sole = true;
				shape.root = root;
				shape.block_bytes = nbytes;
				shape.eager_bytes = root % 2 * 1000;
				shape.retain_bytes = nbytes % 2 * 1000;
				shape.repair = (enum mmc_repair)(nbytes % 3);
				if (!run_to_done(&shape))
					return;
			}
}

/* Uneven blocks arrive, even where most ranks or all ranks have none. */
static void uneven_blocks(void)
{
	for (uint32_t nranks = 1; nranks <= 9; nranks++)
		for (uint64_t nbytes = 0; nbytes <= 1000; nbytes += 37) {
			struct ranks_shape shape = plain;

			shape.nranks = nranks;
			shape.uneven = true;
			shape.block_bytes = nbytes;
			shape.nchains = (uint32_t)nbytes % (nranks + 1);
			shape.window_bytes = nbytes % 2 ? 400 : 60000;
			shape.eager_bytes = nbytes % 5 * 200;
			shape.repair = (enum mmc_repair)(nbytes % 3);
			shape.seed = nbytes * 10 + nranks;
			if (!run_to_done(&shape))
				return;
		}
}

/* Where nothing is lost, no rank misses a chunk or gets one twice. */
static void no_more_than_needed(void)
{
	static struct ranks net;

	for (uint32_t nranks = 2; nranks <= 16; nranks++) {
		struct ranks_shape shape = plain;

		shape.nranks = nranks;
		shape.chunk_bytes = 2500;
		ranks_open(&net, &shape);
		CHECK(ranks_run(&net));
		for (uint32_t r = 0; r < nranks; r++) {
			const uint64_t *value = net.rank[r].counters.value;

			CHECK_EQ(value[MMC_COUNT_RX_LOST_CHUNKS], 0);
			CHECK_EQ(value[MMC_COUNT_RX_DUPLICATE_CHUNKS], 0);
		}
		ranks_close(&net);
	}
}

static struct ranks_shape random_shape(uint64_t seed)
{
	static const uint64_t losses[] = {
		0, 1 << 22, 1 << 26, 1 << 28, 1 << 30, UINT64_C(1) << 31
	};
	struct mmc_prng prng = { .state = seed };
	struct ranks_shape shape = plain;
	uint32_t nranks = 1 + (uint32_t)mmc_prng_below(&prng, 9);
	uint64_t nchunks = mmc_prng_below(&prng, 60);

	shape.nranks = nranks;
	shape.nepochs = 1 + (uint32_t)mmc_prng_below(&prng, 12);
	shape.nactive = 1 + (uint32_t)mmc_prng_below(&prng, 4);
	shape.block_bytes = nchunks * 100 + mmc_prng_below(&prng, 3);
	if (mmc_prng_below(&prng, 3) == 0)
		shape.block_bytes = mmc_prng_below(&prng, 101);
	shape.uneven = mmc_prng_below(&prng, 3) == 0;
	shape.sole = !shape.uneven && mmc_prng_below(&prng, 3) == 0;
	shape.root = (uint32_t)mmc_prng_below(&prng, nranks);
	shape.nchains = (uint32_t)mmc_prng_below(&prng, nranks + 1);
	shape.window_bytes = UINT32_C(100) << mmc_prng_below(&prng, 10);
	shape.eager_bytes = mmc_prng_below(&prng, 2) * 1000;
	shape.retain_bytes = mmc_prng_below(&prng, 2) * 1000;
	shape.repair = (enum mmc_repair)mmc_prng_below(&prng, 3);
	shape.read_bytes =
		100 * (uint32_t)mmc_prng_below(&prng, 5) +
		(mmc_prng_below(&prng, 6) == 0 ? 0 : MMC_GENERATION_BYTES);
	shape.unregistrable = mmc_prng_below(&prng, 6) == 0;
	shape.late_ns = mmc_prng_below(&prng, 2) * 100 * MMC_MS_NS;
	shape.delay_ns = mmc_prng_below(&prng, 300) * MMC_US_NS;
	shape.loss = losses[mmc_prng_below(&prng, 6)];
	shape.twice = losses[mmc_prng_below(&prng, 6)];
	shape.seed = seed;
	return shape;
}

/* Random operations survive reordering, loss and duplication of datagrams. */
static void any_order_loss_and_duplication(void)
{
	uint64_t seed = check_seed() << 32;

	for (int i = 0; i < NRANDOM; i++) {
		struct ranks_shape shape = random_shape(seed + (unsigned)i);

		if (!run_to_done(&shape)) {
			fprintf(stderr, "MPIMCAST_TEST_SEED=%" PRIu64 "\n",
				check_seed());
			break;
		}
	}
}

/* Large operations, through chains and windows, survive rare loss. */
static void large(void)
{
	struct ranks_shape shape = plain;

	shape.nranks = 6;
	shape.read_bytes = 1008;
	shape.block_bytes = 200000;
	shape.loss = 1 << 25;
	for (uint32_t nchains = 0; nchains <= 6; nchains += 2)
		for (uint32_t repair = 0; repair < 3; repair++) {
			shape.nchains = nchains;
			shape.repair = (enum mmc_repair)repair;
			shape.seed = nchains + repair;
			CHECK(run_to_done(&shape));
		}
}

/* Opens an operation of rank 0 of three; blocks have two chunks, the last of 1 byte. */
static struct mmc_op *open_lone(enum mmc_repair repair,
				struct mmc_counters *counters)
{
	static struct mmc_path path;
	const struct mmc_op_config config = {
		.nranks = 3,
		.block_bytes = 101,
		.chunk_bytes = 100,
		.window_bytes = 60000,
		.source_bytes = 60000,
		.repair = repair,
		.read_bytes = 1000,
		.timeout_ns = MMC_S_NS,
		.path = &path,
		.counters = counters,
	};

	mmc_path_init(&path);
	return mmc_op_init(aligned_alloc(MMC_ALIGN_BYTES,
					 mmc_op_footprint(&config)),
			   &config, MMC_S_NS);
}

/* A chunk is accepted only from a rank that may send it, in its length. */
static void verdicts(void)
{
	static const struct {
		enum mmc_repair repair;
		uint32_t source;
		uint32_t index;
		size_t payload_bytes;
		enum mmc_verdict verdict;
	} rows[] = {
		{ 0, 1, 2, 100, MMC_VERDICT_PLACE },
		{ 0, 1, 3, 1, MMC_VERDICT_PLACE },
		{ 0, 1, 2 | MMC_INDEX_REPAIR, 100, MMC_VERDICT_PLACE },
		{ 0, 1, 2, 99, MMC_VERDICT_FOREIGN },
		{ 0, 1, 2, 101, MMC_VERDICT_FOREIGN },
		{ 0, 1, 2, 0, MMC_VERDICT_FOREIGN },
		{ 0, 1, 3, 100, MMC_VERDICT_FOREIGN },
		{ 0, 1, 4, 100, MMC_VERDICT_FOREIGN },
		{ 0, 2, 2, 100, MMC_VERDICT_FOREIGN },
		{ 0, 0, 2, 100, MMC_VERDICT_FOREIGN },
		{ 0, 2, 6, 100, MMC_VERDICT_FOREIGN },
		{ 0, 2, MMC_INDEX_MASK, 1, MMC_VERDICT_FOREIGN },
		{ 0, 1, 0, 100, MMC_VERDICT_FOREIGN },
		{ 0, 0, 0, 100, MMC_VERDICT_DUPLICATE },
		/*
		 * Repairs come from the owner or, with `neighbour`, from rank
		 * 2.
		 */
		{ 0, 2, 2 | MMC_INDEX_REPAIR, 100, MMC_VERDICT_FOREIGN },
		{ 1, 2, 2 | MMC_INDEX_REPAIR, 100, MMC_VERDICT_PLACE },
		{ 1, 2, 3 | MMC_INDEX_REPAIR, 100, MMC_VERDICT_FOREIGN },
		{ 1, 1, 4 | MMC_INDEX_REPAIR, 100, MMC_VERDICT_FOREIGN },
		{ 1, 2, 2, 100, MMC_VERDICT_FOREIGN },
		{ 1, 2, 6 | MMC_INDEX_REPAIR, 100, MMC_VERDICT_FOREIGN },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mmc_counters counters = { 0 };
		struct mmc_op *op = open_lone(rows[i].repair, &counters);

		if (!CHECK_EQ(mmc_op_on_chunk(op, rows[i].source, rows[i].index,
					      rows[i].payload_bytes, MMC_S_NS),
			      rows[i].verdict))
			fprintf(stderr, "row %u\n", i);
		free(op);
	}
}

/* A chunk is claimed once, whichever rank sends it and however often. */
static void claimed_once(void)
{
	struct mmc_counters counters = { 0 };
	struct mmc_op *op = open_lone(MMC_REPAIR_NEIGHBOUR, &counters);

	CHECK_EQ(mmc_op_on_chunk(op, 1, 2, 100, MMC_S_NS), MMC_VERDICT_PLACE);
	CHECK(!mmc_bitmap_test(&op->present, 2));
	CHECK_EQ(mmc_op_on_chunk(op, 1, 2, 100, MMC_S_NS),
		 MMC_VERDICT_DUPLICATE);
	mmc_op_on_placed(op, 2);
	CHECK(mmc_bitmap_test(&op->present, 2));
	CHECK_EQ(mmc_op_on_chunk(op, 2, 2 | MMC_INDEX_REPAIR, 100, MMC_S_NS),
		 MMC_VERDICT_DUPLICATE);
	CHECK_EQ(op->npresent, 3);
	CHECK_EQ(counters.value[MMC_COUNT_RX_DUPLICATE_CHUNKS], 2);
	free(op);
}

/* Delivers a message to a lone operation, as rank `source` would send it. */
static void say(struct mmc_op *op, uint32_t source, struct mmc_message message,
		uint8_t flags)
{
	message.record.flags = MMC_RECORD_ENTERED | flags;
	message.record.entry_rounds = 2;
	message.record.culprit = MMC_PEER_NONE;
	message.record.terms.window_bytes = 60000;
	message.record.terms.source_bytes = 60000;
	mmc_op_on_message(op, source, &message, MMC_S_NS);
}

/*
 * Polls until nothing is left to do. Returns whether there was an action of
 * `kind`, and stores the last one in `found`.
 */
static bool does(struct mmc_op *op, uint64_t now_ns, enum mmc_action_kind kind,
		 struct mmc_action *found)
{
	static struct mmc_actions actions;
	bool has = false;

	do {
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_op_poll(op, now_ns, &actions);
		for (uint32_t i = 0; i < actions.count; i++) {
			if (actions.items[i].kind == MMC_ACTION_SEND)
				mmc_op_on_sent(op, actions.items[i].run.count);
			if (actions.items[i].kind != kind)
				continue;
			*found = actions.items[i];
			has = true;
		}
	} while (actions.count > 0);
	return has;
}

/* With `read`, the first advert of the left neighbour, rank 2, counts. */
static void whose_advert(void)
{
	static const struct mmc_message advert = {
		.kind = MMC_MESSAGE_ADVERT,
		.nitems = 1,
		.advert = { .generation = 5, .has_data = true },
	};
	struct mmc_message other = advert;
	struct mmc_counters counters = { 0 };
	struct mmc_op *op = open_lone(MMC_REPAIR_READ, &counters);

	say(op, 1, advert, 0);
	CHECK_EQ(op->repair.fetcher.advert.generation, 0);
	say(op, 2, advert, 0);
	CHECK_EQ(op->repair.fetcher.advert.generation, 5);
	other.advert.generation = 6;
	say(op, 2, other, 0);
	CHECK_EQ(op->repair.fetcher.advert.generation, 5);
	free(op);
	op = open_lone(MMC_REPAIR_NEIGHBOUR, &counters);
	say(op, 2, advert, 0);
	CHECK_EQ(op->repair.fetcher.advert.generation, 0);
	free(op);
}

/* An owner releases its buffers when it has sent what it was asked for, not before. */
static void owners_release_their_buffers(void)
{
	const struct mmc_message record = { .kind = MMC_MESSAGE_RECORD };
	const struct mmc_message nak = {
		.kind = MMC_MESSAGE_NAK,
		.nitems = 1,
		.runs = { { .first = 0, .count = 1 } },
	};
	struct mmc_counters counters = { 0 };
	struct mmc_op *op = open_lone(MMC_REPAIR_READ, &counters);
	struct mmc_action action;

	say(op, 2, record, 0);
	say(op, 1, record, 0);
	CHECK(does(op, MMC_S_NS, MMC_ACTION_SEND, &action));
	CHECK_EQ(op->state, MMC_OP_FLOW);
	for (uint32_t c = 2; c < 6; c++) {
		CHECK_EQ(mmc_op_on_chunk(op, c / 2, c, c % 2 ? 1 : 100,
					 MMC_S_NS),
			 MMC_VERDICT_PLACE);
		mmc_op_on_placed(op, c);
	}
	say(op, 2, nak, 0);
	say(op, 1, record, MMC_RECORD_DONE);
	CHECK(!does(op, MMC_S_NS, MMC_ACTION_DONE, &action));
	CHECK_EQ(op->state, MMC_OP_RELEASE);
	say(op, 2, nak, 0);
	CHECK(does(op, MMC_S_NS + MMC_MS_NS, MMC_ACTION_SEND, &action));
	CHECK_EQ(action.peer, 2);
	CHECK(action.repair);
	CHECK_EQ(action.run.count, 1);
	does(op, MMC_S_NS + MMC_MS_NS, MMC_ACTION_DONE, &action);
	CHECK_EQ(op->state, MMC_OP_DETACHED);
	CHECK(mmc_op_is_reported(op));
	free(op);
}

CHECK_MAIN(CHECK_TEST(whose_advert), CHECK_TEST(owners_release_their_buffers),
	   CHECK_TEST(every_size), CHECK_TEST(every_root),
	   CHECK_TEST(uneven_blocks), CHECK_TEST(no_more_than_needed),
	   CHECK_TEST(any_order_loss_and_duplication), CHECK_TEST(large),
	   CHECK_TEST(verdicts), CHECK_TEST(claimed_once))
