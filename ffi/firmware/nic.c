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
	mmc_ring_arm(&mmc_nic.events);
	return mmc_ring_count(&mmc_nic.events) != 0;
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

/* The device is closed with the machine: it serves one team. */
static void nic_close(struct mmc_endpoint *endpoint)
{
	struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;

	mmc_nic_flush();
	free(adapter->slots);
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
static const struct mmc_driver writing_driver = {
	COMMON,
	.place = mmc_nic_place,
	.begin_placement = mmc_nic_begin,
	.end_placement = mmc_nic_end,
	.register_memory = mmc_nic_register,
	.deregister_memory = mmc_nic_deregister,
};

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
	for (uint32_t i = 0; i < MMC_NIC_SLOTS; i++)
		mmc_nic_post(i);
	return true;
}

/* Chooses the driver. The engine must see what it is to compute a checksum of. */
static const struct mmc_driver *choose(enum mmc_checksum checksum)
{
	if (mmc_nic.mode == MMC_NIC_COPY)
		return &copying_driver;
	return mmc_nic.mode == MMC_NIC_DMA || checksum == MMC_CHECKSUM_FULL
		       ? &placing_driver
		       : &writing_driver;
}

static void describe(struct mmc_endpoint *endpoint, enum mmc_checksum checksum)
{
	const struct mmc_nic_endpoint *told = &mmc_nic.endpoint;

	endpoint->driver = choose(checksum);
	endpoint->places_by_itself = endpoint->driver == &writing_driver;
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
	struct mmc_adapter *adapter = calloc(1, sizeof(*adapter));
	int rv;

	if (adapter == NULL)
		return -MMC_ENOMEM;
	adapter->nranks = options->nranks;
	adapter->chunk_bytes = options->chunk_bytes;
	rv = mmc_nic_ask(MMC_NIC_OPEN, options, sizeof(*options));
	if (rv == 0 && !allocate(adapter))
		rv = -MMC_ENOMEM;
	if (rv == 0 && mmc_nic.endpoint.address_bytes > MMC_ADDRESS_BYTES_MAX)
		rv = -MMC_EIO;
	if (rv != 0) {
		free(adapter->slots);
		free(adapter->heads);
		free(adapter->blocks);
		free(adapter);
		return rv;
	}
	describe(&adapter->endpoint, (enum mmc_checksum)options->checksum);
	*buffer_bytes = mmc_nic.endpoint.buffer_bytes;
	*endpoint = &adapter->endpoint;
	return 0;
}
