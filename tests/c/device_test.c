/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of an emulated adapter writes what carries the tag of the registered buffer,
 * and nothing else, to its place; it leaves all else to the firmware.
 */
#include "../firmware/adapter/device.h"

#include "asking.h"
#include "check.h"
#include "core/wire/header.h"
#include "offload/ring.h"

#define NRANKS 3
#define CHUNK_BYTES 64
#define BLOCK_CHUNKS 3
#define BLOCK_BYTES (BLOCK_CHUNKS * CHUNK_BYTES)
#define NSLOTS 4
#define SLOT_BYTES 256
#define CHANNEL (UINT64_C(77) << 16)
#define EPOCH 5
#define COOKIE 99
#define UNTOUCHED 7

/* All of an adapter's memory. */
static struct memory {
	uint8_t program[64];
	struct mmc_nic nic;
	struct mmc_nic_buffer buffer;
	struct mmc_nic_block blocks[NRANKS];
	uint8_t slots[NSLOTS][SLOT_BYTES];
	uint8_t before[CHUNK_BYTES]; /* the host's */
	uint8_t result[NRANKS][BLOCK_BYTES];
	uint8_t after[CHUNK_BYTES];
} memory;

#define OFFSET(field) ((uint64_t)((uint8_t *)&memory.field - memory.program))

static struct device device;

/* The next poll returns this datagram, or none if `nbytes` is 0. */
static struct mmc_event arrival;
static uint8_t datagram[SLOT_BYTES];

static int poll_arrival(struct mmc_endpoint *endpoint, struct mmc_event *events,
			unsigned nmax)
{
	(void)endpoint;
	if (arrival.nbytes == 0 || nmax == 0)
		return 0;
	events[0] = arrival;
	arrival.nbytes = 0;
	return 1;
}

static void close_nothing(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
}

static const struct mmc_driver driver = {
	.name = "test",
	.poll = poll_arrival,
	.close = close_nothing,
};

static struct mmc_endpoint endpoint = { .driver = &driver };

static void open_device(enum mmc_nic_mode mode)
{
	memory = (struct memory){
		.nic = {
			.mode = mode,
			.region_offset = OFFSET(result),
			.region_bytes = sizeof(memory.result),
			.slots_offset = OFFSET(slots),
			.slot_bytes = SLOT_BYTES,
			.nqueues = 1,
			.queue[0].slots.nproduced = NSLOTS,
			.queue[0].slot = { 0, 1, 2, 3 },
		},
		.buffer = {
			.channel = CHANNEL,
			.cookie = COOKIE,
			.blocks_offset = OFFSET(blocks),
			.epoch = EPOCH,
			.chunk_bytes = CHUNK_BYTES,
		},
	};
	for (uint32_t r = 1; r < NRANKS; r++)
		memory.blocks[r] = (struct mmc_nic_block){
			.offset = OFFSET(result[r]),
			.nbytes = BLOCK_BYTES,
			.first = r * BLOCK_CHUNKS,
		};
	memset(memory.before, UNTOUCHED,
	       sizeof(memory) - offsetof(struct memory, before));
	device = (struct device){
		.nic = &memory.nic,
		.memory = memory.program,
		.memory_bytes = sizeof(memory),
		.endpoint = &endpoint,
		.nranks = NRANKS,
		.nsubgroups = 1,
		.checksum = MMC_CHECKSUM_HEADER,
	};
}

/* Asks the device, and returns its answer. */
static int ask(enum mmc_nic_question question)
{
	struct mmc_nic_ask *asked = &memory.nic.ask;

	pose(&memory.nic, question, OFFSET(buffer), sizeof(memory.buffer));
	CHECK(device_progress(&device));
	CHECK_EQ(asked->nanswered, asked->nasked);
	return asked->status;
}

/* Has a datagram of `source` arrive. Returns what the device tells of it. */
static struct mmc_nic_event receive(uint32_t source,
				    const struct mmc_header *header,
				    uint32_t payload_bytes, uint8_t fill)
{
	struct mmc_offload_ring *ring = &memory.nic.queue[0].events;
	const struct mmc_nic_event *told =
		&memory.nic.queue[0].event[ring->nconsumed % MMC_NIC_EVENTS];

	arrival = (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.bytes = datagram,
		.nbytes = MMC_HEADER_BYTES + payload_bytes,
		.source = source,
	};
	mmc_header_encode(datagram, header, arrival.nbytes,
			  MMC_CHECKSUM_HEADER);
	memset(datagram + MMC_HEADER_BYTES, fill, payload_bytes);
	CHECK(device_progress(&device));
	CHECK_EQ(mmc_ring_count(ring), 1);
	mmc_ring_consume(ring);
	return *told;
}

static struct mmc_header header_of(uint32_t index)
{
	return (struct mmc_header){
		.channel = CHANNEL,
		.epoch = EPOCH,
		.index = index,
	};
}

/* Checks that nothing of the host's memory but `nbytes` at `place` has been written. */
static void check_untouched(const uint8_t *place, size_t nbytes)
{
	const uint8_t *end = (const uint8_t *)(&memory + 1);

	for (const uint8_t *at = memory.before; at < end; at++)
		CHECK(*at == UNTOUCHED || (at >= place && at < place + nbytes));
}

/* Checks that a datagram comes to a slot, as it is, and that it is written nowhere else. */
static void check_left(uint32_t source, struct mmc_header header,
		       uint32_t payload_bytes)
{
	struct mmc_nic_event told = receive(source, &header, payload_bytes, 1);

	CHECK_EQ(told.kind, MMC_NIC_DATAGRAM);
	CHECK_EQ(told.source, source);
	CHECK_EQ(told.nbytes, MMC_HEADER_BYTES + payload_bytes);
	CHECK(memcmp(memory.slots[told.slot], datagram, told.nbytes) == 0);
	check_untouched(NULL, 0);
	memory.nic.queue[0]
		.slot[memory.nic.queue[0].slots.nproduced % MMC_NIC_SLOTS] =
		told.slot;
	mmc_ring_produce(&memory.nic.queue[0].slots);
}

static void tagged_payloads_are_written(void)
{
	const uint32_t chunk = BLOCK_CHUNKS + 1;
	struct mmc_header header = header_of(chunk);
	struct mmc_nic_event told;

	open_device(MMC_NIC_UC);
	CHECK_EQ(ask(MMC_NIC_REGISTER), 0);
	told = receive(1, &header, CHUNK_BYTES, 3);
	CHECK_EQ(told.kind, MMC_NIC_ARRIVED);
	CHECK_EQ(told.first, chunk);
	CHECK_EQ(told.nbytes, CHUNK_BYTES);
	CHECK_EQ(told.source, 1);
	CHECK_EQ(told.cookie, COOKIE);
	for (uint32_t i = 0; i < CHUNK_BYTES; i++)
		CHECK_EQ(memory.result[1][CHUNK_BYTES + i], 3);
	check_untouched(memory.result[1] + CHUNK_BYTES, CHUNK_BYTES);
	CHECK_EQ(mmc_ring_count(&memory.nic.queue[0].slots), NSLOTS);
	device_close(&device);
}

/* Whatever arrives that is not a whole chunk of its sender's block goes to a slot. */
static void others_go_to_slots(void)
{
	struct mmc_header header = header_of(BLOCK_CHUNKS);

	open_device(MMC_NIC_UC);
	check_left(1, header, CHUNK_BYTES);
	CHECK_EQ(ask(MMC_NIC_REGISTER), 0);
	check_left(1, header, CHUNK_BYTES - 1);
	check_left(1, header, CHUNK_BYTES + 1);
	check_left(1, header, 0);
	check_left(0, header, CHUNK_BYTES);
	check_left(2, header, CHUNK_BYTES);
	check_left(NRANKS, header, CHUNK_BYTES);
	check_left(MMC_PEER_UNKNOWN, header, CHUNK_BYTES);
	check_left(0, header_of(0), CHUNK_BYTES);
	check_left(1, header_of(0), CHUNK_BYTES);
	check_left(1, header_of(2 * BLOCK_CHUNKS), CHUNK_BYTES);
	check_left(2, header_of(3 * BLOCK_CHUNKS), CHUNK_BYTES);
	check_left(2, header_of(MMC_INDEX_MASK), CHUNK_BYTES);
	check_left(1, header_of(BLOCK_CHUNKS | MMC_INDEX_REPAIR), CHUNK_BYTES);
	check_left(1, header_of(BLOCK_CHUNKS | MMC_INDEX_CONTROL), CHUNK_BYTES);
	header.epoch++;
	check_left(1, header, CHUNK_BYTES);
	header = header_of(BLOCK_CHUNKS);
	header.channel <<= 1;
	check_left(1, header, CHUNK_BYTES);
	device_close(&device);
}

/* A header that was damaged on its way names no place. */
static void damaged_headers_go_to_slots(void)
{
	struct mmc_header header = header_of(BLOCK_CHUNKS);
	struct mmc_nic_event told;

	open_device(MMC_NIC_UC);
	CHECK_EQ(ask(MMC_NIC_REGISTER), 0);
	arrival = (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.bytes = datagram,
		.nbytes = MMC_HEADER_BYTES + CHUNK_BYTES,
		.source = 1,
	};
	mmc_header_encode(datagram, &header, arrival.nbytes,
			  MMC_CHECKSUM_HEADER);
	datagram[15] ^= 1; /* now the next chunk, but for the checksum */
	CHECK(device_progress(&device));
	told = memory.nic.queue[0].event[0];
	CHECK_EQ(told.kind, MMC_NIC_DATAGRAM);
	check_untouched(NULL, 0);
	device_close(&device);
}

/* Once the firmware has been answered, nothing is written any more. */
static void nothing_is_written_after_the_end(void)
{
	struct mmc_header header = header_of(BLOCK_CHUNKS);

	open_device(MMC_NIC_UC);
	CHECK_EQ(ask(MMC_NIC_REGISTER), 0);
	CHECK_EQ(ask(MMC_NIC_DEREGISTER), 0);
	check_left(1, header, CHUNK_BYTES);
	CHECK_EQ(ask(MMC_NIC_REGISTER), 0);
	CHECK_EQ(receive(1, &header, CHUNK_BYTES, 3).kind, MMC_NIC_ARRIVED);
	device_close(&device);
}

/* The firmware cannot have the device write outside of the host's memory. */
static void only_the_hosts_memory_is_registered(void)
{
	struct mmc_nic_block *last = &memory.blocks[NRANKS - 1];

	open_device(MMC_NIC_UC);
	last->nbytes++;
	CHECK_EQ(ask(MMC_NIC_REGISTER), -MMC_EINVAL);
	last->nbytes = UINT64_MAX;
	CHECK_EQ(ask(MMC_NIC_REGISTER), -MMC_EINVAL);
	open_device(MMC_NIC_UC);
	last->offset = OFFSET(before);
	CHECK_EQ(ask(MMC_NIC_REGISTER), -MMC_EINVAL);
	open_device(MMC_NIC_UC);
	memory.buffer.blocks_offset = sizeof(memory) - 1;
	CHECK_EQ(ask(MMC_NIC_REGISTER), -MMC_EINVAL);
	CHECK_EQ(ask(MMC_NIC_DEREGISTER), 0);
}

/* What the firmware changes after it has registered a buffer has no effect. */
static void the_device_keeps_a_copy(void)
{
	struct mmc_header header = header_of(BLOCK_CHUNKS);

	open_device(MMC_NIC_UC);
	CHECK_EQ(ask(MMC_NIC_REGISTER), 0);
	CHECK_EQ(ask(MMC_NIC_REGISTER), -MMC_EINVAL);
	memory.blocks[1].offset = OFFSET(before);
	memory.buffer.epoch++;
	CHECK_EQ(receive(1, &header, CHUNK_BYTES, 3).kind, MMC_NIC_ARRIVED);
	CHECK_EQ(memory.result[1][0], 3);
	check_untouched(memory.result[1], CHUNK_BYTES);
	device_close(&device);
}

/* In other modes, and where the engine is to check payloads, no buffer is registered. */
static void some_devices_register_nothing(void)
{
	open_device(MMC_NIC_DMA);
	CHECK_EQ(ask(MMC_NIC_REGISTER), -MMC_EINVAL);
	open_device(MMC_NIC_UC);
	device.checksum = MMC_CHECKSUM_FULL;
	CHECK_EQ(ask(MMC_NIC_REGISTER), -MMC_EINVAL);
}

CHECK_MAIN(CHECK_TEST(tagged_payloads_are_written),
	   CHECK_TEST(others_go_to_slots),
	   CHECK_TEST(damaged_headers_go_to_slots),
	   CHECK_TEST(nothing_is_written_after_the_end),
	   CHECK_TEST(only_the_hosts_memory_is_registered),
	   CHECK_TEST(the_device_keeps_a_copy),
	   CHECK_TEST(some_devices_register_nothing))
