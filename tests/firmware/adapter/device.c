/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <mpimcast/mmc.h>
#include <stdio.h>
#include <string.h>

#include "engine/open.h"
#include "offload/ring.h"
#include "support/error.h"

#define BATCH 32

/* Returns the memory at an offset; NULL if `nbytes` do not fit there. */
static uint8_t *at(const struct device *device, uint64_t offset,
		   uint64_t nbytes)
{
	if (offset > device->memory_bytes ||
	    nbytes > device->memory_bytes - offset)
		return NULL;
	return device->memory + offset;
}

/* ---- telling ------------------------------------------------------------- */

static bool has_room(const struct device *device)
{
	return mmc_ring_room(&device->nic->events, MMC_NIC_EVENTS) > 0;
}

static void tell(struct device *device, const struct mmc_nic_event *event)
{
	struct mmc_offload_ring *ring = &device->nic->events;

	device->nic->event[ring->nproduced % MMC_NIC_EVENTS] = *event;
	mmc_ring_produce(ring);
	device->rings = true;
}

bool device_must_ring(struct device *device)
{
	bool rings = device->rings && mmc_ring_must_ring(&device->nic->events);

	device->rings = false;
	return rings;
}

/* ---- receiving ----------------------------------------------------------- */

/*
 * Writes the payload of a datagram to the registered buffer, if it carries the tag of that.
 * Returns whether it does.
 */
static bool write_tagged(struct device *device, const struct mmc_event *event)
{
	uint32_t nbytes = event->nbytes - MMC_HEADER_BYTES;
	struct mmc_header header;
	uint64_t place =
		buffer_place(&device->buffer, event, device->checksum, &header);

	if (place == 0)
		return false;
	memcpy(device->memory + place, event->bytes + MMC_HEADER_BYTES, nbytes);
	device->nwritten++;
	tell(device, &(struct mmc_nic_event){
			     .kind = MMC_NIC_ARRIVED,
			     .nbytes = nbytes,
			     .source = event->source,
			     .cookie = device->buffer.told.cookie,
			     .first = header.index,
		     });
	return true;
}

/* Puts a datagram in the next slot. Drops one that is too long for any. */
static void fill(struct device *device, const struct mmc_event *event)
{
	struct mmc_nic *nic = device->nic;
	struct mmc_offload_ring *ring = &nic->slots;
	struct mmc_nic_event told = {
		.kind = MMC_NIC_DATAGRAM,
		.slot = nic->slot[ring->nconsumed % MMC_NIC_SLOTS],
		.nbytes = event->nbytes,
		.source = event->source,
		.from_ip = event->from_ip,
		.from_port = event->from_port,
	};
	uint8_t *to = at(device,
			 nic->slots_offset + told.slot * nic->slot_bytes,
			 nic->slot_bytes);

	if (to == NULL || event->nbytes > nic->slot_bytes)
		return;
	memcpy(to, event->bytes, event->nbytes);
	mmc_ring_consume(ring);
	tell(device, &told);
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
		/* Over UDP a datagram lies in one piece. */
		if (event->body == NULL && !write_tagged(device, event))
			fill(device, event);
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
	tell(device, &told);
}

/* Receives as long as there are slots. Returns whether something has come. */
static bool receive(struct device *device)
{
	struct mmc_event events[BATCH];
	struct mmc_endpoint *endpoint = device->endpoint;
	uint32_t room = mmc_ring_count(&device->nic->slots);
	int nevents;

	if (mmc_ring_room(&device->nic->events, MMC_NIC_EVENTS) < room)
		room = mmc_ring_room(&device->nic->events, MMC_NIC_EVENTS);
	if (room == 0)
		return false;
	nevents = endpoint->driver->poll(endpoint, events,
					 room < BATCH ? room : BATCH);
	for (int i = 0; i < nevents; i++)
		tell_event(device, &events[i]);
	return nevents > 0;
}

/* ---- sending and placing ------------------------------------------------- */

/* Sends what is in the ring. Returns whether there was anything. */
static bool send(struct device *device)
{
	struct mmc_offload_ring *ring = &device->nic->sends;
	struct mmc_endpoint *endpoint = device->endpoint;
	struct mmc_parcel parcels[MMC_NIC_SENDS];
	uint32_t nsends = mmc_ring_count(ring);
	unsigned nparcels = 0;

	for (uint32_t i = 0; i < nsends && i < MMC_NIC_SENDS; i++) {
		const struct mmc_nic_send *send =
			&device->nic
				 ->send[(ring->nconsumed + i) % MMC_NIC_SENDS];
		struct mmc_parcel parcel = {
			.head = at(device, send->head_offset,
				   (uint64_t)send->head_bytes +
					   send->body_bytes),
			.head_bytes = send->head_bytes,
			.body_bytes = send->body_bytes,
			.peer = send->peer,
			.subgroup = send->subgroup,
			.control = send->control != 0,
		};

		if (parcel.head == NULL)
			continue;
		parcel.body = send->body_offset == 0
				      ? parcel.head + parcel.head_bytes
				      : at(device, send->body_offset,
					   send->body_bytes);
		if (parcel.body != NULL)
			parcels[nparcels++] = parcel;
	}
	if (nparcels > 0) {
		int rv = endpoint->driver->send(endpoint, parcels, nparcels);

		if (rv < 0 && has_room(device))
			tell(device, &(struct mmc_nic_event){
					     .kind = MMC_NIC_BROKEN,
					     .source = MMC_PEER_NONE,
					     .error = rv,
				     });
	}
	for (uint32_t i = 0; i < nsends; i++)
		mmc_ring_consume(ring);
	return nsends > 0;
}

/* Returns the slot in which an offset lies. */
static uint32_t slot_of(const struct mmc_nic *nic, uint64_t offset)
{
	return (uint32_t)((offset - nic->slots_offset) / nic->slot_bytes);
}

/* Puts payloads in their places. Returns whether there were any. */
static bool place(struct device *device)
{
	struct mmc_nic *nic = device->nic;
	struct mmc_offload_ring *ring = &nic->placements;
	bool any = false;

	while (mmc_ring_count(ring) > 0 && has_room(device)) {
		const struct mmc_nic_placement placement =
			nic->placement[ring->nconsumed % MMC_NIC_PLACEMENTS];
		const uint8_t *from =
			at(device, placement.from_offset, placement.nbytes);
		uint8_t *to = at(device, placement.to_offset, placement.nbytes);

		mmc_ring_consume(ring);
		any = true;
		if (from == NULL || to == NULL)
			continue;
		memcpy(to, from, placement.nbytes);
		device->nplaced++;
		tell(device,
		     &(struct mmc_nic_event){
			     .kind = MMC_NIC_PLACED,
			     .slot = slot_of(nic, placement.from_offset),
			     .cookie = placement.cookie,
		     });
	}
	return any;
}

/* ---- questions ----------------------------------------------------------- */

static int open_endpoint(struct device *device, const uint8_t *body)
{
	struct mmc_team_options options;
	const struct mmc_endpoint *endpoint;
	uint32_t buffer_bytes;
	int rv;

	if (device->endpoint != NULL)
		return -MMC_EINVAL;
	memcpy(&options, body, sizeof(options));
	rv = mmc_endpoint_open(&options, &buffer_bytes, &device->endpoint);
	if (rv != 0) {
		device->endpoint = NULL;
		return rv;
	}
	endpoint = device->endpoint;
	device->nranks = options.nranks;
	device->checksum = (enum mmc_checksum)options.checksum;
	device->nic->endpoint = (struct mmc_nic_endpoint){
		.address_bytes = endpoint->address_bytes,
		.buffer_bytes = buffer_bytes,
		.has_buffer_per_source = endpoint->has_buffer_per_source,
		.control_is_reliable = endpoint->control_is_reliable,
		.batch_datagrams = endpoint->batch_datagrams,
		.train_datagrams = endpoint->train_datagrams,
	};
	return 0;
}

static int register_buffer(struct device *device, const uint8_t *body)
{
	struct mmc_nic_buffer told;
	const uint8_t *table;

	memcpy(&told, body, sizeof(told));
	table = at(device, told.blocks_offset,
		   device->nranks * sizeof(struct mmc_nic_block));
	if (device->nic->mode != MMC_NIC_UC || table == NULL ||
	    device->checksum == MMC_CHECKSUM_FULL)
		return -MMC_EINVAL;
	return buffer_register(&device->buffer, device->nic, &told,
			       (const void *)table, device->nranks);
}

static int answer(struct device *device)
{
	const struct mmc_nic_ask *ask = &device->nic->ask;
	uint8_t *body = at(device, ask->body_offset, ask->body_bytes);
	struct mmc_endpoint *endpoint = device->endpoint;
	uint32_t peer;

	if (body == NULL)
		return -MMC_EINVAL;
	if (ask->question == MMC_NIC_OPEN &&
	    ask->body_bytes == sizeof(struct mmc_team_options))
		return open_endpoint(device, body);
	if (endpoint == NULL)
		return -MMC_EINVAL;
	if (ask->question == MMC_NIC_ADDRESS &&
	    ask->body_bytes == endpoint->address_bytes) {
		endpoint->driver->address(endpoint, body);
		return 0;
	}
	if (ask->question == MMC_NIC_CONNECT &&
	    ask->body_bytes == device->nranks * endpoint->address_bytes)
		return endpoint->driver->connect(endpoint, body);
	if (ask->question == MMC_NIC_INQUIRE &&
	    ask->body_bytes == sizeof(peer)) {
		memcpy(&peer, body, sizeof(peer));
		endpoint->driver->inquire(endpoint, peer);
		return 0;
	}
	if (ask->question == MMC_NIC_REGISTER &&
	    ask->body_bytes == sizeof(struct mmc_nic_buffer))
		return register_buffer(device, body);
	if (ask->question == MMC_NIC_DEREGISTER) {
		buffer_deregister(&device->buffer);
		return 0;
	}
	return -MMC_EINVAL;
}

/* Answers the firmware's question, if there is one. Returns whether there was. */
static bool answer_question(struct device *device)
{
	struct mmc_nic_ask *ask = &device->nic->ask;
	uint32_t nasked = mmc_ring_see(&ask->nasked);

	if (nasked == ask->nanswered)
		return false;
	mmc_error_set("the firmware's question makes no sense");
	ask->status = answer(device);
	if (ask->status < 0)
		snprintf(ask->text, sizeof(ask->text), "%s", mmc_last_error());
	mmc_ring_show(&ask->nanswered, nasked);
	return true;
}

/* ---- all of it ----------------------------------------------------------- */

bool device_progress(struct device *device)
{
	bool busy = answer_question(device);

	if (device->endpoint == NULL)
		return busy;
	busy |= send(device);
	busy |= place(device);
	busy |= receive(device);
	return busy;
}

bool device_arm(struct device *device)
{
	struct mmc_nic *nic = device->nic;

	mmc_ring_arm(&nic->sends);
	return mmc_ring_see(&nic->ask.nasked) != nic->ask.nanswered ||
	       mmc_ring_see(&nic->rings) != 0 ||
	       mmc_ring_count(&nic->sends) > 0 ||
	       mmc_ring_count(&nic->placements) > 0;
}

void device_close(struct device *device)
{
	if (device->endpoint != NULL)
		device->endpoint->driver->close(device->endpoint);
	device->endpoint = NULL;
	buffer_deregister(&device->buffer);
}
