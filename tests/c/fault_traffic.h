/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes numbered datagrams through the fault driver. */
#ifndef MMC_TESTS_FAULT_TRAFFIC_H
#define MMC_TESTS_FAULT_TRAFFIC_H

#include "check.h"

#include "drivers/fault/held.h"
#include "fault_memory.h"
#include "support/prng.h"

#define TRIALS 40000u

static inline unsigned poll_all(struct mmc_endpoint *endpoint,
				struct mmc_event *events)
{
	int rv = endpoint->driver->poll(endpoint, events, 64);

	CHECK(rv >= 0);
	return rv < 0 ? 0 : (unsigned)rv;
}

/* Lets one datagram with `index` arrive; returns how many come out. */
static inline unsigned through(struct mmc_endpoint *endpoint, uint32_t index)
{
	struct mmc_event events[64];

	memory_arrive(index, 0);
	return poll_all(endpoint, events);
}

static inline void send_number(struct mmc_endpoint *endpoint, uint32_t index,
			       uint64_t number)
{
	uint8_t bytes[DATAGRAM_BYTES];
	struct mmc_parcel parcel = {
		.head = bytes,
		.head_bytes = MMC_HEADER_BYTES,
		.body = bytes + MMC_HEADER_BYTES,
		.body_bytes = PAYLOAD_BYTES,
		.peer = MMC_PEER_ALL,
		.subgroup = 2,
	};

	datagram_write(bytes, index, number);
	CHECK_EQ(endpoint->driver->send(endpoint, &parcel, 1), 0);
	memset(bytes, 0xee, sizeof(bytes));
}

#endif
