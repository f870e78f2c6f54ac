/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines read each other's memory on a simulated network: what is registered, how
 * often, and what a broken connection does.
 */
#include "check.h"
#include "core/counters.h"
#include "drivers/fault/fault.h"
#include "drivers/sim/endpoint.h"
#include "engine/engine.h"
#include "support/error.h"

#define NRANKS 3
#define CHUNK_BYTES 1000
#define BLOCK_BYTES 60500
#define BUFFER_BYTES (1 << 20)

enum { TIMER_WAKE = MMC_NETWORK_TIMER, TIMER_READ };

struct rank {
	struct mmc_engine *engine;
	struct mmc_team *team;
	struct mmc_stream *stream;
	struct mmc_sim_endpoint *endpoint;
	struct mmc_request *request;
	uint8_t *recv;
	uint64_t wake_ns;
	bool dead;
};

static struct mmc_network network;
static struct mmc_sim_regions regions;
static struct rank ranks[NRANKS];

static void open_rank(uint32_t r, uint8_t *addresses)
{
	struct rank *rank = &ranks[r];
	const struct mmc_sim_endpoint_options options = {
		.network = &network,
		.host = r,
		.subgroups = 1,
		.buffer_bytes = BUFFER_BYTES,
		.control_bytes = BUFFER_BYTES,
		.regions = &regions,
		.registrations_max = UINT32_MAX,
		.read_kind = TIMER_READ,
	};
	const struct mmc_team_options team = {
		.rank = r,
		.nranks = NRANKS,
		.subgroups = 1,
		.chunk_bytes = CHUNK_BYTES,
		.checksum = MMC_CHECKSUM_HEADER,
	};
	struct mmc_endpoint *endpoint;

	rank->wake_ns = MMC_NEVER_NS;
	CHECK_EQ(mmc_sim_endpoint_create(&options, &rank->endpoint), 0);
	CHECK_EQ(mmc_fault_wrap("loss=0.2,kind=multicast", r,
				&rank->endpoint->base, MMC_CHECKSUM_HEADER,
				false, &endpoint),
		 0);
	CHECK_EQ(mmc_engine_create_stepped(&rank->engine), 0);
	CHECK_EQ(mmc_team_create_on(rank->engine, endpoint, &team,
				    BUFFER_BYTES / 2, &rank->team),
		 0);
	mmc_team_address(rank->team, addresses + r * MMC_SIM_ADDRESS_BYTES);
}

static void open_all(void)
{
	const struct mmc_network_options options = {
		.nhosts = NRANKS,
		.nswitches = 1,
		.link_mbits = 10000,
		.trunk_mbits = 10000,
		.latency_ns = 1000,
		.queue_bytes = 16 << 20,
		.datagram_bytes_max = 4096,
		.head_bytes = MMC_HEADER_BYTES,
		.payload_scale = 1,
		.seed = 3,
	};
	const struct mmc_stream_options stream = {
		.channel = UINT64_C(7) << 16,
		.repair = MMC_REPAIR_READ,
		.timeout_ns = 10 * MMC_S_NS,
	};
	uint8_t addresses[NRANKS * MMC_SIM_ADDRESS_BYTES];

	memset(ranks, 0, sizeof(ranks));
	CHECK_EQ(mmc_network_init(&network, &options), 0);
	for (uint32_t r = 0; r < NRANKS; r++)
		open_rank(r, addresses);
	for (uint32_t r = 0; r < NRANKS; r++) {
		CHECK_EQ(mmc_team_connect(ranks[r].team, addresses), 0);
		CHECK_EQ(mmc_stream_create(ranks[r].team, &stream,
					   &ranks[r].stream),
			 0);
	}
}

static void close_all(void)
{
	for (uint32_t r = 0; r < NRANKS; r++) {
		mmc_request_free(ranks[r].request);
		mmc_stream_close(ranks[r].stream);
		mmc_team_close(ranks[r].team);
		mmc_engine_destroy(ranks[r].engine);
	}
	mmc_sim_regions_free(&regions);
	mmc_network_free(&network);
}

static void wake(struct rank *rank)
{
	uint64_t next_ns;

	if (rank->dead)
		return;
	next_ns = mmc_engine_step(rank->engine);
	if (next_ns != MMC_NEVER_NS && next_ns <= network.now_ns)
		next_ns = network.now_ns + 1;
	if (next_ns >= rank->wake_ns && rank->wake_ns > network.now_ns)
		return;
	rank->wake_ns = next_ns;
	if (next_ns != MMC_NEVER_NS)
		mmc_network_at(&network, next_ns, TIMER_WAKE,
			       (uint32_t)(rank - ranks));
}

/* Handles all events up to `until_ns`, or until none is left. */
static void live(uint64_t until_ns)
{
	struct mmc_heap_item event;

	while (network.now_ns < until_ns &&
	       mmc_network_next(&network, &event)) {
		struct rank *rank = &ranks[event.target];

		if (event.kind == MMC_NETWORK_ARRIVAL && rank->dead)
			mmc_network_release(&network, event.subject);
		else if (event.kind == MMC_NETWORK_ARRIVAL)
			mmc_sim_endpoint_receive(rank->endpoint, event.subject);
		else if (event.kind == TIMER_READ)
			mmc_sim_endpoint_step_reads(rank->endpoint);
		wake(rank);
	}
}

/* Starts an Allgather of all ranks, in place. */
static void start(uint64_t block_bytes, uint8_t salt)
{
	for (uint32_t r = 0; r < NRANKS; r++) {
		uint8_t *recv = ranks[r].recv;
		struct mmc_operation operation;

		memset(recv, 0xee, NRANKS * block_bytes);
		memset(recv + r * block_bytes, (int)(r + salt), block_bytes);
		operation = (struct mmc_operation){
			.kind = MMC_ALLGATHER,
			.block_bytes = block_bytes,
			.recv = recv,
		};
		CHECK_EQ(mmc_start(ranks[r].stream, &operation, 0,
				   &ranks[r].request),
			 MMC_EAGAIN);
		wake(&ranks[r]);
	}
}

static void finish(uint64_t block_bytes, uint8_t salt)
{
	for (uint32_t r = 0; r < NRANKS; r++) {
		CHECK_EQ(mmc_request_wait(ranks[r].request, 0), 0);
		for (uint64_t i = 0; i < NRANKS * block_bytes; i++)
			if (!CHECK_EQ(ranks[r].recv[i],
				      (uint8_t)(i / block_bytes + salt)))
				return;
		mmc_request_free(ranks[r].request);
		ranks[r].request = NULL;
	}
}

static uint64_t count(enum mmc_counter counter)
{
	struct mmc_counters counters;
	uint64_t sum = 0;

	for (uint32_t r = 0; r < NRANKS; r++) {
		mmc_stream_counters(ranks[r].stream, counters.value);
		sum += counters.value[counter];
	}
	return sum;
}

static void gather(uint64_t block_bytes, uint8_t salt)
{
	start(block_bytes, salt);
	live(MMC_NEVER_NS);
	finish(block_bytes, salt);
}

/* User memory is registered in each operation in which a neighbour asks for it. */
static void memory_of_the_user(void)
{
	uint64_t before;

	open_all();
	for (uint32_t r = 0; r < NRANKS; r++)
		ranks[r].recv = malloc(NRANKS * BLOCK_BYTES);
	gather(BLOCK_BYTES, 1);
	before = count(MMC_COUNT_REGISTRATIONS);
	CHECK(count(MMC_COUNT_READ_CHUNKS) > 0);
	for (uint8_t salt = 2; salt < 12; salt++) {
		gather(BLOCK_BYTES, salt);
		CHECK_EQ(count(MMC_COUNT_REGISTRATIONS), before + NRANKS);
		before += NRANKS;
	}
	CHECK_EQ(count(MMC_COUNT_READ_CHUNKS), count(MMC_COUNT_RX_LOST_CHUNKS));
	for (uint32_t r = 0; r < NRANKS; r++) {
		CHECK(ranks[r].endpoint->nregistered > 0);
		CHECK(ranks[r].endpoint->nregistered <= 2);
		free(ranks[r].recv);
	}
	close_all();
}

/* Engine memory is registered once, however much of it an operation uses. */
static void memory_of_the_engine(void)
{
	uint64_t before;

	open_all();
	for (uint32_t r = 0; r < NRANKS; r++) {
		void *memory = NULL;

		CHECK_EQ(mmc_memory_allocate(ranks[r].engine,
					     NRANKS * BLOCK_BYTES, &memory),
			 0);
		CHECK_EQ((uintptr_t)memory % 4096, 0);
		ranks[r].recv = memory;
	}
	gather(BLOCK_BYTES, 1);
	before = count(MMC_COUNT_REGISTRATIONS);
	CHECK_EQ(before, 3 * NRANKS);
	for (uint8_t salt = 2; salt < 12; salt++)
		gather(salt % 2 ? BLOCK_BYTES : BLOCK_BYTES / 3, salt);
	CHECK_EQ(count(MMC_COUNT_REGISTRATIONS), before);
	CHECK_EQ(count(MMC_COUNT_READ_CHUNKS), count(MMC_COUNT_RX_LOST_CHUNKS));
	mmc_memory_free(ranks[0].engine, ranks[0].recv);
	CHECK_EQ(ranks[0].endpoint->nregistered, 2);
	for (uint32_t r = 1; r < NRANKS; r++)
		mmc_memory_free(ranks[r].engine, ranks[r].recv);
	close_all();
}

/* A broken connection fails the operation on all ranks; the next stream is refused. */
static void a_broken_connection(void)
{
	const struct mmc_stream_options again = {
		.channel = UINT64_C(9) << 16,
		.timeout_ns = MMC_S_NS,
	};
	struct mmc_failure failure;
	struct mmc_stream *stream;

	open_all();
	for (uint32_t r = 0; r < NRANKS; r++)
		ranks[r].recv = malloc(NRANKS * BLOCK_BYTES * 10);
	start(BLOCK_BYTES * 10, 1);
	while (count(MMC_COUNT_READS) < 30)
		live(network.now_ns + 10 * MMC_US_NS);
	mmc_error_set("the cable is cut");
	ranks[0].dead = true;
	mmc_sim_endpoint_die(ranks[0].endpoint);
	live(network.now_ns + 2 * MMC_S_NS);
	for (uint32_t r = 1; r < NRANKS; r++) {
		CHECK_EQ(mmc_request_wait(ranks[r].request, 0), -MMC_ENOANSWER);
		mmc_request_failure(ranks[r].request, &failure);
		CHECK_EQ(failure.culprit, 0);
	}
	mmc_error_set("something else");
	mmc_stream_failure(ranks[1].stream, &failure);
	CHECK(strcmp(mmc_last_error(), "the cable is cut") == 0);
	mmc_error_set("something else");
	CHECK_EQ(mmc_stream_create(ranks[1].team, &again, &stream),
		 -MMC_ENOANSWER);
	CHECK(strcmp(mmc_last_error(), "the cable is cut") == 0);
	close_all();
	for (uint32_t r = 0; r < NRANKS; r++)
		free(ranks[r].recv);
}

/* After a cancel, others no longer read the memory, and it is not freed too early. */
static void given_up_in_the_middle(void)
{
	unsigned ncancelled = 0;

	for (unsigned i = 0; i < 60; i++) {
		open_all();
		for (uint32_t r = 0; r < NRANKS; r++) {
			void *memory;

			ranks[r].recv = malloc(NRANKS * BLOCK_BYTES);
			if (i % 2 == 0)
				continue;
			free(ranks[r].recv);
			CHECK_EQ(mmc_memory_allocate(ranks[r].engine,
						     NRANKS * BLOCK_BYTES,
						     &memory),
				 0);
			ranks[r].recv = memory;
		}
		start(BLOCK_BYTES, 1);
		live(network.now_ns + 3 * i * MMC_US_NS);
		mmc_request_cancel(ranks[1].request);
		wake(&ranks[1]);
		memset(ranks[1].recv, 0xd1, NRANKS * BLOCK_BYTES);
		if (i % 2 != 0)
			mmc_memory_free(ranks[1].engine, ranks[1].recv);
		live(network.now_ns + MMC_S_NS);
		for (uint32_t r = 0; r < NRANKS; r++) {
			int rv = mmc_request_wait(ranks[r].request, 0);

			CHECK(rv == -MMC_ECANCELED || rv == 0);
			ncancelled += rv != 0;
		}
		for (uint32_t r = 0; r < NRANKS; r++)
			if (i % 2 == 0)
				free(ranks[r].recv);
			else if (r != 1)
				mmc_memory_free(ranks[r].engine, ranks[r].recv);
		close_all();
	}
	CHECK(ncancelled > 100);
}

CHECK_MAIN(CHECK_TEST(memory_of_the_user), CHECK_TEST(memory_of_the_engine),
	   CHECK_TEST(a_broken_connection), CHECK_TEST(given_up_in_the_middle))
