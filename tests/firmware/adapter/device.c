/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <mpimcast/mmc.h>
#include <stdio.h>
#include <string.h>

#include "engine/open.h"
#include "queue.h"
#include "support/error.h"

/* ---- telling ------------------------------------------------------------- */

bool device_must_ring(struct device *device)
{
	bool rings = false;

	for (uint32_t i = 0; i < MMC_NIC_HARTS_MAX; i++) {
		struct mmc_nic_queue *queue = &device->nic->queue[i];

		if (!(device->rings & 1U << i) ||
		    !mmc_ring_must_ring(&queue->events))
			continue;
		mmc_ring_show(&queue->rung, 1);
		rings = true;
	}
	device->rings = 0;
	return rings;
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
			.head = device_at(device, send->head_offset,
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
				      : device_at(device, send->body_offset,
						  send->body_bytes);
		if (parcel.body != NULL)
			parcels[nparcels++] = parcel;
	}
	if (nparcels > 0) {
		int rv = endpoint->driver->send(endpoint, parcels, nparcels);

		if (rv < 0 && device_has_room(device, 0))
			device_tell(device, 0,
				    &(struct mmc_nic_event){
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

/* Puts payloads of a queue in their places. Returns whether there were any. */
static bool place(struct device *device, uint32_t number)
{
	struct mmc_nic_queue *queue = &device->nic->queue[number];
	struct mmc_offload_ring *ring = &queue->placements;
	bool any = false;

	while (mmc_ring_count(ring) > 0 && device_has_room(device, number) &&
	       !(device->halted & 1U << number)) {
		const struct mmc_nic_placement placement =
			queue->placement[ring->nconsumed % MMC_NIC_PLACEMENTS];
		const uint8_t *from = device_at(device, placement.from_offset,
						placement.nbytes);
		uint8_t *to = device_at(device, placement.to_offset,
					placement.nbytes);

		mmc_ring_consume(ring);
		any = true;
		if (from == NULL || to == NULL)
			continue;
		memcpy(to, from, placement.nbytes);
		device->nplaced++;
		device_tell(device, number,
			    &(struct mmc_nic_event){
				    .kind = MMC_NIC_PLACED,
				    .slot = slot_of(device->nic,
						    placement.from_offset),
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

	if (device->endpoint != NULL || device->nic->nqueues == 0 ||
	    device->nic->nqueues > MMC_NIC_HARTS_MAX)
		return -MMC_EINVAL;
	memcpy(&options, body, sizeof(options));
	rv = mmc_endpoint_open(&options, &buffer_bytes, &device->endpoint);
	if (rv != 0) {
		device->endpoint = NULL;
		return rv;
	}
	endpoint = device->endpoint;
	device->nranks = options.nranks;
	device->nsubgroups = options.subgroups;
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
	table = device_at(device, told.blocks_offset,
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
	uint8_t *body = device_at(device, ask->body_offset, ask->body_bytes);
	struct mmc_endpoint *endpoint = device->endpoint;
	uint32_t peer, queue;

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
	if (ask->question == MMC_NIC_HALT && ask->body_bytes == sizeof(queue)) {
		memcpy(&queue, body, sizeof(queue));
		device->halted |= queue < MMC_NIC_HARTS_MAX ? 1U << queue : 0;
		return 0;
	}
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
	for (uint32_t i = 0; i < device->nic->nqueues; i++)
		busy |= place(device, i);
	busy |= device_receive(device);
	return busy;
}

bool device_arm(struct device *device)
{
	struct mmc_nic *nic = device->nic;
	bool come;

	mmc_ring_arm(&nic->sends);
	come = mmc_ring_see(&nic->ask.nasked) != nic->ask.nanswered ||
	       mmc_ring_see(&nic->rings) != 0 ||
	       mmc_ring_count(&nic->sends) > 0;
	for (uint32_t i = 0; i < MMC_NIC_HARTS_MAX; i++)
		come |= mmc_ring_count(&nic->queue[i].placements) > 0 &&
			!(device->halted & 1U << i);
	return come;
}

void device_close(struct device *device)
{
	if (device->endpoint != NULL)
		device->endpoint->driver->close(device->endpoint);
	device->endpoint = NULL;
	buffer_deregister(&device->buffer);
}
