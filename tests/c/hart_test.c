/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Step by step: what a hart does with the events of its queue, and what it tells the first
 * hart. See hart_threads_test.c for what they do at the same time.
 */
#include "firmware/hart.h"

#include "check.h"
#include "firmware/machine.h"
#include "offload/ring.h"

#define NRANKS 2
#define CHUNK_BYTES 64
#define BLOCK_CHUNKS 2000
#define TAIL_BYTES 10
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define PLACE 4096 /* where the block of rank 1 belongs */
#define FIRST_SLOT 100
#define NSLOTS 50
#define SLOT_BYTES 128
#define CHANNEL (UINT64_C(77) << 16)

static struct mmc_nic nic;
static struct mmc_nic_queue *const queue = &nic.queue[1];
static struct mmc_hart hart;
static uint8_t slots[MMC_NIC_SLOTS][SLOT_BYTES];
static struct mmc_nic_block blocks[NRANKS];
static uint64_t words[NCHUNKS / 64 + 1];
static struct mmc_nic_buffer buffer;
static unsigned nwoken; /* interrupts of the hart */

void mmc_machine_ring(void)
{
}

void mmc_machine_interrupt(uint32_t number)
{
	nwoken += number == 1;
}

static void open_hart(void)
{
	memset(&nic, 0, sizeof(nic));
	memset(&hart, 0, sizeof(hart));
	nic.slot_bytes = SLOT_BYTES;
	nic.slots_offset = 1 << 20;
	hart.nic = &nic;
	hart.queue = queue;
	hart.slots = slots[0];
	hart.number = 1;
	hart.first_slot = FIRST_SLOT;
	hart.nslots = NSLOTS;
	hart.nranks = NRANKS;
	hart.checksum = MMC_CHECKSUM_HEADER;
	blocks[1] = (struct mmc_nic_block){
		.offset = PLACE,
		.nbytes = (BLOCK_CHUNKS - 1) * CHUNK_BYTES + TAIL_BYTES,
		.first = BLOCK_CHUNKS,
	};
	nwoken = 0;
}

static void begin(uint64_t cookie)
{
	struct mmc_bitmap claimed;

	buffer = (struct mmc_nic_buffer){
		.channel = CHANNEL,
		.cookie = cookie,
		.epoch = 5,
		.chunk_bytes = CHUNK_BYTES,
	};
	mmc_bitmap_init(&claimed, words, NCHUNKS);
	mmc_hart_register(&hart, &buffer, blocks, &claimed);
}

static void put(struct mmc_nic_event event)
{
	queue->event[queue->events.nproduced % MMC_NIC_EVENTS] = event;
	mmc_ring_produce(&queue->events);
}

/* Returns how long the payload of rank 1's chunk number `number` is. */
static uint32_t bytes_of(uint32_t number)
{
	return number == BLOCK_CHUNKS - 1 ? TAIL_BYTES : CHUNK_BYTES;
}

/* Has a chunk of rank 1 arrive in a slot, with other bits in its index. */
static void put_chunk(uint32_t slot, uint32_t number, uint32_t bits)
{
	const struct mmc_header header = {
		.channel = CHANNEL,
		.epoch = 5,
		.index = (BLOCK_CHUNKS + number) | bits,
	};
	uint32_t nbytes = MMC_HEADER_BYTES + bytes_of(number);

	mmc_header_encode(slots[slot], &header, nbytes, MMC_CHECKSUM_HEADER);
	put((struct mmc_nic_event){
		.kind = MMC_NIC_DATAGRAM,
		.slot = slot,
		.nbytes = nbytes,
		.source = 1,
	});
}

/* Tells that the device has written a chunk of rank 1 in the buffer with this cookie. */
static void put_arrival(uint32_t number, uint64_t cookie)
{
	put((struct mmc_nic_event){
		.kind = MMC_NIC_ARRIVED,
		.nbytes = bytes_of(number),
		.source = 1,
		.cookie = cookie,
		.first = BLOCK_CHUNKS + number,
		.count = 1,
	});
}

/* Carries out the placements that the hart has asked for. Returns their number. */
static uint32_t carry_out(void)
{
	struct mmc_offload_ring *ring = &queue->placements;
	uint32_t n = mmc_ring_count(ring);

	for (uint32_t i = 0; i < n; i++) {
		const struct mmc_nic_placement *at =
			&queue->placement[ring->nconsumed % MMC_NIC_PLACEMENTS];

		put((struct mmc_nic_event){
			.kind = MMC_NIC_PLACED,
			.slot = (uint32_t)((at->from_offset -
					    nic.slots_offset) /
					   SLOT_BYTES),
			.cookie = at->cookie,
		});
		mmc_ring_consume(ring);
	}
	return n;
}

/* Checks that the next that the hart tells is a run of rank 1's chunks. */
static void check_told(uint32_t number, uint32_t count)
{
	const struct mmc_nic_event *told =
		&hart.telling[hart.told.nconsumed % MMC_HART_EVENTS];

	if (!CHECK(mmc_ring_count(&hart.told) > 0))
		return;
	CHECK_EQ(told->kind, MMC_NIC_ARRIVED);
	CHECK_EQ(told->source, 1);
	CHECK_EQ(told->first, BLOCK_CHUNKS + number);
	CHECK_EQ(told->count, count);
	CHECK_EQ(told->nbytes, bytes_of(number + count - 1));
	CHECK_EQ(told->cookie, buffer.cookie);
	mmc_ring_consume(&hart.told);
}

/* Checks that the next that the hart tells is a datagram in this slot. */
static void check_passed_on(uint32_t slot)
{
	const struct mmc_nic_event *told =
		&hart.telling[hart.told.nconsumed % MMC_HART_EVENTS];

	if (!CHECK(mmc_ring_count(&hart.told) > 0))
		return;
	CHECK_EQ(told->kind, MMC_NIC_DATAGRAM);
	CHECK_EQ(told->slot, slot);
	mmc_ring_consume(&hart.told);
}

static void check_silent(void)
{
	CHECK_EQ(mmc_ring_count(&hart.told), 0);
}

/* Chunks are told of once they are in their places, in runs; their slots are posted again. */
static void chunks_are_placed_and_told(void)
{
	const struct mmc_nic_placement *first = &queue->placement[0];

	open_hart();
	begin(1);
	for (uint32_t i = 0; i < 3; i++)
		put_chunk(FIRST_SLOT + i, 7 + i, 0);
	put_chunk(FIRST_SLOT + 3, 20, 0);
	CHECK(mmc_hart_step(&hart));
	check_silent();
	CHECK_EQ(first->from_offset,
		 nic.slots_offset + FIRST_SLOT * SLOT_BYTES + MMC_HEADER_BYTES);
	CHECK_EQ(first->to_offset, PLACE + 7 * CHUNK_BYTES);
	CHECK_EQ(first->nbytes, CHUNK_BYTES);
	CHECK_EQ(carry_out(), 4);
	CHECK(mmc_hart_step(&hart));
	check_told(7, 3);
	check_told(20, 1);
	check_silent();
	CHECK_EQ(mmc_ring_count(&queue->slots), 4);
	CHECK_EQ(queue->slot[3], FIRST_SLOT + 3);
	CHECK(!mmc_hart_step(&hart));
}

/* A short chunk ends its run, since all chunks of a run but the last are full. */
static void a_short_chunk_ends_a_run(void)
{
	open_hart();
	begin(1);
	put_arrival(BLOCK_CHUNKS - 2, 1);
	put_arrival(BLOCK_CHUNKS - 1, 1);
	put((struct mmc_nic_event){
		.kind = MMC_NIC_ARRIVED,
		.nbytes = CHUNK_BYTES,
		.source = 1,
		.cookie = 1,
		.first = 2 * BLOCK_CHUNKS,
		.count = 1,
	});
	mmc_hart_step(&hart);
	check_told(BLOCK_CHUNKS - 2, 2);
	CHECK_EQ(mmc_ring_count(&hart.told), 1);
}

/* A repair, a repeated chunk, and what comes while there is no buffer are for the engine. */
static void others_are_passed_on(void)
{
	open_hart();
	put_chunk(FIRST_SLOT, 7, 0);
	mmc_hart_step(&hart);
	check_passed_on(FIRST_SLOT);
	begin(1);
	put_chunk(FIRST_SLOT + 1, 7, 0);
	put_chunk(FIRST_SLOT + 2, 7, 0);
	put_chunk(FIRST_SLOT + 3, 8, MMC_INDEX_REPAIR);
	mmc_hart_step(&hart);
	check_passed_on(FIRST_SLOT + 2);
	check_passed_on(FIRST_SLOT + 3);
	check_silent();
	CHECK_EQ(carry_out(), 1);
	mmc_hart_return_slot(&hart, FIRST_SLOT + 2);
	mmc_hart_step(&hart);
	CHECK_EQ(queue->slot[0], FIRST_SLOT + 2);
	CHECK_EQ(queue->slot[1], FIRST_SLOT + 1);
}

/* A device that is out of order cannot have a hart take in the slot of another. */
static void senseless_events_are_passed_over(void)
{
	open_hart();
	begin(1);
	put_chunk(FIRST_SLOT - 1, 7, 0);
	put_chunk(FIRST_SLOT + NSLOTS, 7, 0);
	put((struct mmc_nic_event){ .kind = MMC_NIC_DATAGRAM,
				    .slot = FIRST_SLOT,
				    .nbytes = SLOT_BYTES + 1 });
	put((struct mmc_nic_event){ .kind = MMC_NIC_PLACED,
				    .slot = FIRST_SLOT });
	put((struct mmc_nic_event){ .kind = 99 });
	mmc_hart_step(&hart);
	check_silent();
	CHECK_EQ(mmc_ring_count(&queue->placements), 0);
	CHECK_EQ(mmc_ring_count(&queue->slots), 0);
}

/* A hart has let go of a buffer only when nothing is placed there for it any more. */
static void placements_end_before_the_buffer(void)
{
	open_hart();
	CHECK(mmc_hart_has_let_go(&hart));
	begin(1);
	put_chunk(FIRST_SLOT, 7, 0);
	mmc_hart_step(&hart);
	mmc_hart_deregister(&hart);
	CHECK(!mmc_hart_has_let_go(&hart));
	mmc_hart_step(&hart);
	CHECK(!mmc_hart_has_let_go(&hart));
	put_chunk(FIRST_SLOT + 1, 8, 0);
	mmc_hart_step(&hart);
	check_passed_on(FIRST_SLOT + 1);
	CHECK_EQ(carry_out(), 1);
	mmc_hart_step(&hart);
	CHECK(mmc_hart_has_let_go(&hart));
	check_silent();
	CHECK_EQ(mmc_ring_count(&queue->slots), 1);
}

/* What the device has told of one buffer does not count for the next. */
static void earlier_arrivals_are_passed_over(void)
{
	open_hart();
	begin(1);
	put_arrival(7, 1);
	mmc_hart_step(&hart);
	check_told(7, 1);
	mmc_hart_deregister(&hart);
	put_arrival(8, 1);
	mmc_hart_step(&hart);
	CHECK(mmc_hart_has_let_go(&hart));
	begin(2);
	put_arrival(9, 1);
	put_arrival(10, 2);
	mmc_hart_step(&hart);
	check_told(10, 1);
	check_silent();
}

/* Without room for runs, arrivals wait; but slots can be passed on at any time. */
static void there_is_room_for_all_slots(void)
{
	uint32_t ntold;

	open_hart();
	begin(1);
	for (uint32_t i = 0; i < BLOCK_CHUNKS - 1; i += 2)
		put_arrival(i, 1);
	mmc_hart_step(&hart);
	for (uint32_t i = 1; i < BLOCK_CHUNKS - 1; i += 2)
		put_arrival(i, 1);
	mmc_hart_step(&hart);
	ntold = mmc_ring_count(&hart.told);
	CHECK(MMC_HART_EVENTS - ntold >= MMC_NIC_SLOTS / 2);
	CHECK(!mmc_hart_step(&hart));
	CHECK(mmc_hart_arm(&hart));
	mmc_hart_deregister(&hart);
	for (uint32_t i = 0; i < NSLOTS; i++)
		put_chunk(FIRST_SLOT + i, i, 0);
	mmc_hart_step(&hart);
	CHECK(mmc_hart_has_let_go(&hart));
	CHECK_EQ(mmc_ring_count(&hart.told), ntold + NSLOTS);
}

/* Whatever the first hart wants of another one wakes that, if it sleeps. */
static void a_sleeping_hart_is_woken(void)
{
	open_hart();
	CHECK(!mmc_hart_arm(&hart));
	mmc_hart_return_slot(&hart, FIRST_SLOT);
	CHECK_EQ(nwoken, 1);
	mmc_hart_return_slot(&hart, FIRST_SLOT + 1);
	CHECK_EQ(nwoken, 1);
	CHECK(mmc_hart_arm(&hart));
	mmc_hart_step(&hart);
	begin(1);
	mmc_hart_step(&hart);
	CHECK(!mmc_hart_arm(&hart));
	mmc_hart_deregister(&hart);
	CHECK_EQ(nwoken, 2);
	CHECK(mmc_hart_arm(&hart));
}

CHECK_MAIN(CHECK_TEST(chunks_are_placed_and_told),
	   CHECK_TEST(a_short_chunk_ends_a_run),
	   CHECK_TEST(others_are_passed_on),
	   CHECK_TEST(senseless_events_are_passed_over),
	   CHECK_TEST(placements_end_before_the_buffer),
	   CHECK_TEST(earlier_arrivals_are_passed_over),
	   CHECK_TEST(there_is_room_for_all_slots),
	   CHECK_TEST(a_sleeping_hart_is_woken))
