/* SPDX-License-Identifier: BSD-3-Clause */
#include "firmware/nic.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/endpoint.h"
#include "support/bits.h"
#include "support/error.h"

/* Slots begin at multiples of this, so that headers can be read as words. */
#define ALIGN_BYTES 64

/* Room in front of a body for any header or control message. */
#define HEAD_BYTES 2048

void mmc_nic_ring_device(void)
{
	if (mmc_ring_must_ring(&mmc_nic.sends))
		mmc_machine_ring();
}

void mmc_nic_ring_host(void)
{
	mmc_ring_show(&mmc_nic.rings, 1);
	mmc_nic_ring_device();
}

bool mmc_nic_arm(void)
{
	struct mmc_offload_ring *events = &mmc_nic.queue[0].events;
	bool come;

	mmc_ring_arm(events);
	come = mmc_ring_count(events) != 0;
	for (uint32_t i = 1; i < mmc_nic.nqueues; i++) {
		struct mmc_offload_ring *told = &mmc_harts[i]->told;

		mmc_ring_arm(told);
		come |= mmc_ring_count(told) != 0 ||
			mmc_ring_see(&mmc_nic.queue[i].rung) != 0;
	}
	return come;
}

/* ---- questions ----------------------------------------------------------- */

int mmc_nic_ask(enum mmc_nic_question question, const void *body,
		uint32_t nbytes)
{
	struct mmc_nic_ask *asked = &mmc_nic.ask;

	asked->question = question;
	asked->body_offset = mmc_nic_offset(body);
	asked->body_bytes = nbytes;
	mmc_ring_show(&asked->nasked, asked->nasked + 1);
	mmc_nic_ring_device();
	while (mmc_ring_see(&asked->nanswered) != asked->nasked)
		;
	if (asked->status < 0)
		mmc_error_set("%.*s", (int)sizeof(asked->text) - 1,
			      asked->text);
	return asked->status;
}

static void nic_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	mmc_nic_ask(MMC_NIC_ADDRESS, address, endpoint->address_bytes);
}

static int nic_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses)
{
	const struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;

	return mmc_nic_ask(MMC_NIC_CONNECT, addresses,
			   adapter->nranks * endpoint->address_bytes);
}

static void nic_inquire(struct mmc_endpoint *endpoint, uint32_t peer)
{
	(void)endpoint;
	mmc_nic_ask(MMC_NIC_INQUIRE, &peer, sizeof(peer));
}

static uint64_t nic_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return mmc_machine_now_ns();
}

/* ---- sending ------------------------------------------------------------- */

void mmc_nic_flush(void)
{
	mmc_nic_ring_device();
	while (mmc_ring_room(&mmc_nic.sends, MMC_NIC_SENDS) < MMC_NIC_SENDS)
		;
}

/* Puts a datagram in the ring. What may change soon is copied behind its head. */
static void put(const struct mmc_adapter *adapter,
		const struct mmc_parcel *parcel)
{
	struct mmc_offload_ring *ring = &mmc_nic.sends;
	uint32_t entry = ring->nproduced % MMC_NIC_SENDS;
	uint8_t *head = adapter->heads + entry * adapter->head_bytes;
	bool stays = parcel->body_bytes > 0 && mmc_nic_is_hosts(parcel->body);

	memcpy(head, parcel->head, parcel->head_bytes);
	if (!stays)
		memcpy(head + parcel->head_bytes, parcel->body,
		       parcel->body_bytes);
	mmc_nic.send[entry] = (struct mmc_nic_send){
		.head_offset = mmc_nic_offset(head),
		.head_bytes = parcel->head_bytes,
		.body_offset = stays ? mmc_nic_offset(parcel->body) : 0,
		.body_bytes = parcel->body_bytes,
		.peer = parcel->peer,
		.subgroup = parcel->subgroup,
		.control = parcel->control,
	};
	mmc_ring_produce(ring);
}

static int nic_send(struct mmc_endpoint *endpoint,
		    const struct mmc_parcel *parcels, unsigned nparcels)
{
	const struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;

	for (unsigned i = 0; i < nparcels; i++) {
		if (parcels[i].head_bytes + (uint64_t)parcels[i].body_bytes >
		    adapter->head_bytes)
			return -MMC_EINVAL;
		while (mmc_ring_room(&mmc_nic.sends, MMC_NIC_SENDS) == 0)
			mmc_nic_ring_device();
		put(adapter, &parcels[i]);
	}
	mmc_nic_ring_device();
	return 0;
}

/* ---- opening and closing ------------------------------------------------- */

/* There is no descriptor to sleep on: the device interrupts the processor's sleep. */
static unsigned nic_fds(struct mmc_endpoint *endpoint, int *fds,
			unsigned *ncontrol)
{
	(void)endpoint;
	(void)fds;
	*ncontrol = 0;
	return 0;
}

/*
 * The device is closed with the machine: it serves one team. Until then it may fill slots,
 * and the harts look at them.
 */
static void nic_close(struct mmc_endpoint *endpoint)
{
	struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;

	mmc_nic_flush();
	free(adapter->heads);
	free(adapter->blocks);
	free(adapter);
}

#define COMMON                                                                 \
	.name = "nic", .now_ns = nic_now_ns, .address = nic_address,           \
	.connect = nic_connect, .poll = mmc_nic_poll, .send = nic_send,        \
	.inquire = nic_inquire, .fds = nic_fds, .close = nic_close

static const struct mmc_driver copying_driver = { COMMON };
static const struct mmc_driver placing_driver = { COMMON,
						  .place = mmc_nic_place };
/* Of a device that tells of chunks alone, with or without the help of other harts. */
static const struct mmc_driver telling_driver = {
	COMMON,
	.place = mmc_nic_place,
	.begin_placement = mmc_nic_begin,
	.end_placement = mmc_nic_end,
	.register_memory = mmc_nic_register,
	.deregister_memory = mmc_nic_deregister,
};

/*
 * Decides how many queues there are: one for each hart. The engine must see what it is to
 * compute a checksum of; and what processors copy, the first alone does, lest two of them
 * write to one place.
 */
static uint32_t count_queues(const struct mmc_team_options *options)
{
	uint32_t nqueues = mmc_min_u32(mmc_nic.nharts, options->subgroups);

	if (mmc_nic.mode == MMC_NIC_COPY ||
	    options->checksum == MMC_CHECKSUM_FULL)
		return 1;
	return mmc_min_u32(nqueues, MMC_NIC_HARTS_MAX);
}

/* Allocates another hart, and posts its slots. Returns NULL if there is no memory. */
static struct mmc_hart *make_hart(const struct mmc_adapter *adapter,
				  uint32_t number, enum mmc_checksum checksum)
{
	struct mmc_hart *hart = aligned_alloc(ALIGN_BYTES, sizeof(*hart));
	uint32_t nslots = mmc_nic_nslots();

	if (hart == NULL)
		return NULL;
	memset(hart, 0, sizeof(*hart));
	hart->nic = &mmc_nic;
	hart->queue = &mmc_nic.queue[number];
	hart->slots = adapter->slots;
	hart->number = number;
	hart->first_slot = number * nslots;
	hart->nslots = nslots;
	hart->nranks = adapter->nranks;
	hart->checksum = checksum;
	/* The hart posts them when it begins. */
	for (uint32_t i = 0; i < nslots; i++)
		mmc_hart_return_slot(hart, hart->first_slot + i);
	return hart;
}

/* Makes the harts, and has them begin. Returns whether there is memory for them. */
static bool begin_harts(struct mmc_adapter *adapter, enum mmc_checksum checksum)
{
	for (uint32_t i = 1; i < mmc_nic.nqueues; i++) {
		mmc_harts[i] = make_hart(adapter, i, checksum);
		if (mmc_harts[i] == NULL)
			return false;
		adapter->inlets[i] = (struct mmc_inlet){
			.hart = mmc_harts[i],
			.ring = &mmc_harts[i]->told,
			.events = mmc_harts[i]->telling,
		};
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 1; i < mmc_nic.nqueues; i++)
		mmc_machine_interrupt(i);
	return true;
}

/* Allocates the memory for datagrams, and posts all slots. Returns whether it is there. */
static bool allocate(struct mmc_adapter *adapter)
{
	uint64_t longest = (uint64_t)HEAD_BYTES + adapter->chunk_bytes;

	adapter->slot_bytes =
		(longest + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	adapter->head_bytes = adapter->slot_bytes;
	adapter->slots =
		aligned_alloc(ALIGN_BYTES, MMC_NIC_SLOTS * adapter->slot_bytes);
	adapter->heads =
		aligned_alloc(ALIGN_BYTES, MMC_NIC_SENDS * adapter->head_bytes);
	adapter->blocks = calloc(adapter->nranks, sizeof(struct mmc_nic_block));
	if (adapter->slots == NULL || adapter->heads == NULL ||
	    adapter->blocks == NULL)
		return false;
	mmc_nic.slots_offset = mmc_nic_offset(adapter->slots);
	mmc_nic.slot_bytes = adapter->slot_bytes;
	for (uint32_t i = 0; i < mmc_nic_nslots(); i++)
		mmc_nic_post(i);
	adapter->inlets[0] = (struct mmc_inlet){
		.ring = &mmc_nic.queue[0].events,
		.events = mmc_nic.queue[0].event,
	};
	return true;
}

/* Chooses the driver: the engine must see what it is to compute a checksum of. */
static const struct mmc_driver *choose(enum mmc_checksum checksum)
{
	if (mmc_nic.mode == MMC_NIC_COPY)
		return &copying_driver;
	if (mmc_nic.nqueues > 1)
		return &telling_driver;
	return mmc_nic.mode == MMC_NIC_UC && checksum != MMC_CHECKSUM_FULL
		       ? &telling_driver
		       : &placing_driver;
}

static void describe(struct mmc_endpoint *endpoint,
		     const struct mmc_team_options *options)
{
	const struct mmc_nic_endpoint *told = &mmc_nic.endpoint;

	endpoint->driver = choose((enum mmc_checksum)options->checksum);
	endpoint->places_by_itself = endpoint->driver == &telling_driver;
	endpoint->timeout_ns = options->timeout_ns;
	endpoint->address_bytes = told->address_bytes;
	endpoint->has_buffer_per_source = told->has_buffer_per_source != 0;
	endpoint->control_is_reliable = told->control_is_reliable != 0;
	endpoint->batch_datagrams =
		mmc_min_u32(told->batch_datagrams, MMC_BATCH_DATAGRAMS_MAX);
	endpoint->train_datagrams =
		mmc_min_u32(told->train_datagrams, MMC_BATCH_DATAGRAMS_MAX);
}

int mmc_nic_open(const struct mmc_team_options *options, uint32_t *buffer_bytes,
		 struct mmc_endpoint **endpoint)
{
	enum mmc_checksum checksum = (enum mmc_checksum)options->checksum;
	struct mmc_adapter *adapter = calloc(1, sizeof(*adapter));
	int rv;

	if (adapter == NULL)
		return -MMC_ENOMEM;
	adapter->nranks = options->nranks;
	adapter->chunk_bytes = options->chunk_bytes;
	mmc_nic.nqueues = count_queues(options);
	rv = mmc_nic_ask(MMC_NIC_OPEN, options, sizeof(*options));
	if (rv == 0 && !allocate(adapter))
		rv = -MMC_ENOMEM;
	if (rv == 0 && mmc_nic.endpoint.address_bytes > MMC_ADDRESS_BYTES_MAX)
		rv = -MMC_EIO;
	if (rv == 0 && !begin_harts(adapter, checksum))
		rv = -MMC_ENOMEM;
	if (rv != 0) {
		free(adapter->heads);
		free(adapter->blocks);
		free(adapter);
		return rv;
	}
	describe(&adapter->endpoint, options);
	*buffer_bytes = mmc_nic.endpoint.buffer_bytes;
	*endpoint = &adapter->endpoint;
	return 0;
}
