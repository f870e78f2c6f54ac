/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives by the adapter's device, and has it put payloads in their places. */
#include <string.h>

#include "firmware/endpoint.h"
#include "support/bits.h"
#include "support/error.h"

/* Gives a slot back to the hart whose queue it is of, or to the device. */
static void give_back(struct mmc_adapter *adapter, uint32_t slot)
{
	uint32_t number = slot / mmc_nic_nslots();

	if (number == 0)
		mmc_nic_post(slot);
	else
		mmc_hart_return_slot(adapter->inlets[number].hart, slot);
}

void mmc_nic_post(uint32_t slot)
{
	struct mmc_nic_queue *queue = &mmc_nic.queue[0];
	struct mmc_offload_ring *ring = &queue->slots;

	/* There are as many entries as slots, so there is room. */
	queue->slot[ring->nproduced % MMC_NIC_SLOTS] = slot;
	mmc_ring_produce(ring);
}

/* Lets go of a slot, which is given back once nobody holds it. */
static void release(struct mmc_adapter *adapter, uint32_t slot)
{
	if (--adapter->nholds[slot] == 0)
		give_back(adapter, slot);
}

/* Returns the slot in which memory lies; MMC_NIC_SLOTS if that is not in any. */
static uint32_t slot_of(const struct mmc_adapter *adapter,
			const uint8_t *memory)
{
	uint64_t offset = (uint64_t)(memory - adapter->slots);

	return (uint32_t)mmc_min_u64(offset / adapter->slot_bytes,
				     MMC_NIC_SLOTS);
}

/*
 * Makes an event of one of the device's. Returns whether the device has told something
 * that makes sense: it is a different chip, and may be out of order.
 */
static bool read_event(struct mmc_adapter *adapter,
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
		[MMC_NIC_ARRIVED] = MMC_EVENT_ARRIVED,
	};

	if (told->kind == 0 || told->kind > MMC_NIC_ARRIVED ||
	    told->slot >= MMC_NIC_SLOTS || told->nbytes > adapter->slot_bytes)
		return false;
	/* The stream of an earlier buffer may be another one by now. */
	if (told->kind == MMC_NIC_ARRIVED &&
	    told->cookie != adapter->registered)
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
		.first = told->first,
		.count = 1,
	};
	if (told->kind == MMC_NIC_ARRIVED) {
		event->cookie = adapter->cookie;
		event->count = told->count;
	} else if (told->kind == MMC_NIC_DATAGRAM) {
		event->bytes =
			adapter->slots + told->slot * adapter->slot_bytes;
		adapter->nholds[told->slot]++;
		adapter->handed[adapter->nhanded++] = told->slot;
	} else if (told->kind == MMC_NIC_PLACED) {
		release(adapter, told->slot);
	}
	return true;
}

/*
 * Returns whether what is told next adds chunks to the run that `event` tells of. If so,
 * they are added.
 */
static bool add_arrival(const struct mmc_adapter *adapter,
			const struct mmc_nic_event *told,
			struct mmc_event *event)
{
	if (event->kind != MMC_EVENT_ARRIVED || told->kind != MMC_NIC_ARRIVED ||
	    told->first != event->first + event->count ||
	    told->source != event->source ||
	    told->cookie != adapter->registered ||
	    event->nbytes != adapter->chunk_bytes)
		return false;
	event->nbytes = told->nbytes;
	event->count += told->count;
	return true;
}

/* Reads what an inlet has. Returns the new number of events, which was `nevents`. */
static unsigned drain(struct mmc_adapter *adapter, struct mmc_inlet *inlet,
		      struct mmc_event *events, unsigned nevents, unsigned nmax)
{
	struct mmc_offload_ring *ring = inlet->ring;

	while (nevents < nmax && mmc_ring_count(ring) > 0) {
		const struct mmc_nic_event *told =
			&inlet->events[ring->nconsumed % MMC_NIC_EVENTS];

		if (nevents == 0 ||
		    !add_arrival(adapter, told, &events[nevents - 1]))
			nevents += read_event(adapter, told, &events[nevents]);
		mmc_ring_consume(ring);
	}
	return nevents;
}

void mmc_nic_relay(void)
{
	for (uint32_t i = 1; i < mmc_nic.nqueues; i++) {
		uint32_t *rung = &mmc_nic.queue[i].rung;

		if (mmc_ring_see(rung) != 0 &&
		    __atomic_exchange_n(rung, 0, __ATOMIC_SEQ_CST) != 0)
			mmc_machine_interrupt(i);
	}
}

/* Notes if a hart has taken in nothing for long, though there is something. */
static void watch(struct mmc_adapter *adapter)
{
	uint64_t now_ns = mmc_machine_now_ns();

	for (uint32_t i = 1; i < mmc_nic.nqueues; i++) {
		struct mmc_inlet *inlet = &adapter->inlets[i];
		const struct mmc_offload_ring *ring = &mmc_nic.queue[i].events;
		uint32_t nconsumed =
			__atomic_load_n(&ring->nconsumed, __ATOMIC_RELAXED);
		bool behind = mmc_ring_see(&ring->nproduced) != nconsumed;

		if (behind && inlet->behind && nconsumed == inlet->nseen)
			inlet->waited_ns += mmc_nic_lapse_ns(
				adapter, inlet->seen_ns, now_ns);
		else
			inlet->waited_ns = 0;
		if (inlet->waited_ns > mmc_nic_patience_ns(adapter))
			mmc_nic_stop(adapter, i);
		inlet->behind = behind;
		inlet->nseen = nconsumed;
		inlet->seen_ns = now_ns;
	}
}

/* Writes the event that breaks the team down, once. Returns the number of events. */
static unsigned tell_stopped(struct mmc_adapter *adapter,
			     struct mmc_event *event)
{
	if (adapter->stopped == 0 || adapter->told_stopped)
		return 0;
	adapter->told_stopped = true;
	mmc_error_set("hart %u of the adapter's processor has stopped",
		      adapter->stopped);
	*event = (struct mmc_event){
		.kind = MMC_EVENT_BROKEN,
		.source = MMC_PEER_NONE,
		.error = -MMC_ENODEV,
	};
	return 1;
}

int mmc_nic_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		 unsigned nmax)
{
	struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;
	unsigned nevents = 0;

	while (adapter->nhanded > 0)
		release(adapter, adapter->handed[--adapter->nhanded]);
	/* The inlet that comes first is another one each time, so that none starves. */
	for (uint32_t i = 0; i < mmc_nic.nqueues; i++)
		nevents = drain(adapter,
				&adapter->inlets[(adapter->npolls + i) %
						 mmc_nic.nqueues],
				events, nevents, nmax);
	adapter->npolls++;
	mmc_nic_ring_device();
	mmc_nic_relay();
	if (nevents == 0) {
		watch(adapter);
		nevents = tell_stopped(adapter, events);
	}
	return (int)nevents;
}

/* Has the device put a payload in its place, once the placement is published. */
static void put_placement(struct mmc_adapter *adapter, uint32_t number,
			  const struct mmc_nic_placement *placement)
{
	const uint8_t *from = mmc_nic_memory(placement->from_offset);

	adapter->nholds[slot_of(adapter, from)]++;
	mmc_nic.queue[0].placement[number % MMC_NIC_PLACEMENTS] = *placement;
}

/*
 * Has the device put payloads in their places, and rings for it once. The processor copies
 * what the device cannot, and what the engine has kept in memory of its own: that was parked
 * until the operation began, before anyone else may write to its result.
 */
int mmc_nic_place(struct mmc_endpoint *endpoint, void *to,
		  const struct mmc_event *datagrams, uint32_t ndatagrams,
		  uint32_t head_bytes, uint64_t cookie)
{
	struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;
	struct mmc_offload_ring *ring = &mmc_nic.queue[0].placements;
	const uint8_t *first = mmc_event_body(datagrams, head_bytes);
	bool by_device = slot_of(adapter, first) < MMC_NIC_SLOTS &&
			 mmc_nic_is_hosts(to) &&
			 mmc_ring_room(ring, MMC_NIC_PLACEMENTS) >= ndatagrams;
	uint8_t *place = to;

	for (uint32_t i = 0; i < ndatagrams; i++) {
		const uint8_t *from = mmc_event_body(&datagrams[i], head_bytes);
		const struct mmc_nic_placement placement = {
			.from_offset = mmc_nic_offset(from),
			.to_offset = mmc_nic_offset(place),
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
	mmc_nic_ring_device();
	return -MMC_EAGAIN;
}
