/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks that are sent in runs leave as the same datagrams, to the same receivers and in
 * the same order, as the same chunks sent one by one, and leave the same state: for any
 * blocks, wherever they lie, and whatever protects the datagrams.
 */
#include "core/operation/repair.h"
#include "engine/predictor.h"
#include "engine/send.h"
#include "hub.h"

#define NRANKS 4
#define NROUNDS 40
#define NRUNS 20
#define BLOCK_BYTES_MAX (30 * HUB_CHUNK_BYTES)
#define GAP_BYTES 77 /* between blocks that lie apart */

/* All datagrams of a run, and to whom they were sent. */
struct sent {
	uint32_t count;
	struct {
		uint32_t peer;
		uint32_t subgroup;
		uint32_t head_bytes;
		uint32_t nbytes;
		uint8_t bytes[HUB_CHUNK_BYTES + 64];
	} datagrams[MMC_BATCH_CHUNKS_WIDE];
};

static uint8_t recv[NRANKS * (BLOCK_BYTES_MAX + GAP_BYTES)];
static uint64_t blocks_bytes[NRANKS];
static uint64_t offsets_bytes[NRANKS];
static struct sent *sent; /* where record() writes */

/* Takes the place of the hub's send(). */
static int record(struct mmc_endpoint *endpoint,
		  const struct mmc_parcel *parcels, unsigned nparcels)
{
	(void)endpoint;
	for (unsigned i = 0; i < nparcels && sent != NULL; i++) {
		const struct mmc_parcel *parcel = &parcels[i];
		uint32_t n = sent->count++;

		MMC_ASSERT(n < MMC_BATCH_CHUNKS_WIDE);
		sent->datagrams[n].peer = parcel->peer;
		sent->datagrams[n].subgroup = parcel->subgroup;
		sent->datagrams[n].head_bytes = parcel->head_bytes;
		sent->datagrams[n].nbytes =
			parcel->head_bytes + parcel->body_bytes;
		memcpy(sent->datagrams[n].bytes, parcel->head,
		       parcel->head_bytes);
		memcpy(sent->datagrams[n].bytes + parcel->head_bytes,
		       parcel->body, parcel->body_bytes);
		CHECK(!parcel->control);
	}
	return 0;
}

/* Draws blocks that are equal, or uneven, or uneven and apart. */
static struct mmc_operation draw_operation(struct mmc_prng *prng)
{
	struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = 1 + mmc_prng_below(prng, BLOCK_BYTES_MAX),
		.recv = recv,
	};
	uint64_t layout = mmc_prng_below(prng, 3);
	uint64_t at_bytes = 0;

	if (layout == 0)
		return operation;
	operation.kind = MMC_ALLGATHERV;
	operation.block_bytes = 0;
	for (uint32_t r = 0; r < NRANKS; r++) {
		blocks_bytes[r] = mmc_prng_below(prng, BLOCK_BYTES_MAX);
		if (r == mmc_prng_below(prng, NRANKS))
			blocks_bytes[r] = 0;
		offsets_bytes[r] = at_bytes;
		at_bytes += blocks_bytes[r] + GAP_BYTES;
	}
	blocks_bytes[0] += 1;
	operation.blocks_bytes = blocks_bytes;
	operation.offsets_bytes = layout == 2 ? offsets_bytes : NULL;
	return operation;
}

/* Sends what `action` says, as one run or chunk by chunk. */
static void send_all(struct mmc_request *request, struct mmc_action action,
		     bool in_runs)
{
	struct mmc_run run = action.run;
	uint32_t step = in_runs ? run.count : 1;

	for (uint32_t i = 0; i < run.count; i += step) {
		action.run = (struct mmc_run){ run.first + i, step };
		CHECK_EQ(mmc_request_send(request, &action), 0);
		mmc_op_on_sent(request->op, step);
	}
}

/* Checks a datagram against the protocol's own rules, not against this code. */
static void check_datagram(const struct mmc_request *request,
			   const struct sent *all, uint32_t number,
			   const struct mmc_action *action)
{
	enum mmc_checksum checksum = hub[0].team->options.checksum;
	uint32_t chunk = action->run.first + number;
	struct mmc_header header;

	if (!CHECK_EQ(mmc_header_decode(&header, all->datagrams[number].bytes,
					all->datagrams[number].nbytes,
					checksum),
		      0))
		return;
	CHECK_EQ(header.channel, HUB_CHANNEL);
	CHECK_EQ(header.index, chunk | (action->repair ? MMC_INDEX_REPAIR : 0));
	CHECK_EQ(all->datagrams[number].peer, action->peer);
	if (!hub[0].team->options.zero_copy)
		CHECK_EQ(all->datagrams[number].subgroup,
			 chunk /
				 mmc_max_u32(hub[0].endpoint.train_datagrams,
					     1) %
				 hub[0].team->options.subgroups);
	CHECK_BYTES(all->datagrams[number].bytes +
			    all->datagrams[number].head_bytes,
		    mmc_request_address(request, chunk),
		    mmc_layout_payload(mmc_op_layout(request->op), chunk));
}

/* Sends a random run both ways, and compares. */
static void compare(struct mmc_prng *prng, struct mmc_request *request)
{
	static struct sent ways[2];
	uint32_t nchunks = mmc_op_layout(request->op)->nchunks;
	size_t nbytes = mmc_op_footprint(&request->op->config);
	uint8_t *states[2] = { malloc(nbytes), malloc(nbytes) };
	struct mmc_counters before = hub[0].stream->counters;
	struct mmc_counters counters[2];
	struct mmc_actions actions;
	struct mmc_run run;

	run.first = (uint32_t)mmc_prng_below(prng, nchunks);
	run.count = 1 + (uint32_t)mmc_prng_below(prng, MMC_BATCH_CHUNKS_WIDE);
	run.count = mmc_min_u32(run.count, nchunks - run.first);
	mmc_actions_init(&actions, hub[0].team->options.checksum);
	for (int way = 0; way < 2; way++) {
		ways[way].count = 0;
		sent = &ways[way];
		hub[0].stream->counters = before;
		mmc_actions_init(&actions, hub[0].team->options.checksum);
		mmc_op_send_run(request->op,
				run.first % 2 == 0 ? MMC_PEER_ALL : 1, run,
				run.first % 3 == 0, &actions);
		send_all(request, actions.items[0], way == 0);
		memcpy(states[way], request->op, nbytes);
		counters[way] = hub[0].stream->counters;
	}
	sent = NULL;
	CHECK_EQ(ways[0].count, run.count);
	if (CHECK_EQ(ways[0].count, ways[1].count))
		for (uint32_t i = 0; i < run.count; i++) {
			CHECK(memcmp(&ways[0].datagrams[i],
				     &ways[1].datagrams[i],
				     sizeof(ways[0].datagrams[i])) == 0);
			check_datagram(request, &ways[0], i, &actions.items[0]);
		}
	CHECK(memcmp(states[0], states[1], nbytes) == 0);
	CHECK(memcmp(&counters[0], &counters[1], sizeof(counters[0])) == 0);
	free(states[0]);
	free(states[1]);
}

/* Plays one seed: an operation of random blocks, of which random runs are sent. */
static void play(uint64_t seed)
{
	struct mmc_prng prng = { .state = seed };
	struct mmc_driver driver = hub_driver;
	struct mmc_operation operation = draw_operation(&prng);
	struct mmc_request *request;
	unsigned failures = check_failures;

	driver.send = record;
	hub_open(&(struct hub_options){
		.nranks = NRANKS,
		.nplayed = NRANKS - 1,
		.checksum = (uint32_t)mmc_prng_below(&prng, 3),
	});
	hub[0].endpoint.driver = &driver;
	hub[0].team->options.subgroups = 1 + (uint32_t)mmc_prng_below(&prng, 5);
	hub[0].team->options.zero_copy = mmc_prng_below(&prng, 2) == 0;
	hub[0].endpoint.train_datagrams = (uint32_t)mmc_prng_below(&prng, 6);
	for (size_t i = 0; i < sizeof(recv); i++)
		recv[i] = (uint8_t)mmc_prng_next(&prng);
	CHECK_EQ(mmc_start(hub[0].stream, &operation, 0, &request), MMC_EAGAIN);
	for (unsigned i = 0; i < NRUNS; i++)
		compare(&prng, request);
	if (check_failures > failures)
		fprintf(stderr, "seed %" PRIu64 "\n", seed);
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

static void same_datagrams(void)
{
	for (uint64_t i = 0; i < NROUNDS; i++)
		play(check_seed() + i);
}

CHECK_MAIN(CHECK_TEST(same_datagrams))
