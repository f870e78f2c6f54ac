/* SPDX-License-Identifier: BSD-3-Clause */
#include "firmware/nic.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/machine.h"
#include "offload/ring.h"
#include "support/bits.h"
#include "support/error.h"

/* Slots begin at multiples of this, so that headers can be read as words. */
#define ALIGN_BYTES 64

/* Room in front of a body for any header or control message. */
#define HEAD_BYTES 2048

struct adapter {
	struct mmc_endpoint endpoint;
	uint32_t nranks;
	uint8_t *slots;	     /* [MMC_NIC_SLOTS][slot_bytes] */
	uint64_t slot_bytes; /* of the longest datagram, rounded up */
	uint8_t *heads;	     /* [MMC_NIC_SENDS][head_bytes] */
	uint64_t head_bytes;
	/* Of each slot: the engine's hold on it, and the placements from it. */
	uint16_t nholds[MMC_NIC_SLOTS];
	uint32_t handed
		[MMC_NIC_SLOTS]; /* the slots of the latest poll's events */
	uint32_t nhanded;
};

void *mmc_nic_memory(uint64_t offset)
{
	return (void *)(MMC_MACHINE_MEMORY + offset);
}

static uint64_t offset_of(const void *memory)
{
	return (uint64_t)memory - MMC_MACHINE_MEMORY;
}

/* Returns whether memory is the host's: it does not change while an operation needs it. */
static bool is_hosts(const void *memory)
{
	return offset_of(memory) - mmc_nic.region_offset < mmc_nic.region_bytes;
}

static void ring_device(void)
{
	if (mmc_ring_must_ring(&mmc_nic.sends))
		mmc_machine_ring();
}

void mmc_nic_ring_host(void)
{
	mmc_ring_show(&mmc_nic.rings, 1);
	ring_device();
}

bool mmc_nic_arm(void)
{
	mmc_ring_arm(&mmc_nic.events);
	return mmc_ring_count(&mmc_nic.events) != 0;
}

/* ---- questions ----------------------------------------------------------- */

/* Asks the device, and waits for its answer. Returns the answer's status. */
static int ask(enum mmc_nic_question question, const void *body,
	       uint32_t nbytes)
{
	struct mmc_nic_ask *asked = &mmc_nic.ask;

	asked->question = question;
	asked->body_offset = offset_of(body);
	asked->body_bytes = nbytes;
	mmc_ring_show(&asked->nasked, asked->nasked + 1);
	ring_device();
	while (mmc_ring_see(&asked->nanswered) != asked->nasked)
		;
	if (asked->status < 0)
		mmc_error_set("%.*s", (int)sizeof(asked->text) - 1,
			      asked->text);
	return asked->status;
}

static void nic_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	ask(MMC_NIC_ADDRESS, address, endpoint->address_bytes);
}

static int nic_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses)
{
	const struct adapter *adapter = (struct adapter *)endpoint;

	return ask(MMC_NIC_CONNECT, addresses,
		   adapter->nranks * endpoint->address_bytes);
}

static void nic_inquire(struct mmc_endpoint *endpoint, uint32_t peer)
{
	(void)endpoint;
	ask(MMC_NIC_INQUIRE, &peer, sizeof(peer));
}

static uint64_t nic_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return mmc_machine_now_ns();
}

/* ---- receiving ----------------------------------------------------------- */

/* Gives a slot to the device, which fills it again. */
static void post(uint32_t slot)
{
	struct mmc_offload_ring *ring = &mmc_nic.slots;

	/* There are as many entries as slots, so there is room. */
	mmc_nic.slot[ring->nproduced % MMC_NIC_SLOTS] = slot;
	mmc_ring_produce(ring);
}

/* Lets go of a slot, which is posted again once nobody holds it. */
static void release(struct adapter *adapter, uint32_t slot)
{
	if (--adapter->nholds[slot] == 0)
		post(slot);
}

/* Returns the slot in which memory lies; MMC_NIC_SLOTS if that is not in any. */
static uint32_t slot_of(const struct adapter *adapter, const uint8_t *memory)
{
	uint64_t offset = (uint64_t)(memory - adapter->slots);

	return (uint32_t)mmc_min_u64(offset / adapter->slot_bytes,
				     MMC_NIC_SLOTS);
}

/*
 * Makes an event of one of the device's. Returns whether the device has told something
 * that makes sense: it is a different chip, and may be out of order.
 */
static bool read_event(struct adapter *adapter,
		       const struct mmc_nic_event *told,
		       struct mmc_event *event)
{
	static const enum mmc_event_kind kinds[] = {
		[MMC_NIC_DATAGRAM] = MMC_EVENT_DATAGRAM,
		[MMC_NIC_REFUSED] = MMC_EVENT_REFUSED,
		[MMC_NIC_PLACED] = MMC_EVENT_PLACED,
		[MMC_NIC_BROKEN] = MMC_EVENT_BROKEN,
		[MMC_NIC_ALIVE] = MMC_EVENT_ALIVE,
		[MMC_NIC_GONE] = MMC_EVENT_GONE,
	};

	if (told->kind == 0 || told->kind > MMC_NIC_GONE ||
	    told->slot >= MMC_NIC_SLOTS || told->nbytes > adapter->slot_bytes)
		return false;
	*event = (struct mmc_event){
		.kind = kinds[told->kind],
		.nbytes = told->nbytes,
		.source = told->source,
		.from_ip = told->from_ip,
		.from_port = (uint16_t)told->from_port,
		.error = told->error,
		.refusal = (enum mmc_refusal)told->refusal,
		.cookie = told->cookie,
		.count = 1,
	};
	if (told->kind == MMC_NIC_DATAGRAM) {
		event->bytes =
			adapter->slots + told->slot * adapter->slot_bytes;
		adapter->nholds[told->slot]++;
		adapter->handed[adapter->nhanded++] = told->slot;
	} else if (told->kind == MMC_NIC_PLACED) {
		release(adapter, told->slot);
	}
	return true;
}

static int nic_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		    unsigned nmax)
{
	struct adapter *adapter = (struct adapter *)endpoint;
	struct mmc_offload_ring *ring = &mmc_nic.events;
	unsigned nevents = 0;

	while (adapter->nhanded > 0)
		release(adapter, adapter->handed[--adapter->nhanded]);
	while (nevents < nmax && mmc_ring_count(ring) > 0) {
		const struct mmc_nic_event *told =
			&mmc_nic.event[ring->nconsumed % MMC_NIC_EVENTS];

		nevents += read_event(adapter, told, &events[nevents]);
		mmc_ring_consume(ring);
	}
	ring_device();
	return (int)nevents;
}

/* Has the device put a payload in its place, once the placement is published. */
static void put_placement(struct adapter *adapter, uint32_t number,
			  const struct mmc_nic_placement *placement)
{
	const uint8_t *from = mmc_nic_memory(placement->from_offset);

	adapter->nholds[slot_of(adapter, from)]++;
	mmc_nic.placement[number % MMC_NIC_PLACEMENTS] = *placement;
}

/*
 * Has the device put payloads in their places, and rings for it once. The processor copies
 * what the device cannot, and what the engine has kept in memory of its own.
 */
static int nic_place(struct mmc_endpoint *endpoint, void *to,
		     const struct mmc_event *datagrams, uint32_t ndatagrams,
		     uint32_t head_bytes, uint64_t cookie)
{
	struct adapter *adapter = (struct adapter *)endpoint;
	struct mmc_offload_ring *ring = &mmc_nic.placements;
	const uint8_t *first = mmc_event_body(datagrams, head_bytes);
	bool by_device = slot_of(adapter, first) < MMC_NIC_SLOTS &&
			 is_hosts(to) &&
			 mmc_ring_room(ring, MMC_NIC_PLACEMENTS) >= ndatagrams;
	uint8_t *place = to;

	for (uint32_t i = 0; i < ndatagrams; i++) {
		const uint8_t *from = mmc_event_body(&datagrams[i], head_bytes);
		const struct mmc_nic_placement placement = {
			.from_offset = offset_of(from),
			.to_offset = offset_of(place),
			.nbytes = datagrams[i].nbytes - head_bytes,
			.cookie = cookie + i,
		};

		if (by_device)
			put_placement(adapter, ring->nproduced + i, &placement);
		else
			memcpy(place, from, placement.nbytes);
		place += placement.nbytes;
	}
	if (!by_device)
		return 0;
	mmc_ring_show(&ring->nproduced, ring->nproduced + ndatagrams);
	ring_device();
	return -MMC_EAGAIN;
}

/* ---- sending ------------------------------------------------------------- */

void mmc_nic_flush(void)
{
	ring_device();
	while (mmc_ring_room(&mmc_nic.sends, MMC_NIC_SENDS) < MMC_NIC_SENDS)
		;
}

/* Puts a datagram in the ring. What may change soon is copied behind its head. */
static void put(const struct adapter *adapter, const struct mmc_parcel *parcel)
{
	struct mmc_offload_ring *ring = &mmc_nic.sends;
	uint32_t entry = ring->nproduced % MMC_NIC_SENDS;
	uint8_t *head = adapter->heads + entry * adapter->head_bytes;
	bool stays = parcel->body_bytes > 0 && is_hosts(parcel->body);

	memcpy(head, parcel->head, parcel->head_bytes);
	if (!stays)
		memcpy(head + parcel->head_bytes, parcel->body,
		       parcel->body_bytes);
	mmc_nic.send[entry] = (struct mmc_nic_send){
		.head_offset = offset_of(head),
		.head_bytes = parcel->head_bytes,
		.body_offset = stays ? offset_of(parcel->body) : 0,
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
	const struct adapter *adapter = (struct adapter *)endpoint;

	for (unsigned i = 0; i < nparcels; i++) {
		if (parcels[i].head_bytes + (uint64_t)parcels[i].body_bytes >
		    adapter->head_bytes)
			return -MMC_EINVAL;
		while (mmc_ring_room(&mmc_nic.sends, MMC_NIC_SENDS) == 0)
			ring_device();
		put(adapter, &parcels[i]);
	}
	ring_device();
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
	struct adapter *adapter = (struct adapter *)endpoint;

	mmc_nic_flush();
	free(adapter->slots);
	free(adapter->heads);
	free(adapter);
}

#define COMMON                                                                 \
	.name = "nic", .now_ns = nic_now_ns, .address = nic_address,           \
	.connect = nic_connect, .poll = nic_poll, .send = nic_send,            \
	.inquire = nic_inquire, .fds = nic_fds, .close = nic_close

static const struct mmc_driver copying_driver = { COMMON };
static const struct mmc_driver placing_driver = { COMMON, .place = nic_place };

/* Allocates the memory for datagrams, and posts all slots. Returns whether it is there. */
static bool allocate(struct adapter *adapter, uint32_t chunk_bytes)
{
	uint64_t longest = (uint64_t)HEAD_BYTES + chunk_bytes;

	adapter->slot_bytes =
		(longest + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	adapter->head_bytes = adapter->slot_bytes;
	adapter->slots =
		aligned_alloc(ALIGN_BYTES, MMC_NIC_SLOTS * adapter->slot_bytes);
	adapter->heads =
		aligned_alloc(ALIGN_BYTES, MMC_NIC_SENDS * adapter->head_bytes);
	if (adapter->slots == NULL || adapter->heads == NULL)
		return false;
	mmc_nic.slots_offset = offset_of(adapter->slots);
	mmc_nic.slot_bytes = adapter->slot_bytes;
	for (uint32_t i = 0; i < MMC_NIC_SLOTS; i++)
		post(i);
	return true;
}

static void describe(struct mmc_endpoint *endpoint)
{
	const struct mmc_nic_endpoint *told = &mmc_nic.endpoint;

	endpoint->driver = mmc_nic.mode == MMC_NIC_DMA ? &placing_driver
						       : &copying_driver;
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
	struct adapter *adapter = calloc(1, sizeof(*adapter));
	int rv;

	if (adapter == NULL)
		return -MMC_ENOMEM;
	rv = ask(MMC_NIC_OPEN, options, sizeof(*options));
	if (rv == 0 && !allocate(adapter, options->chunk_bytes))
		rv = -MMC_ENOMEM;
	if (rv == 0 && mmc_nic.endpoint.address_bytes > MMC_ADDRESS_BYTES_MAX)
		rv = -MMC_EIO;
	if (rv != 0) {
		free(adapter->slots);
		free(adapter->heads);
		free(adapter);
		return rv;
	}
	adapter->nranks = options->nranks;
	describe(&adapter->endpoint);
	*buffer_bytes = mmc_nic.endpoint.buffer_bytes;
	*endpoint = &adapter->endpoint;
	return 0;
}
