/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives: chooses a queue for each datagram, and writes it to a slot or to a buffer. */
#include <string.h>

#include "queue.h"

/* The most datagrams that are received at a time. */
#define BATCH 32

/*
 * Returns the queue of a datagram. That of a chunk is its subgroup's, which senders choose
 * by the chunk: several that may leave as a train go to the same one.
 */
static uint32_t queue_of(const struct device *device,
			 const struct mmc_event *event)
{
	uint32_t together = device->endpoint->train_datagrams;
	uint32_t index;

	if (event->nbytes < MMC_HEADER_BYTES)
		return 0;
	index = mmc_header_peek(event->bytes).index;
	if (index > MMC_INDEX_MASK)
		return 0;
	return index / (together > 0 ? together : 1) % device->nsubgroups %
	       device->nic->nqueues;
}

/*
 * Writes the payload of a datagram to the registered buffer, if it carries the tag of that.
 * Returns whether it does.
 */
static bool write_tagged(struct device *device, uint32_t queue,
			 const struct mmc_event *event)
{
	uint32_t nbytes = event->nbytes - MMC_HEADER_BYTES;
	struct mmc_header header;
	uint64_t place =
		buffer_place(&device->buffer, event, device->checksum, &header);

	if (place == 0)
		return false;
	memcpy(device->memory + place, event->bytes + MMC_HEADER_BYTES, nbytes);
	device->nwritten++;
	device_tell(device, queue,
		    &(struct mmc_nic_event){
			    .kind = MMC_NIC_ARRIVED,
			    .nbytes = nbytes,
			    .source = event->source,
			    .cookie = device->buffer.told.cookie,
			    .first = header.index,
			    .count = 1,
		    });
	return true;
}

/* Puts a datagram in a queue's next slot. Drops one that is too long for any. */
static void fill(struct device *device, uint32_t queue,
		 const struct mmc_event *event)
{
	struct mmc_nic *nic = device->nic;
	struct mmc_nic_queue *from = &nic->queue[queue];
	struct mmc_nic_event told = {
		.kind = MMC_NIC_DATAGRAM,
		.slot = from->slot[from->slots.nconsumed % MMC_NIC_SLOTS],
		.nbytes = event->nbytes,
		.source = event->source,
		.from_ip = event->from_ip,
		.from_port = event->from_port,
	};
	uint8_t *to = device_at(device,
				nic->slots_offset + told.slot * nic->slot_bytes,
				nic->slot_bytes);

	if (to == NULL || event->nbytes > nic->slot_bytes)
		return;
	memcpy(to, event->bytes, event->nbytes);
	mmc_ring_consume(&from->slots);
	device_tell(device, queue, &told);
}

/* Receives a datagram, or loses it if its queue has nothing left to receive it with. */
static void take_datagram(struct device *device, const struct mmc_event *event)
{
	uint32_t queue = queue_of(device, event);

	/* Over UDP a datagram lies in one piece. */
	if (event->body != NULL || device->halted & 1U << queue ||
	    !device_has_room(device, queue))
		return;
	device->nreceived[queue]++;
	if (!write_tagged(device, queue, event) &&
	    mmc_ring_count(&device->nic->queue[queue].slots) > 0)
		fill(device, queue, event);
}

static void tell_event(struct device *device, const struct mmc_event *event)
{
	struct mmc_nic_event told = {
		.nbytes = event->nbytes,
		.source = event->source,
		.from_ip = event->from_ip,
		.from_port = event->from_port,
		.error = event->error,
		.refusal = event->refusal,
	};

	switch (event->kind) {
	case MMC_EVENT_DATAGRAM:
		take_datagram(device, event);
		return;
	case MMC_EVENT_REFUSED:
		told.kind = MMC_NIC_REFUSED;
		break;
	case MMC_EVENT_BROKEN:
		told.kind = MMC_NIC_BROKEN;
		break;
	case MMC_EVENT_ALIVE:
		told.kind = MMC_NIC_ALIVE;
		break;
	case MMC_EVENT_GONE:
		told.kind = MMC_NIC_GONE;
		break;
	default:
		return;
	}
	device_tell(device, 0, &told);
}

bool device_receive(struct device *device)
{
	struct mmc_event events[BATCH];
	struct mmc_endpoint *endpoint = device->endpoint;
	struct mmc_nic_queue *first = &device->nic->queue[0];
	uint32_t room = mmc_ring_count(&first->slots);
	int nevents;

	if (mmc_ring_room(&first->events, MMC_NIC_EVENTS) < room)
		room = mmc_ring_room(&first->events, MMC_NIC_EVENTS);
	if (room == 0)
		return false;
	nevents = endpoint->driver->poll(endpoint, events,
					 room < BATCH ? room : BATCH);
	for (int i = 0; i < nevents; i++)
		tell_event(device, &events[i]);
	return nevents > 0;
}
