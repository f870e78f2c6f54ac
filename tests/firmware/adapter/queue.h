/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's memory, and the queues in which it tells the firmware of events. */
#ifndef MMC_TESTS_ADAPTER_QUEUE_H
#define MMC_TESTS_ADAPTER_QUEUE_H

#include "device.h"
#include "offload/ring.h"

/* Returns the memory at an offset; NULL if `nbytes` do not fit there. */
static inline uint8_t *device_at(const struct device *device, uint64_t offset,
				 uint64_t nbytes)
{
	if (offset > device->memory_bytes ||
	    nbytes > device->memory_bytes - offset)
		return NULL;
	return device->memory + offset;
}

/* Returns whether the hart of a queue can be told something. */
static inline bool device_has_room(const struct device *device, uint32_t queue)
{
	return mmc_ring_room(&device->nic->queue[queue].events,
			     MMC_NIC_EVENTS) > 0;
}

/* Tells the hart of a queue. There is room. */
static inline void device_tell(struct device *device, uint32_t queue,
			       const struct mmc_nic_event *event)
{
	struct mmc_nic_queue *at = &device->nic->queue[queue];

	at->event[at->events.nproduced % MMC_NIC_EVENTS] = *event;
	mmc_ring_produce(&at->events);
	device->rings |= 1U << queue;
}

#endif
