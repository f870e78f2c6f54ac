/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watermarks of all ranks in one process, against the plain minimum of what all
 * have drained: never above it, and never so far below that a sender could stall for
 * want of a report.
 */
#include "check.h"
#include "core/flow/watermark.h"
#include "support/prng.h"

#define NRANKS_MAX 80
#define NCHAINS_MAX 8
#define CHUNK_BYTES 100
#define MESSAGES_MAX 4096

struct message {
	uint32_t source;
	uint32_t target;
	uint32_t positions[NCHAINS_MAX];
};

struct net {
	struct mmc_prng prng;
	struct mmc_schedule schedule;
	struct mmc_watermark marks[NRANKS_MAX];
	uint8_t *memory[NRANKS_MAX];
	uint32_t own[NRANKS_MAX][NCHAINS_MAX];
	struct message messages[MESSAGES_MAX];
	unsigned nmessages;
	unsigned nreports;
	unsigned nreports_of[NRANKS_MAX];
	uint64_t loss; /* chance to lose a message, out of 2^32 */
};

static void net_open(struct net *net, uint32_t nranks, uint32_t nchains,
		     uint32_t block_chunks, uint32_t window_chunks)
{
	struct mmc_layout layout;

	*net = (struct net){ .prng = { .state = nranks } };
	CHECK_EQ(mmc_layout_init(&layout, nranks,
				 (uint64_t)block_chunks * CHUNK_BYTES,
				 CHUNK_BYTES),
		 0);
	mmc_schedule_init(&net->schedule, NULL, &layout, nchains,
			  window_chunks * CHUNK_BYTES, UINT32_MAX);
	for (uint32_t r = 0; r < nranks; r++) {
		net->memory[r] = malloc(
			mmc_watermark_bytes(nranks, net->schedule.nchains));
		mmc_watermark_init(&net->marks[r], net->memory[r], r,
				   &net->schedule);
	}
}

static void net_close(struct net *net)
{
	for (uint32_t r = 0; r < net->schedule.layout.nranks; r++)
		free(net->memory[r]);
}

static uint32_t minimum(const struct net *net, uint32_t chain)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t r = 0; r < net->schedule.layout.nranks; r++)
		least = least < net->own[r][chain] ? least : net->own[r][chain];
	return least;
}

/* Checks that all ranks have drained what this rank believes they have. */
static void check_safe(const struct net *net, uint32_t rank)
{
	for (uint32_t c = 0; c < net->schedule.nchains; c++)
		CHECK(net->marks[rank].drained[c] <= minimum(net, c));
}

static void post(struct net *net, const struct message *message)
{
	if (mmc_prng_chance(&net->prng, net->loss))
		return;
	if (CHECK(net->nmessages < MESSAGES_MAX))
		net->messages[net->nmessages++] = *message;
}

static void report(struct net *net, uint32_t rank)
{
	struct message message = { .source = rank };

	if (!mmc_watermark_take_report(&net->marks[rank], message.positions,
				       &message.target))
		return;
	net->nreports++;
	net->nreports_of[rank]++;
	CHECK(message.target == MMC_PEER_ALL || message.target < rank);
	CHECK_EQ(message.target == MMC_PEER_ALL, rank == 0);
	check_safe(net, rank);
	if (message.target != MMC_PEER_ALL) {
		post(net, &message);
		return;
	}
	for (uint32_t r = 1; r < net->schedule.layout.nranks; r++) {
		message.target = r;
		post(net, &message);
	}
}

static void deliver(struct net *net, const struct message *message)
{
	struct mmc_watermark *watermark = &net->marks[message->target];
	uint32_t nchains = net->schedule.nchains;

	if (message->source < message->target)
		CHECK(mmc_watermark_settle(watermark, message->source,
					   message->positions, nchains));
	else
		CHECK(mmc_watermark_report(watermark, message->source,
					   message->positions, nchains));
	check_safe(net, message->target);
	report(net, message->target);
}

static void deliver_any(struct net *net)
{
	unsigned pick = (unsigned)mmc_prng_below(&net->prng, net->nmessages);
	struct message message = net->messages[pick];

	net->messages[pick] = net->messages[--net->nmessages];
	if (mmc_prng_chance(&net->prng, net->loss / 2))
		net->messages[net->nmessages++] = message;
	deliver(net, &message);
}

/* Lets a rank drain some more chunks of a chain. */
static void drain(struct net *net, uint32_t rank, uint32_t chain,
		  uint32_t nchunks)
{
	uint32_t length = mmc_schedule_length(&net->schedule, chain);
	uint32_t *own = &net->own[rank][chain];

	*own = nchunks < length - *own ? *own + nchunks : length;
	mmc_watermark_drain(&net->marks[rank], chain, *own);
	report(net, rank);
}

static void drain_any(struct net *net)
{
	struct mmc_prng *prng = &net->prng;

	drain(net, (uint32_t)mmc_prng_below(prng, net->schedule.layout.nranks),
	      (uint32_t)mmc_prng_below(prng, net->schedule.nchains),
	      (uint32_t)mmc_prng_below(prng, 7));
}

/*
 * Checks that windows reach the chain's end or beyond the minimum, now that all
 * messages are delivered.
 */
static void check_close(const struct net *net)
{
	for (uint32_t r = 0; r < net->schedule.layout.nranks; r++)
		for (uint32_t c = 0; c < net->schedule.nchains; c++) {
			uint32_t end = net->marks[r].drained[c] +
				       net->schedule.window_chunks;

			CHECK(end > minimum(net, c) ||
			      end >= mmc_schedule_length(&net->schedule, c));
		}
}

static const uint32_t sizes[] = { 1, 2, 3, 8, 9, 10, 17, 73, 74, 80 };

/* Without loss, every watermark stays close enough to the minimum. */
static void follows_the_minimum(void)
{
	static struct net net;

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (uint32_t m = 1; m <= NCHAINS_MAX; m += 3)
			for (uint32_t w = 2; w <= 128; w *= 4) {
				net_open(&net, sizes[s], m, 40, w * (m + 1));
				for (unsigned i = 0; i < 1000; i++) {
					drain_any(&net);
					while (net.nmessages > 0)
						deliver_any(&net);
					check_close(&net);
				}
				net_close(&net);
			}
}

/* Reports that arrive late, twice, out of order or not at all do no harm. */
static void bad_network(void)
{
	static struct net net;

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		net_open(&net, sizes[s], 3, 100, 40);
		net.loss = UINT64_C(1) << 30;
		for (unsigned i = 0; i < 5000; i++) {
			drain_any(&net);
			while (net.nmessages > 200 ||
			       (net.nmessages > 0 &&
				mmc_prng_chance(&net.prng, UINT64_C(1) << 31)))
				deliver_any(&net);
		}
		/* The next report makes up for a lost one. */
		net.loss = 0;
		while (net.nmessages > 0)
			deliver_any(&net);
		net_close(&net);
	}
}

/* Where a window holds the whole chain, no report is sent. */
static void silent_if_all_fits(void)
{
	static struct net net;

	for (uint32_t nranks = 1; nranks <= 20; nranks++) {
		net_open(&net, nranks, 4, 10, 4000);
		for (unsigned i = 0; i < 3000; i++)
			drain_any(&net);
		CHECK_EQ(net.nreports, 0);
		net_close(&net);
	}
}

/* A rank sends no more than a few reports for a window's worth of chunks. */
static void reports_are_few(void)
{
	static struct net net;
	unsigned nsteps = 0;

	net_open(&net, 64, 1, 1000, 512);
	while (net.own[63][0] < 64000) {
		for (uint32_t r = 0; r < 64; r++)
			drain(&net, r, 0, 1);
		while (net.nmessages > 0)
			deliver_any(&net);
		nsteps++;
	}
	CHECK_EQ(nsteps, 64000);
	CHECK(net.nreports / 64 <= 8 * 64000 / net.schedule.window_chunks);
	net_close(&net);
}

/* Inner ranks also report rarely, though eight children differ in pace. */
static void few_are_passed_on(void)
{
	static struct net net;
	uint64_t in_flight_chunks;
	uint64_t nchunks;

	net_open(&net, 73, 8, 800, 512);
	in_flight_chunks = (uint64_t)net.schedule.window_chunks * 8;
	for (unsigned i = 0; i < 300000; i++) {
		drain_any(&net);
		while (net.nmessages > 0)
			deliver_any(&net);
	}
	for (uint32_t r = 0; r < 73; r++) {
		unsigned most = net.marks[r].nchildren > 0 ? 16 : 4;

		nchunks = 0;
		for (uint32_t c = 0; c < 8; c++)
			nchunks += net.own[r][c];
		CHECK(nchunks > 20 * in_flight_chunks);
		CHECK(net.nreports_of[r] <=
		      1 + most * nchunks / in_flight_chunks);
	}
	net_close(&net);
}

/*
 * Reports come from children only, watermarks from the root only, and both for
 * the right number of chains; all others are refused.
 */
static void refuses(void)
{
	const uint32_t positions[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	static struct net net;

	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++) {
		net_open(&net, nranks, 2, 100, 30);
		for (uint32_t r = 0; r < nranks; r++) {
			struct mmc_watermark *watermark = &net.marks[r];
			uint32_t nchains = watermark->nchains;

			for (uint32_t s = 0; s < nranks + 70; s++) {
				bool child = s > 0 && s < nranks &&
					     (s - 1) / 8 == r;

				CHECK_EQ(mmc_watermark_report(watermark, s,
							      positions,
							      nchains),
					 child);
				CHECK(!mmc_watermark_report(
					watermark, s, positions, nchains + 1));
				CHECK(!mmc_watermark_report(
					watermark, s, positions, nchains - 1));
			}
			CHECK(!mmc_watermark_report(watermark, UINT32_MAX,
						    positions, nchains));
			CHECK(!mmc_watermark_settle(watermark, 1, positions,
						    nchains));
			CHECK(!mmc_watermark_settle(watermark, UINT32_MAX,
						    positions, nchains));
			CHECK(!mmc_watermark_settle(watermark, 0, positions,
						    nchains + 1));
			CHECK_EQ(watermark->drained[0], 0);
		}
		net_close(&net);
	}
}

/*
 * A chain's lead is what it has drained beyond its due when all open chains have drained
 * the same share as the slowest. Blocks, and so chains, are of any lengths.
 */
static void leads(void)
{
	struct mmc_prng prng = { .state = 5 };
	uint32_t drained[NCHAINS_MAX];
	uint32_t lengths[NCHAINS_MAX];
	struct mmc_watermark watermark = {
		.drained = drained,
		.lengths = lengths,
	};

	for (unsigned i = 0; i < 10000; i++) {
		bool equal = i % 2 == 0;

		watermark.nchains =
			1 + (uint32_t)mmc_prng_below(&prng, NCHAINS_MAX);
		for (uint32_t c = 0; c < watermark.nchains; c++) {
			lengths[c] =
				1 +
				(equal ? 5000
				       : (uint32_t)mmc_prng_below(&prng, 5000));
			drained[c] = (uint32_t)mmc_prng_below(
				&prng, lengths[c] + UINT64_C(1));
		}
		for (uint32_t c = 0; c < watermark.nchains; c++) {
			double least = 1;
			double lead;

			for (uint32_t d = 0; d < watermark.nchains; d++)
				if (drained[d] < lengths[d] &&
				    (double)drained[d] / lengths[d] < least)
					least = (double)drained[d] / lengths[d];
			lead = drained[c] - least * lengths[c];
			lead = lead < 0 ? 0 : lead;
			CHECK(mmc_watermark_lead(&watermark, c) >= lead - 1e-6);
			CHECK(mmc_watermark_lead(&watermark, c) < lead + 1);
		}
	}
}

CHECK_MAIN(CHECK_TEST(leads), CHECK_TEST(follows_the_minimum),
	   CHECK_TEST(bad_network), CHECK_TEST(silent_if_all_fits),
	   CHECK_TEST(reports_are_few), CHECK_TEST(few_are_passed_on),
	   CHECK_TEST(refuses))
