/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures what the core costs per chunk. This program is run under callgrind (see
 * bench/counters.py), which counts the instructions in measured(). The first argument
 * says what to measure: receive, run, stage, direct, send or train.
 *
 * A received chunk costs decoding its header, looking up its operation, the verdict,
 * and recording that it is placed; `run` measures chunks that come in runs. A sent chunk
 * costs the action that names it, encoding its header, and recording that it is sent.
 * Each also costs its share of one poll per batch. `stage` adds the copy to the chunk's
 * place; `direct` adds the work of placing the chunk there directly. `train` is what the
 * UDP driver does to a sent chunk, before the system call.
 */
#include "check.h"
#include "core/operation/epochs.h"
#include "drivers/placement.h"
#include "drivers/udp/batch.h"
#include "engine/predictor.h"
#include "support/bits.h"
#include "support/memory.h"

/* Stands in for the library's own, since this program links only the core. */
_Noreturn void mmc_assert_failed(const char *expression, const char *file,
				 int line)
{
	fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line,
		expression);
	abort();
}

#define CHUNK_BYTES 1456
#define NCHUNKS 16384
#define BATCH_CHUNKS 16
#define TRAIN_CHUNKS 44 /* of UDP on a fast link: 64 KiB */
#define CHANNEL (UINT64_C(5) << 16)
#define DATAGRAM_BYTES (MMC_HEADER_BYTES + CHUNK_BYTES)
#define NSLOTS 64

static struct mmc_epochs epochs;
static struct mmc_counters counters;
static struct mmc_actions actions;
static uint8_t headers[NCHUNKS][MMC_HEADER_BYTES];
static uint64_t now_ns = MMC_S_NS;

/* A ring of receives for the chunks of rank 1. */
static struct {
	uint8_t *base; /* the result's memory; NULL: payloads are not touched */
	struct mmc_placement placement;
	uint32_t chain;
	uint32_t body_bytes;	    /* payload of each chunk */
	struct mmc_request request; /* what the predictor looks at */
	uint8_t staging[NSLOTS][CHUNK_BYTES];
} ring;

/* Returns the template of the headers of all chunks. */
static struct mmc_header_template template(void)
{
	const struct mmc_header header = { .channel = CHANNEL, .epoch = 1 };

	return mmc_header_template(&header, DATAGRAM_BYTES,
				   MMC_CHECKSUM_HEADER);
}

/* Writes the headers of a run behind `nsent` others. Returns how many there are then. */
static uint32_t write_headers(struct mmc_run run, uint32_t nsent)
{
	const struct mmc_header_template all = template();

	for (uint32_t c = run.first; c < run.first + run.count; c++)
		mmc_header_write(&all, headers[nsent++ % NCHUNKS], c);
	return nsent;
}

/* Polls until nothing is left to do; returns how many chunks were sent. */
static uint32_t poll(struct mmc_op *op)
{
	uint32_t nsent = 0;

	do {
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_epochs_poll(&epochs, now_ns, &actions);
		for (uint32_t i = 0; i < actions.count; i++) {
			const struct mmc_action *action = &actions.items[i];

			if (action->kind != MMC_ACTION_SEND)
				continue;
			nsent = write_headers(action->run, nsent);
			mmc_op_on_sent(op, action->run.count);
		}
	} while (actions.count > 0);
	return nsent;
}

/* Moves chunk `i` to its place from where its receive put it. */
__attribute__((noinline)) static void place(uint32_t i)
{
	uint8_t *to = ring.base + (size_t)(NCHUNKS + i) * CHUNK_BYTES;
	uint8_t *body = ring.staging[i % NSLOTS];

	if (ring.placement.active)
		body = mmc_placement_complete(&ring.placement, ring.chain,
					      i % NSLOTS, 1, headers[i],
					      DATAGRAM_BYTES);
	if (body != to)
		memcpy(to, body, ring.body_bytes);
}

/* Posts the receives of the batch that ends with chunk `i` again. */
__attribute__((noinline)) static void post(uint32_t i)
{
	uint32_t slots[BATCH_CHUNKS];

	if (!ring.placement.active)
		return;
	mmc_placement_resume(&ring.placement, ring.chain);
	for (uint32_t k = 0; k < BATCH_CHUNKS; k++)
		slots[k] = (i + 1 - BATCH_CHUNKS + k) % NSLOTS;
	mmc_placement_post(&ring.placement, ring.chain, slots, BATCH_CHUNKS);
}

static uint32_t receive(struct mmc_op *op)
{
	const struct mmc_header_template all = template();
	uint32_t nreceived = 0;

	for (uint32_t i = 0; i < NCHUNKS; i++) {
		uint32_t index = mmc_get_u32(headers[i] + 12);

		if (!mmc_header_matches(&all, headers[i], index) ||
		    mmc_epochs_find(&epochs, 1) != op ||
		    mmc_op_on_chunk(op, 1, index, CHUNK_BYTES, now_ns) !=
			    MMC_VERDICT_PLACE)
			return 0;
		if (ring.base != NULL)
			place(i);
		mmc_op_on_placed(op, index);
		nreceived++;
		if (i % BATCH_CHUNKS == BATCH_CHUNKS - 1) {
			now_ns += 20 * MMC_US_NS;
			poll(op);
			if (ring.base != NULL)
				post(i);
		}
	}
	return nreceived;
}

/* Receives all chunks in runs of a batch; returns how many. */
static uint32_t receive_runs(struct mmc_op *op)
{
	uint32_t nreceived = 0;

	while (nreceived < NCHUNKS) {
		const struct mmc_run run = { .first = NCHUNKS + nreceived,
					     .count = BATCH_CHUNKS };

		struct mmc_header_template all;
		struct mmc_header first;

		if (mmc_header_decode(&first, headers[nreceived],
				      DATAGRAM_BYTES, MMC_CHECKSUM_HEADER) != 0)
			return 0;
		all = mmc_header_template(&first, DATAGRAM_BYTES,
					  MMC_CHECKSUM_HEADER);
		for (uint32_t i = 1; i < run.count; i++)
			if (!mmc_header_matches(&all, headers[nreceived + i],
						run.first + i))
				return 0;
		if (mmc_epochs_find(&epochs, 1) != op ||
		    !mmc_op_on_run(op, 1, run, CHUNK_BYTES, now_ns))
			return 0;
		mmc_op_on_run_placed(op, run);
		nreceived += run.count;
		now_ns += 20 * MMC_US_NS;
		poll(op);
	}
	return nreceived;
}

/* Makes trains of all chunks, a batch at a time; returns how many chunks. */
static uint32_t make_trains(void)
{
	static struct mmc_udp_batch batch = {
		.cutting = true,
		.longest = { MMC_UDP_TRAIN_PAYLOAD_MAX,
			     MMC_UDP_TRAIN_DATAGRAMS_MAX },
	};
	static struct mmc_parcel parcels[TRAIN_CHUNKS];
	static uint8_t payload[CHUNK_BYTES];
	struct sockaddr_in target;
	uint32_t nchunks = 0;

	for (uint32_t i = 0; i < TRAIN_CHUNKS; i++)
		parcels[i] = (struct mmc_parcel){
			.head = headers[i],
			.head_bytes = MMC_HEADER_BYTES,
			.body = payload,
			.body_bytes = CHUNK_BYTES,
			.peer = MMC_PEER_ALL,
		};
	while (nchunks < NCHUNKS) {
		mmc_udp_batch_clear(&batch);
		mmc_udp_batch_add(&batch, parcels,
				  mmc_min_u32(TRAIN_CHUNKS, NCHUNKS - nchunks),
				  &target);
		if (batch.nmessages != 1)
			return 0;
		nchunks += batch.nparcels;
	}
	return nchunks;
}

__attribute__((noinline)) static uint32_t measured(struct mmc_op *op,
						   const char *way)
{
	if (strcmp(way, "train") == 0)
		return make_trains();
	if (strcmp(way, "send") == 0)
		return poll(op);
	return strcmp(way, "run") == 0 ? receive_runs(op) : receive(op);
}

/* Opens receives that bring chunks to staging or, if `direct`, to their places. */
static void open_ring(struct mmc_op *op, bool direct)
{
	struct mmc_placement *at = &ring.placement;
	const struct mmc_block block = mmc_layout_block(&op->layout, 1);
	struct mmc_predictor predictor;

	ring.body_bytes = CHUNK_BYTES;
	ring.base = calloc((size_t)2 * NCHUNKS, CHUNK_BYTES);
	if (!direct)
		return;
	ring.chain = mmc_schedule_chain(&op->schedule, &block);
	mmc_placement_init(at, op->schedule.nchains + 1, NSLOTS,
			   MMC_HEADER_BYTES, CHUNK_BYTES);
	for (uint32_t i = 0; i < NSLOTS; i++) {
		at->queues[ring.chain].slots[i].staging = ring.staging[i];
		mmc_placement_post(at, ring.chain, &i, 1);
	}
	ring.request.op = op;
	ring.request.base = ring.base;
	predictor = mmc_request_predictor(&ring.request);
	mmc_placement_begin(at, &predictor);
}

/* Lets rank 1 enter, and prepares the headers of all chunks that rank 0 receives. */
static void pass_barrier(void)
{
	struct mmc_message message = {
		.kind = MMC_MESSAGE_RECORD,
		.record = {
			.flags = MMC_RECORD_ENTERED,
			.entry_rounds = 1,
			.terms = { 7, 7, UINT32_MAX, UINT32_MAX, 100, 1 },
		},
	};

	mmc_epochs_on_message(&epochs, 1, 1, &message, now_ns);
	for (uint32_t i = 0; i < NCHUNKS; i++) {
		struct mmc_header header = { .channel = CHANNEL,
					     .epoch = 1,
					     .index = NCHUNKS + i };

		mmc_header_encode(headers[i], &header, DATAGRAM_BYTES,
				  MMC_CHECKSUM_HEADER);
	}
}

int main(int argc, char **argv)
{
	const char *way = argc == 2 ? argv[1] : "";
	bool receives = strcmp(way, "send") != 0;
	const struct mmc_op_config config = {
		.nranks = 2,
		.signature = 7,
		.block_bytes = (uint64_t)NCHUNKS * CHUNK_BYTES,
		.chunk_bytes = CHUNK_BYTES,
		.window_bytes = UINT32_MAX,
		.source_bytes = UINT32_MAX,
		.batch_chunks = TRAIN_CHUNKS,
		.timeout_ns = 10 * MMC_S_NS,
	};
	size_t nbytes = mmc_op_footprint(&config);
	void *memory = aligned_alloc(MMC_ALIGN_BYTES, nbytes);
	void *epochs_memory =
		aligned_alloc(MMC_ALIGN_BYTES, mmc_epochs_bytes(2));
	uint32_t nchunks;
	struct mmc_op *op;

	mmc_epochs_init(&epochs, epochs_memory, CHANNEL, 0, 2, &counters);
	op = mmc_epochs_start(&epochs, memory, &config, now_ns);
	if (receives) {
		poll(op);
		pass_barrier();
		poll(op);
	}
	pass_barrier();
	if (strcmp(way, "stage") == 0 || strcmp(way, "direct") == 0)
		open_ring(op, strcmp(way, "direct") == 0);
	nchunks = measured(op, way);
	printf("%" PRIu32 " chunks\n", nchunks);
	mmc_placement_destroy(&ring.placement);
	free(ring.base);
	free(memory);
	free(epochs_memory);
	return nchunks != NCHUNKS;
}
