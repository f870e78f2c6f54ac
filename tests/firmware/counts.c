/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts the instructions that a rank runs to receive a Bcast of another: all of them, from
 * mmc_start() to the end of the operation, with the entry barrier, reports and the release,
 * the driver's part, and polls that find nothing. What the adapters do (nic.h), and the
 * sender, is not counted. The emulator must count an instruction as a nanosecond, so that
 * the counter of instructions does count them.
 *
 * The parameters are the way of placing, an index in `ways`; how many completions a poll
 * finds at most, though more may be there; and how many events the driver keeps. With 1 and
 * MMC_EVENTS_MAX each completion comes alone while others follow at once. With 1 and 0 it is
 * followed by a whole round of the engine, as if none came for a while.
 *
 * A line says how many instructions a chunk has taken, all together, and how many chunks of
 * two operations the adapter has put in place.
 */
#include <stdio.h>

#include "engine/memory.h"
#include "engine/progress.h"
#include "firmware/machine.h"
#include "nic_driver.h"

#define NCHUNKS 1024
#define NBYTES ((uint64_t)NCHUNKS * NIC_CHUNK_BYTES)

/* What QEMU loads before the start. */
extern const uint64_t mmc_parameters[3];

static struct mmc_engine *engines[2];
static struct mmc_team *teams[2];
static struct mmc_stream *streams[2];
static uint8_t *data[2]; /* each rank's buffer of NBYTES */

/*
 * An emulator may count what runs between calls of these two functions, whose comments keep
 * the compiler from making one function of both.
 */
static __attribute__((noinline)) void count_begins(void)
{
	__asm__ volatile("# count_begins");
}

static __attribute__((noinline)) void count_ends(void)
{
	__asm__ volatile("# count_ends");
}

static uint64_t instructions(void)
{
	uint64_t count;

	__asm__ volatile("csrr %0, minstret" : "=r"(count) : : "memory");
	return count;
}

/* The ways in which payloads of rank 1 get to their places. */
static struct {
	enum nic_way way;
	bool by_dma;
} ways[] = {
	{ NIC_WRITES, false },
	{ NIC_PREDICTED, false },
	{ NIC_DATAGRAMS, true },
	{ NIC_DATAGRAMS, false },
};

static __attribute__((cold)) void open_rank(uint32_t rank,
					    struct mmc_driver *driver)
{
	static const uint8_t addresses[2] = { 0, 1 };
	struct nic *nic = &nics[rank];
	const struct mmc_team_options options = {
		.transport = MMC_TRANSPORT_VERBS,
		.rank = rank,
		.nranks = 2,
		.subgroups = 1,
		.chunk_bytes = NIC_CHUNK_BYTES,
		.checksum = MMC_CHECKSUM_HEADER,
		.zero_copy = driver->begin_placement != NULL,
		.channel = UINT64_C(99) << 32,
		.timeout_ns = 10 * MMC_S_NS,
	};
	const struct mmc_stream_options stream = {
		.channel = UINT64_C(7) << 16,
		.timeout_ns = 10 * MMC_S_NS,
	};
	struct mmc_memory *memory = mmc_memory_new(NBYTES);

	MMC_ASSERT(memory != NULL);
	nic->rank = rank;
	nic->endpoint.driver = driver;
	nic->endpoint.address_bytes = 1;
	nic->endpoint.read_bytes_max = driver->register_memory != NULL;
	nic->report_max = MMC_EVENTS_MAX;
	nic->next = nic->completions;
	nic->end = nic->completions + NIC_RING;
	nic->lap = 1;
	nic_end(&nic->endpoint, false);
	MMC_ASSERT(mmc_engine_create_stepped(&engines[rank]) == 0);
	MMC_ASSERT(mmc_team_create_on(engines[rank], &nic->endpoint, &options,
				      NBYTES, &teams[rank]) == 0);
	MMC_ASSERT(mmc_team_connect(teams[rank], addresses) == 0);
	MMC_ASSERT(mmc_stream_create(teams[rank], &stream, &streams[rank]) ==
		   0);
	mmc_engine_add_memory(engines[rank], memory);
	data[rank] = mmc_memory_bytes(memory);
}

static struct mmc_request *start(uint32_t rank)
{
	const struct mmc_operation bcast = {
		.kind = MMC_BCAST,
		.block_bytes = NBYTES,
		.recv = data[rank],
	};
	struct mmc_request *request;

	MMC_ASSERT(mmc_start(streams[rank], &bcast, 0, &request) == MMC_EAGAIN);
	return request;
}

/* Lets rank 0, the root, and the adapters do all that they can. */
static void let_others_work(void)
{
	mmc_engine_step(engines[0]);
	nic_work(&nics[0]);
	nic_work(&nics[1]);
}

/* Carries out one operation, and returns the instructions of rank 1. */
static __attribute__((cold)) uint64_t count_bcast(void)
{
	struct mmc_request *requests[2];
	uint64_t counted;
	uint64_t begin;

	for (uint64_t i = 0; i < NBYTES / 8; i++)
		((uint64_t *)data[0])[i] += i;
	requests[0] = start(0);
	count_begins();
	begin = instructions();
	requests[1] = start(1);
	counted = instructions() - begin;
	count_ends();
	while (!mmc_request_is_complete(requests[0]) ||
	       !mmc_request_is_complete(requests[1])) {
		let_others_work();
		count_begins();
		begin = instructions();
		mmc_engine_progress(engines[1]);
		begin = instructions() - begin;
		count_ends();
		counted += begin;
		nic_time_ns += begin;
	}
	MMC_ASSERT(memcmp(data[0], data[1], NBYTES) == 0);
	mmc_request_free(requests[0]);
	mmc_request_free(requests[1]);
	return counted;
}

static __attribute__((cold)) void print_counter(const char *name,
						enum mmc_counter counter)
{
	char line[64];

	snprintf(line, sizeof(line), ", %s %lu", name,
		 streams[1]->counters.value[counter]);
	mmc_machine_print(line);
}

int main(void)
{
	struct mmc_driver driver = nic_driver;
	struct mmc_driver sender = nic_driver;
	uint64_t way = mmc_parameters[0];
	char line[128];
	uint64_t count;

	if (ways[way].by_dma)
		driver.place = nic_place;
	if (ways[way].way != NIC_DATAGRAMS) {
		driver.begin_placement = nic_begin;
		driver.end_placement = nic_end;
		driver.register_memory = nic_register;
		driver.deregister_memory = nic_deregister;
	}
	nics[1].way = ways[way].way;
	nics[1].endpoint.places_by_itself = ways[way].way == NIC_WRITES;
	nics[1].endpoint.kept_events = (uint32_t)mmc_parameters[2];
	open_rank(0, &sender);
	open_rank(1, &driver);
	nics[1].report_max = (uint32_t)mmc_parameters[1];
	count_bcast(); /* allocates the memory that later operations use */
	count = count_bcast();
	snprintf(line, sizeof(line), "%lu a chunk, %lu in all",
		 (count + NCHUNKS - 1) / NCHUNKS, count);
	mmc_machine_print(line);
	print_counter("zero-copy", MMC_COUNT_ZERO_COPY_CHUNKS);
	print_counter("lost", MMC_COUNT_RX_LOST_CHUNKS);
	mmc_machine_print("\n");
	return 0;
}
