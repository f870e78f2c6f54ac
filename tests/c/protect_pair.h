/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks whose protected endpoints lie in memory: what the sender sends waits in a
 * wire, where the test may change it before the receiver gets it.
 */
#ifndef MMC_TESTS_PROTECT_PAIR_H
#define MMC_TESTS_PROTECT_PAIR_H

#include "check.h"
#include "core/wire/header.h"
#include "drivers/protect/protect.h"

enum {
	SENDER,
	RECEIVER,
	NRANKS,
};

#define TEAM UINT64_C(0x1122334455667788)
#define BODY_BYTES 1456
#define WIRE_MAX 128

/* Datagrams as the network would carry them. */
struct wire {
	uint8_t bytes[WIRE_MAX][MMC_HEADER_BYTES + MMC_SEAL_BYTES + BODY_BYTES];
	uint32_t nbytes[WIRE_MAX];
	unsigned count;
	/* Whether what follows the header is delivered apart from it. */
	bool apart;
	uint32_t source; /* from whose address they seem to come */
	unsigned nclosed;
	unsigned nconnected;
	unsigned nsends; /* calls of send() */
	/* How many datagrams were refused, by cause. */
	unsigned nrefused[MMC_REFUSAL_COUNT];
};

static struct wire wire;
static struct mmc_endpoint inners[NRANKS];
static struct mmc_endpoint *endpoints[NRANKS];

static inline uint64_t wire_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return 0;
}

static inline int wire_connect(struct mmc_endpoint *endpoint,
			       const uint8_t *addresses)
{
	(void)endpoint;
	(void)addresses;
	wire.nconnected++;
	return 0;
}

static inline int wire_send(struct mmc_endpoint *endpoint,
			    const struct mmc_parcel *parcels, unsigned nparcels)
{
	(void)endpoint;
	wire.nsends++;
	for (unsigned i = 0; i < nparcels; i++) {
		uint8_t *bytes = wire.bytes[wire.count];
		const struct mmc_parcel *parcel = &parcels[i];

		memcpy(bytes, parcel->head, parcel->head_bytes);
		if (parcel->body_bytes > 0)
			memcpy(bytes + parcel->head_bytes, parcel->body,
			       parcel->body_bytes);
		wire.nbytes[wire.count++] =
			parcel->head_bytes + parcel->body_bytes;
	}
	return 0;
}

/* Delivers all datagrams, or as many as fit; those that stay come first the next time. */
static inline int wire_poll(struct mmc_endpoint *endpoint,
			    struct mmc_event *events, unsigned nmax)
{
	unsigned count = wire.count < nmax ? wire.count : nmax;

	(void)endpoint;
	for (unsigned i = 0; i < count; i++)
		events[i] = (struct mmc_event){
			.kind = MMC_EVENT_DATAGRAM,
			.bytes = wire.bytes[i],
			.body = wire.apart ? wire.bytes[i] + MMC_HEADER_BYTES
					   : NULL,
			.nbytes = wire.nbytes[i],
			.source = wire.source,
		};
	wire.count -= count;
	CHECK_EQ(wire.count, 0);
	return (int)count;
}

static inline void wire_close(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	wire.nclosed++;
}

static const struct mmc_driver wire_driver = {
	.name = "wire",
	.now_ns = wire_now_ns,
	.connect = wire_connect,
	.send = wire_send,
	.poll = wire_poll,
	.close = wire_close,
};

/* Opens libcrypto, or ends the program as skipped. */
static inline const struct mmc_primitive *need_primitive(void)
{
	if (mmc_primitive_open(MMC_PRIMITIVE_AES, "") != 0) {
		printf("skipped: %s\n", mmc_last_error());
		exit(77);
	}
	return mmc_primitive_find(MMC_PRIMITIVE_AES);
}

/* Keys an endpoint with a secret all of whose bytes are `byte`. */
static inline int key_with(struct mmc_endpoint *endpoint, uint8_t byte)
{
	struct mmc_secret *secret;
	int rv = mmc_secret_create(&secret);

	if (!CHECK_EQ(rv, 0))
		return rv;
	memset(mmc_secret_bytes(secret), byte, MMC_SECRET_BYTES);
	rv = mmc_protect_start(endpoint, secret);
	mmc_secret_free(secret);
	return rv;
}

static inline struct mmc_endpoint *wrap(const struct mmc_primitive *primitive,
					enum mmc_protect mode, uint32_t rank)
{
	const struct mmc_protect_options options = {
		.primitive = primitive,
		.mode = mode,
		.team = TEAM,
		.rank = rank,
		.nranks = NRANKS,
		.body_bytes = BODY_BYTES,
	};
	struct mmc_endpoint *endpoint = NULL;

	inners[rank] = (struct mmc_endpoint){ .driver = &wire_driver };
	if (!CHECK_EQ(mmc_protect_wrap(&options, &inners[rank], &endpoint), 0))
		exit(1);
	return endpoint;
}

static inline void open_pair(enum mmc_protect mode)
{
	const struct mmc_primitive *primitive = need_primitive();

	memset(&wire, 0, sizeof(wire));
	for (uint32_t rank = 0; rank < NRANKS; rank++) {
		endpoints[rank] = wrap(primitive, mode, rank);
		CHECK_EQ(key_with(endpoints[rank], 7), 0);
	}
	wire.source = SENDER;
}

static inline void close_pair(void)
{
	for (uint32_t rank = 0; rank < NRANKS; rank++)
		endpoints[rank]->driver->close(endpoints[rank]);
	CHECK_EQ(wire.nclosed, NRANKS);
}

static inline uint8_t body_byte(uint32_t index, uint32_t i)
{
	return (uint8_t)(index * 31 + i * 7 + i / 256);
}

/* Sends datagrams of consecutive indices from `index` on, in one call. */
static inline int send_some(uint32_t index, unsigned count, uint32_t body_bytes)
{
	static uint8_t heads[WIRE_MAX][MMC_HEADER_BYTES];
	static uint8_t bodies[WIRE_MAX][BODY_BYTES];
	struct mmc_parcel parcels[WIRE_MAX];
	struct mmc_endpoint *endpoint = endpoints[SENDER];

	for (unsigned n = 0; n < count; n++) {
		const struct mmc_header header = { .epoch = 3,
						   .index = index + n };

		mmc_header_encode(heads[n], &header,
				  MMC_HEADER_BYTES + body_bytes,
				  MMC_CHECKSUM_HEADER);
		for (uint32_t i = 0; i < body_bytes; i++)
			bodies[n][i] = body_byte(index + n, i);
		parcels[n] = (struct mmc_parcel){
			.head = heads[n],
			.head_bytes = MMC_HEADER_BYTES,
			.body = bodies[n],
			.body_bytes = body_bytes,
			.peer = MMC_PEER_ALL,
		};
	}
	return endpoint->driver->send(endpoint, parcels, count);
}

/*
 * Has an endpoint take what is on the wire, and counts what it refuses. Returns how many
 * datagrams come out.
 */
static inline unsigned receive_by(struct mmc_endpoint *endpoint,
				  struct mmc_event *events)
{
	int rv = endpoint->driver->poll(endpoint, events, WIRE_MAX);
	unsigned count = 0;

	CHECK(rv >= 0);
	for (int i = 0; i < rv; i++) {
		if (events[i].kind == MMC_EVENT_REFUSED)
			wire.nrefused[events[i].refusal]++;
		else
			events[count++] = events[i];
	}
	return count;
}

static inline unsigned receive_some(struct mmc_event *events)
{
	return receive_by(endpoints[RECEIVER], events);
}

#endif
