/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each hart of an adapter's processor, here a thread, takes in the chunks of its queue, while
 * the device and the first hart, which is the test, run at the same time. All chunks arrive,
 * in any order, repeated, and amid others; and once a buffer is deregistered, nobody but the
 * test touches its memory. A sanitizer for threads sees if that is not so.
 */
#include "asking.h"
#include "harts.h"
#include "support/prng.h"

#define NROUNDS 60 /* whose chunks all arrive, and as many others */

static struct mmc_prng prng;

/* ---- the first hart ------------------------------------------------------ */

static bool present[NCHUNKS];
static uint32_t npresent;
static uint32_t ncut;	 /* rounds that have ended before all had come */
static uint32_t npassed; /* slots that other harts have passed on */

static void note(uint32_t chunk)
{
	npresent += !present[chunk];
	present[chunk] = true;
}

static void note_run(const struct mmc_nic_event *told)
{
	CHECK_EQ(told->cookie, memory.buffer.cookie);
	CHECK(told->count > 0 && told->first < NCHUNKS &&
	      told->count <= NCHUNKS - told->first);
	CHECK_EQ(told->nbytes, bytes_of(told->first + told->count - 1));
	for (uint32_t i = 0; i < told->count; i++) {
		CHECK_EQ(told->source, (told->first + i) / BLOCK_CHUNKS);
		note(told->first + i);
	}
}

/* Reads what another hart tells. */
static void listen_to(struct mmc_hart *hart)
{
	while (mmc_ring_count(&hart->told) > 0) {
		const struct mmc_nic_event *told =
			&hart->telling[hart->told.nconsumed % MMC_HART_EVENTS];

		if (told->kind == MMC_NIC_ARRIVED) {
			note_run(told);
		} else {
			CHECK_EQ(told->kind, MMC_NIC_DATAGRAM);
			mmc_hart_return_slot(hart, told->slot);
			npassed++;
		}
		mmc_ring_consume(&hart->told);
	}
}

/* Copies a chunk of this hart's own queue, unless that is there. */
static void copy(const struct mmc_nic_event *told)
{
	const uint8_t *bytes = memory.slots[told->slot];
	struct mmc_header header = mmc_header_peek(bytes);
	uint32_t chunk = header.index;

	if (chunk >= NCHUNKS || header.epoch != memory.buffer.epoch ||
	    present[chunk])
		return;
	memcpy(memory.result[told->source] +
		       (size_t)(chunk % BLOCK_CHUNKS) * CHUNK_BYTES,
	       bytes + MMC_HEADER_BYTES, bytes_of(chunk));
	note(chunk);
}

/* Reads what the device tells the first hart. */
static void listen_to_device(void)
{
	struct mmc_nic_queue *queue = &memory.nic.queue[0];

	while (mmc_ring_count(&queue->events) > 0) {
		const struct mmc_nic_event *told =
			&queue->event[queue->events.nconsumed % MMC_NIC_EVENTS];

		if (told->kind == MMC_NIC_ARRIVED) {
			note_run(told);
		} else {
			CHECK_EQ(told->kind, MMC_NIC_DATAGRAM);
			copy(told);
			queue->slot[queue->slots.nproduced % MMC_NIC_SLOTS] =
				told->slot;
			mmc_ring_produce(&queue->slots);
			mmc_machine_ring();
		}
		mmc_ring_consume(&queue->events);
	}
}

static void progress(void)
{
	relay();
	listen_to_device();
	for (uint32_t i = 1; i < NHARTS; i++)
		listen_to(&harts[i]);
}

static void ask(enum mmc_nic_question question)
{
	struct mmc_nic_ask *asked = &memory.nic.ask;

	pose(&memory.nic, question, OFFSET(buffer), sizeof(memory.buffer));
	mmc_machine_ring();
	while (mmc_ring_see(&asked->nanswered) != asked->nasked)
		;
	CHECK_EQ(asked->status, 0);
}

/* ---- rounds -------------------------------------------------------------- */

/* Adds a datagram to those that are to arrive, of which there are `n`; returns how many then. */
static uint32_t add(uint32_t n, uint32_t epoch, uint32_t index)
{
	traffic[(nsent + n) % TRAFFIC] =
		(struct mmc_header){ CHANNEL, epoch, index };
	return n + 1;
}

/* Puts some of the datagrams elsewhere; others keep their order, so that there are runs. */
static void shuffle(uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t other = (uint32_t)mmc_prng_below(&prng, i);
		struct mmc_header *a = &traffic[(nsent + i - 1) % TRAFFIC];
		struct mmc_header *b = &traffic[(nsent + other) % TRAFFIC];
		struct mmc_header kept = *a;

		if (mmc_prng_below(&prng, 4) > 0)
			continue;
		*a = *b;
		*b = kept;
	}
}

/* Returns whether a hart, whichever, still has events in its ring. */
static bool has_events(const struct mmc_offload_ring *ring)
{
	return mmc_ring_see(&ring->nproduced) !=
	       __atomic_load_n(&ring->nconsumed, __ATOMIC_ACQUIRE);
}

/* Returns whether a hart still has something to take in. */
static bool is_busy(void)
{
	bool busy = false;

	for (uint32_t i = 0; i < NHARTS; i++)
		busy |= has_events(&memory.nic.queue[i].events) ||
			has_events(&harts[i].told);
	return busy;
}

/*
 * Sends each chunk that is missing, some of them twice, and between them chunks of another
 * operation, and repairs, which no hart may place.
 */
static void send_missing(uint32_t epoch)
{
	uint32_t n = 0;

	for (uint32_t chunk = 0; chunk < NCHUNKS; chunk++) {
		uint64_t dice = mmc_prng_below(&prng, 16);

		if (!present[chunk] || dice == 0)
			n = add(n, epoch, chunk);
		if (dice == 1)
			n = add(n, epoch, chunk);
		if (dice == 2)
			n = add(n, epoch + 1, chunk);
		if (dice == 3)
			n = add(n, epoch, chunk | MMC_INDEX_REPAIR);
	}
	shuffle(n);
	__atomic_store_n(&nsent, nsent + n, __ATOMIC_RELEASE);
	mmc_machine_ring();
}

static bool has_arrived(void)
{
	return __atomic_load_n(&narrived, __ATOMIC_ACQUIRE) == nsent;
}

/* Sends what is missing until nothing is. */
static void send_all(uint32_t epoch)
{
	while (npresent < NCHUNKS) {
		send_missing(epoch);
		while (!has_arrived() || is_busy())
			progress();
	}
}

/* Goes on until some of what is missing has come. Much is then on its way still. */
static void send_some(uint32_t epoch)
{
	uint64_t enough = mmc_prng_below(&prng, NCHUNKS);

	send_missing(epoch);
	while (npresent < enough && !has_arrived())
		progress();
}

static void begin(uint32_t epoch)
{
	static uint64_t words[NHARTS][NCHUNKS / 64 + 1];

	memory.buffer = (struct mmc_nic_buffer){
		.channel = CHANNEL,
		.cookie = 1000 + epoch,
		.blocks_offset = OFFSET(blocks),
		.epoch = epoch,
		.chunk_bytes = CHUNK_BYTES,
	};
	for (uint32_t i = 1; i < NHARTS; i++) {
		struct mmc_bitmap claimed;

		mmc_bitmap_init(&claimed, words[i], NCHUNKS);
		mmc_hart_register(&harts[i], &memory.buffer, memory.blocks,
				  &claimed);
	}
	if (memory.nic.mode == MMC_NIC_UC)
		ask(MMC_NIC_REGISTER);
	memset(present, 0, sizeof(present));
	npresent = 0;
}

/*
 * Ends the use of the buffer. What the device and the harts have told of it until then is
 * passed over.
 */
static void end(void)
{
	if (memory.nic.mode == MMC_NIC_UC)
		ask(MMC_NIC_DEREGISTER);
	for (uint32_t i = 1; i < NHARTS; i++)
		mmc_hart_deregister(&harts[i]);
	for (uint32_t i = 1; i < NHARTS; i++)
		while (!mmc_hart_has_let_go(&harts[i]))
			progress();
	progress();
	if (npresent < NCHUNKS)
		ncut++;
}

static void check_result(uint32_t epoch)
{
	for (uint32_t chunk = 0; chunk < NCHUNKS; chunk++) {
		const uint8_t *at =
			memory.result[chunk / BLOCK_CHUNKS] +
			(size_t)(chunk % BLOCK_CHUNKS) * CHUNK_BYTES;

		for (uint32_t i = 0; i < bytes_of(chunk); i++)
			CHECK_EQ(at[i], content_of(epoch, chunk));
	}
}

static void open_harts(enum mmc_nic_mode mode)
{
	memset(&memory, 0, sizeof(memory));
	memory.nic.mode = mode;
	memory.nic.nqueues = NHARTS;
	memory.nic.region_offset = OFFSET(result);
	memory.nic.region_bytes = sizeof(memory.result);
	memory.nic.slots_offset = OFFSET(slots);
	memory.nic.slot_bytes = SLOT_BYTES;
	for (uint32_t i = 0; i < NSLOTS; i++)
		memory.nic.queue[0].slot[i] = i;
	memory.nic.queue[0].slots.nproduced = NSLOTS;
	for (uint32_t r = 0; r < NRANKS; r++)
		memory.blocks[r] = (struct mmc_nic_block){
			.offset = OFFSET(result[r]),
			.nbytes = BLOCK_BYTES,
			.first = r * BLOCK_CHUNKS,
		};
	device = (struct device){
		.nic = &memory.nic,
		.memory = memory.program,
		.memory_bytes = sizeof(memory),
		.endpoint = &endpoint,
		.nranks = NRANKS,
		.nsubgroups = NHARTS,
		.checksum = MMC_CHECKSUM_HEADER,
	};
	sem_init(&device_bell, 0, 0);
	for (uint32_t i = 1; i < NHARTS; i++) {
		sem_init(&bells[i], 0, 0);
		memset(&harts[i], 0, sizeof(harts[i]));
		harts[i].nic = &memory.nic;
		harts[i].queue = &memory.nic.queue[i];
		harts[i].slots = memory.slots[0];
		harts[i].number = i;
		harts[i].first_slot = i * NSLOTS;
		harts[i].nslots = NSLOTS;
		harts[i].nranks = NRANKS;
		harts[i].checksum = MMC_CHECKSUM_HEADER;
		for (uint32_t slot = 0; slot < NSLOTS; slot++)
			mmc_hart_return_slot(&harts[i], i * NSLOTS + slot);
	}
}

static void run_rounds(enum mmc_nic_mode mode)
{
	pthread_t threads[NHARTS];

	open_harts(mode);
	ending = false;
	npassed = ncut = 0;
	CHECK_EQ(pthread_create(&threads[0], NULL, run_device, NULL), 0);
	for (uint32_t i = 1; i < NHARTS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, run_hart, &harts[i]),
			 0);
	for (uint32_t epoch = 2; epoch < 2 + 2 * NROUNDS; epoch++) {
		begin(epoch);
		if (epoch % 2 == 0)
			send_some(epoch);
		else
			send_all(epoch);
		end();
		if (npresent == NCHUNKS)
			check_result(epoch);
		/* Now the memory is its owner's. */
		memset(memory.result, 0, sizeof(memory.result));
	}
	__atomic_store_n(&ending, true, __ATOMIC_RELEASE);
	mmc_machine_ring();
	for (uint32_t i = 1; i < NHARTS; i++)
		mmc_machine_interrupt(i);
	for (uint32_t i = 0; i < NHARTS; i++)
		pthread_join(threads[i], NULL);
	CHECK(npassed > 0 && ncut > 0);
	CHECK(device.nreceived[1] > 0 && device.nreceived[2] > 0);
	buffer_deregister(&device.buffer);
}

/* The harts have the device place what has arrived in slots. */
static void chunks_are_placed(void)
{
	run_rounds(MMC_NIC_DMA);
	CHECK(device.nplaced > 0);
	CHECK_EQ(device.nwritten, 0);
}

/* The device writes what arrives, and the harts count it. */
static void chunks_are_written(void)
{
	run_rounds(MMC_NIC_UC);
	CHECK(device.nwritten > 0);
}

CHECK_MAIN(CHECK_TEST(chunks_are_placed), CHECK_TEST(chunks_are_written))
