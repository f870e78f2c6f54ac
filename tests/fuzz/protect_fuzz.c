/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attacks the protection of a rank, before its tag and behind it. The input is a sequence
 * of steps: a byte for what is done, one for a length, and as many bytes of a datagram.
 *
 *     0  a stranger sends the bytes as they are: they never come out
 *     1  a rank seals the bytes, as a hostile member might: they come out as they were,
 *        and what reads them next must bear them
 *     2  the same, but the network flips a bit: nothing comes out
 *     3  the network repeats what a rank has sealed last: nothing comes out
 */
#include "core/wire/header.h"
#include "core/wire/message.h"
#include "drivers/protect/protect.h"
#include "fuzz.h"
#include "sim/seals.h"

#define BODY_BYTES_MAX 256
#define DATAGRAM_BYTES_MAX (MMC_HEADER_BYTES + MMC_SEAL_BYTES + BODY_BYTES_MAX)

enum {
	SENDER,
	RECEIVER,
	NRANKS,
};

static uint8_t wire[DATAGRAM_BYTES_MAX];
static uint32_t wire_bytes;

static int send_one(struct mmc_endpoint *endpoint,
		    const struct mmc_parcel *parcels, unsigned nparcels)
{
	(void)endpoint;
	MMC_ASSERT(nparcels == 1);
	wire_bytes = parcels->head_bytes + parcels->body_bytes;
	MMC_ASSERT(wire_bytes <= sizeof(wire));
	memcpy(wire, parcels->head, parcels->head_bytes);
	if (parcels->body_bytes > 0)
		memcpy(wire + parcels->head_bytes, parcels->body,
		       parcels->body_bytes);
	return 0;
}

/* Delivers a copy of exactly the datagram's length, so that ASan sees what is read. */
static uint8_t *delivered;

static int poll_one(struct mmc_endpoint *endpoint, struct mmc_event *events,
		    unsigned nmax)
{
	(void)endpoint;
	MMC_ASSERT(nmax > 0);
	free(delivered);
	delivered = malloc(wire_bytes + (wire_bytes == 0));
	memcpy(delivered, wire, wire_bytes);
	events[0] = (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.bytes = delivered,
		.nbytes = wire_bytes,
		.source = SENDER,
	};
	return 1;
}

static void close_inner(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
}

static const struct mmc_driver driver = {
	.name = "fuzz",
	.send = send_one,
	.poll = poll_one,
	.close = close_inner,
};

static struct mmc_endpoint *open_rank(uint32_t rank, enum mmc_protect mode,
				      struct mmc_endpoint *inner)
{
	const struct mmc_protect_options options = {
		.primitive = &mmc_sim_primitive,
		.mode = mode,
		.rank = rank,
		.nranks = NRANKS,
		.body_bytes = BODY_BYTES_MAX,
	};
	struct mmc_endpoint *endpoint;
	struct mmc_secret *secret;

	*inner = (struct mmc_endpoint){ .driver = &driver };
	MMC_ASSERT(mmc_protect_wrap(&options, inner, &endpoint) == 0);
	MMC_ASSERT(mmc_secret_create(&secret) == 0);
	MMC_ASSERT(mmc_protect_start(endpoint, secret) == 0);
	mmc_secret_free(secret);
	return endpoint;
}

/* Reads what came out as the engine does, which must bear any bytes. */
static void read_datagram(const struct mmc_event *event)
{
	struct mmc_message message;
	struct mmc_header header;

	if (mmc_header_decode(&header, event->bytes, event->nbytes,
			      MMC_CHECKSUM_OFF) == 0 &&
	    (header.index & MMC_INDEX_CONTROL))
		(void)!mmc_message_decode(&message,
					  header.index & MMC_INDEX_MASK,
					  event->body,
					  event->nbytes - MMC_HEADER_BYTES);
}

static void seal(struct mmc_endpoint *sender, const uint8_t *bytes,
		 uint32_t nbytes)
{
	const struct mmc_parcel parcel = {
		.head = bytes,
		.head_bytes = MMC_HEADER_BYTES,
		.body = bytes + MMC_HEADER_BYTES,
		.body_bytes = nbytes - MMC_HEADER_BYTES,
		.peer = RECEIVER,
	};

	MMC_ASSERT(sender->driver->send(sender, &parcel, 1) == 0);
}

static void step(struct mmc_endpoint *sender, struct mmc_endpoint *receiver,
		 uint8_t act, const uint8_t *bytes, uint32_t nbytes)
{
	struct mmc_event event;
	bool genuine;

	if (act % 4 == 0) {
		memcpy(wire, bytes, nbytes);
		wire_bytes = nbytes;
	} else if (nbytes < MMC_HEADER_BYTES) {
		return;
	} else if (act % 4 < 3) {
		seal(sender, bytes, nbytes);
	}
	if (act % 4 == 2)
		wire[act / 4 * 7 % wire_bytes] ^= (uint8_t)(1 << act / 4 % 8);
	genuine = receiver->driver->poll(receiver, &event, 1) == 1 &&
		  event.kind == MMC_EVENT_DATAGRAM;
	MMC_ASSERT(genuine == (act % 4 == 1));
	if (!genuine)
		return;
	MMC_ASSERT(event.nbytes == nbytes &&
		   memcmp(event.bytes, bytes, MMC_HEADER_BYTES) == 0 &&
		   memcmp(event.body, bytes + MMC_HEADER_BYTES,
			  nbytes - MMC_HEADER_BYTES) == 0);
	read_datagram(&event);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mmc_endpoint inners[NRANKS];
	struct mmc_endpoint *sender, *receiver;
	struct mmc_seals seals = { .used = NULL };
	enum mmc_protect mode;
	size_t at = 1;

	if (size == 0)
		return 0;
	mode = data[0] % 2 ? MMC_PROTECT_ENCRYPT : MMC_PROTECT_AUTHENTICATE;
	mmc_seals_enter(&seals);
	sender = open_rank(SENDER, mode, &inners[SENDER]);
	receiver = open_rank(RECEIVER, mode, &inners[RECEIVER]);
	wire_bytes = 0;
	while (at + 2 <= size) {
		uint32_t nbytes = data[at + 1];
		uint8_t act = data[at];

		at += 2;
		if (nbytes > size - at)
			break;
		step(sender, receiver, act, data + at, nbytes);
		at += nbytes;
	}
	MMC_ASSERT(!seals.repeated);
	sender->driver->close(sender);
	receiver->driver->close(receiver);
	mmc_seals_free(&seals);
	free(delivered);
	delivered = NULL;
	return 0;
}
