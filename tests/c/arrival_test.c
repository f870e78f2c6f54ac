/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device tells of chunks that it has placed is checked, and taken in once. */
#include "engine/arrival.h"

#include "hub.h"

#define BLOCK_CHUNKS 5
#define TAIL_BYTES 300 /* the payload of a block's last chunk */
#define BLOCK_BYTES ((BLOCK_CHUNKS - 1) * HUB_CHUNK_BYTES + TAIL_BYTES)

static uint8_t recv[2 * BLOCK_BYTES];
static struct mmc_request *request;

/* Starts an eager Allgather, whose chunks need no entry barrier. Rank 1 is played. */
static void start(void)
{
	hub_open(&(struct hub_options){
		.nranks = 2,
		.nplayed = 1,
		.eager_bytes = 1 << 16,
	});
	memset(recv, 7, sizeof(recv));
	request = hub_gather(0, recv, BLOCK_BYTES);
	hub_settle();
}

static void end(void)
{
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

/* Returns the event that `count` chunks of rank 1 have arrived, the last with `nbytes`. */
static struct mmc_event arrived(uint32_t first, uint32_t count, uint32_t nbytes)
{
	return (struct mmc_event){
		.kind = MMC_EVENT_ARRIVED,
		.source = 1,
		.cookie = mmc_arrival_cookie(request),
		.first = first,
		.count = count,
		.nbytes = nbytes,
	};
}

static void take(struct mmc_event event)
{
	mmc_team_on_arrived(hub[0].team, &event, hub_now_ns);
}

static uint32_t missing(void)
{
	return mmc_op_missing_chunks(request->op);
}

/* A block arrives in runs and single chunks; nothing is written to memory. */
static void chunks_arrive(void)
{
	start();
	CHECK_EQ(missing(), BLOCK_CHUNKS);
	take(arrived(BLOCK_CHUNKS, 2, HUB_CHUNK_BYTES));
	CHECK_EQ(missing(), BLOCK_CHUNKS - 2);
	take(arrived(BLOCK_CHUNKS + 2, 1, HUB_CHUNK_BYTES));
	CHECK_EQ(missing(), BLOCK_CHUNKS - 3);
	take(arrived(BLOCK_CHUNKS + 3, 2, TAIL_BYTES));
	CHECK_EQ(missing(), 0);
	for (uint32_t i = BLOCK_BYTES; i < sizeof(recv); i++)
		CHECK_EQ(recv[i], 7);
	CHECK_EQ(hub_count(0, MMC_COUNT_ZERO_COPY_CHUNKS), BLOCK_CHUNKS);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_MULTICAST_DATAGRAMS), BLOCK_CHUNKS);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_MULTICAST_BYTES), BLOCK_BYTES);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_FOREIGN_DATAGRAMS), 0);
	end();
}

/* Of a run of which some chunks are here already, the others are taken. */
static void chunks_arrive_once(void)
{
	start();
	take(arrived(BLOCK_CHUNKS + 1, 1, HUB_CHUNK_BYTES));
	take(arrived(BLOCK_CHUNKS, 4, HUB_CHUNK_BYTES));
	CHECK_EQ(missing(), 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_DUPLICATE_CHUNKS), 1);
	take(arrived(BLOCK_CHUNKS, 4, HUB_CHUNK_BYTES));
	CHECK_EQ(missing(), 1);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_DUPLICATE_CHUNKS), 5);
	CHECK_EQ(hub_count(0, MMC_COUNT_ZERO_COPY_CHUNKS), 4);
	end();
}

/* Checks that an event of no operation changes nothing, and is counted by the team. */
static void check_stray(struct mmc_event event)
{
	const uint64_t *count =
		&hub[0].team->counters.value[MMC_COUNT_RX_FOREIGN_DATAGRAMS];
	uint64_t before = *count;

	take(event);
	CHECK_EQ(*count, before + 1);
	CHECK_EQ(missing(), BLOCK_CHUNKS);
}

/* Checks that the operation refuses chunks, and takes none of them. */
static void check_foreign(struct mmc_event event)
{
	uint64_t before = hub_count(0, MMC_COUNT_RX_FOREIGN_DATAGRAMS);
	uint64_t nrefused = hub[0].team->nrefused;

	take(event);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_FOREIGN_DATAGRAMS), before + 1);
	CHECK_EQ(hub[0].team->nrefused, nrefused + 1);
	CHECK_EQ(missing(), BLOCK_CHUNKS);
}

/* Whatever a stranger makes the device tell, only what fits an operation counts. */
static void strangers_are_refused(void)
{
	struct mmc_event event;

	start();
	event = arrived(BLOCK_CHUNKS, 1, HUB_CHUNK_BYTES);
	event.source = 2;
	check_stray(event);
	event.source = MMC_PEER_UNKNOWN;
	check_stray(event);
	event = arrived(BLOCK_CHUNKS, 0, HUB_CHUNK_BYTES);
	check_stray(event);
	event = arrived(BLOCK_CHUNKS, 1, HUB_CHUNK_BYTES);
	event.cookie += UINT64_C(1) << 32;
	check_stray(event);
	event.cookie = UINT64_MAX;
	check_stray(event);
	event = arrived(BLOCK_CHUNKS, 1, HUB_CHUNK_BYTES);
	event.cookie++; /* an epoch that has not started */
	check_foreign(event);
	check_foreign(arrived(0, 1, HUB_CHUNK_BYTES));
	check_foreign(arrived(0, 2, HUB_CHUNK_BYTES));
	check_foreign(arrived(2 * BLOCK_CHUNKS, 1, HUB_CHUNK_BYTES));
	check_foreign(arrived(UINT32_MAX, 1, HUB_CHUNK_BYTES));
	check_foreign(
		arrived(BLOCK_CHUNKS | MMC_INDEX_REPAIR, 1, HUB_CHUNK_BYTES));
	check_foreign(arrived(BLOCK_CHUNKS, UINT32_MAX, HUB_CHUNK_BYTES));
	check_foreign(arrived(BLOCK_CHUNKS, 1, HUB_CHUNK_BYTES - 1));
	check_foreign(arrived(2 * BLOCK_CHUNKS - 1, 1, HUB_CHUNK_BYTES));
	end();
}

/* A chunk that arrives after its operation has closed counts as a duplicate. */
static void late_chunks_are_duplicates(void)
{
	struct mmc_event event;

	start();
	event = arrived(BLOCK_CHUNKS, 3, HUB_CHUNK_BYTES);
	event.cookie--; /* epoch 0 has never been, but is no longer to come */
	take(event);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_DUPLICATE_CHUNKS), 3);
	CHECK_EQ(missing(), BLOCK_CHUNKS);
	CHECK_EQ(hub_count(0, MMC_COUNT_RX_FOREIGN_DATAGRAMS), 0);
	end();
}

CHECK_MAIN(CHECK_TEST(chunks_arrive), CHECK_TEST(chunks_arrive_once),
	   CHECK_TEST(strangers_are_refused),
	   CHECK_TEST(late_chunks_are_duplicates))
