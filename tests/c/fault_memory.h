/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint in memory, which the fault driver wraps; the test sets its clock. */
#ifndef MMC_TESTS_FAULT_MEMORY_H
#define MMC_TESTS_FAULT_MEMORY_H

#include "check.h"
#include "core/wire/header.h"
#include "drivers/fault/fault.h"

#define BYTES_MAX 32
#define PAYLOAD_BYTES 8
#define DATAGRAM_BYTES (MMC_HEADER_BYTES + PAYLOAD_BYTES)
#define SENT_MAX 65536

struct datagram {
	uint8_t bytes[BYTES_MAX];
	uint32_t nbytes;
	struct mmc_parcel parcel;
};

static inline void datagram_write(uint8_t *bytes, uint32_t index,
				  uint64_t number)
{
	struct mmc_header header = { .epoch = 7, .index = index };

	mmc_header_encode(bytes, &header, DATAGRAM_BYTES, MMC_CHECKSUM_OFF);
	mmc_put_u64(bytes + MMC_HEADER_BYTES, number);
}

static inline uint64_t datagram_number(const uint8_t *bytes)
{
	return mmc_get_u64(bytes + MMC_HEADER_BYTES);
}

/* Delivers what memory_arrive() put into the inbox, and keeps what was sent. */
struct memory {
	struct mmc_endpoint endpoint;
	uint64_t now_ns;
	struct mmc_event inbox[64];
	struct datagram arrived[64];
	unsigned narrived;
	struct datagram sent[SENT_MAX];
	unsigned nsent;
	bool closed;
};

static struct memory memory;

static inline uint64_t memory_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return memory.now_ns;
}

static inline int memory_poll(struct mmc_endpoint *endpoint,
			      struct mmc_event *events, unsigned nmax)
{
	unsigned count = memory.narrived < nmax ? memory.narrived : nmax;

	(void)endpoint;
	memcpy(events, memory.inbox, count * sizeof(*events));
	memory.narrived -= count;
	memmove(memory.inbox, memory.inbox + count,
		memory.narrived * sizeof(*events));
	return (int)count;
}

static inline int memory_send(struct mmc_endpoint *endpoint,
			      const struct mmc_parcel *parcels,
			      unsigned nparcels)
{
	(void)endpoint;
	for (unsigned i = 0; i < nparcels && memory.nsent < SENT_MAX; i++) {
		struct datagram *sent = &memory.sent[memory.nsent++];
		const struct mmc_parcel *parcel = &parcels[i];

		sent->parcel = *parcel;
		sent->nbytes = parcel->head_bytes + parcel->body_bytes;
		memcpy(sent->bytes, parcel->head, parcel->head_bytes);
		if (parcel->body_bytes > 0)
			memcpy(sent->bytes + parcel->head_bytes, parcel->body,
			       parcel->body_bytes);
	}
	return 0;
}

static inline void memory_close(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	memory.closed = true;
}

static const struct mmc_driver memory_driver = {
	.name = "memory",
	.now_ns = memory_now_ns,
	.poll = memory_poll,
	.send = memory_send,
	.close = memory_close,
};

/* Puts a datagram with the given index and number into the inbox. */
static inline void memory_arrive(uint32_t index, uint64_t number)
{
	unsigned i = memory.narrived++;

	datagram_write(memory.arrived[i].bytes, index, number);
	memory.inbox[i] = (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.bytes = memory.arrived[i].bytes,
		.nbytes = DATAGRAM_BYTES,
		.source = 3,
	};
}

/* Resets the endpoint in memory and wraps the fault driver around it. */
static inline int memory_try_wrap(const char *setting, uint32_t rank,
				  enum mmc_checksum checksum,
				  struct mmc_endpoint **endpoint)
{
	memset(&memory, 0, sizeof(memory));
	memory.endpoint.driver = &memory_driver;
	return mmc_fault_wrap(setting, rank, &memory.endpoint, checksum, false,
			      endpoint);
}

static inline struct mmc_endpoint *memory_wrap(const char *setting)
{
	struct mmc_endpoint *endpoint = NULL;

	if (!CHECK_EQ(memory_try_wrap(setting, 0, MMC_CHECKSUM_FULL, &endpoint),
		      0))
		exit(1);
	return endpoint;
}

static inline void memory_unwrap(struct mmc_endpoint *endpoint)
{
	endpoint->driver->close(endpoint);
	CHECK(memory.closed);
}

#endif
