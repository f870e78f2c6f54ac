/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures what protection costs per chunk, besides what its library does: that depends on
 * the processor, and `python -m bench.protect` measures it by time. This program is run
 * under callgrind (see bench/counters.py), which counts the instructions in measured().
 * The first argument says what to measure: seal or open.
 */
#include "check.h"
#include "core/wire/header.h"
#include "drivers/protect/protect.h"

#define CHUNK_BYTES 1432
#define NCHUNKS 16368
#define BATCH_CHUNKS 44
#define HEAD_BYTES (MMC_HEADER_BYTES + MMC_SEAL_BYTES)
#define DATAGRAM_BYTES (HEAD_BYTES + CHUNK_BYTES)

enum {
	SENDER,
	RECEIVER,
	NRANKS,
};

_Static_assert(NCHUNKS % BATCH_CHUNKS == 0, "all batches are full");

static uint8_t datagrams[NCHUNKS][DATAGRAM_BYTES];
static uint32_t nsent;
static uint32_t ndelivered;

/* ---- a library that does nothing ----------------------------------------- */

static int derive(const uint8_t *secret, size_t secret_bytes,
		  const uint8_t *info, size_t info_bytes, uint8_t *key)
{
	(void)secret;
	(void)secret_bytes;
	(void)info;
	(void)info_bytes;
	memset(key, 0, MMC_KEY_BYTES);
	return 0;
}

static int open_cipher(const uint8_t *key, bool seals, void **cipher)
{
	(void)key;
	(void)seals;
	*cipher = datagrams;
	return 0;
}

static void close_cipher(void *cipher)
{
	(void)cipher;
}

static int seal(void *cipher, const struct mmc_text *text, uint8_t *tag)
{
	(void)cipher;
	(void)text;
	(void)tag;
	return 0;
}

static bool open(void *cipher, const struct mmc_text *text, const uint8_t *tag)
{
	(void)cipher;
	(void)text;
	(void)tag;
	return true;
}

static const struct mmc_primitive idle = {
	.name = "idle",
	.nonce_bytes = 12,
	.derive = derive,
	.open_cipher = open_cipher,
	.close_cipher = close_cipher,
	.seal = seal,
	.open = open,
};

/* ---- a network without costs --------------------------------------------- */

/* Keeps the heads of datagrams, whose bodies do not matter. */
static int keep(struct mmc_endpoint *endpoint, const struct mmc_parcel *parcels,
		unsigned nparcels)
{
	(void)endpoint;
	for (unsigned i = 0; i < nparcels; i++)
		memcpy(datagrams[nsent++], parcels[i].head, HEAD_BYTES);
	return 0;
}

static int deliver(struct mmc_endpoint *endpoint, struct mmc_event *events,
		   unsigned nmax)
{
	(void)endpoint;
	for (unsigned i = 0; i < nmax; i++)
		events[i] = (struct mmc_event){
			.kind = MMC_EVENT_DATAGRAM,
			.bytes = datagrams[ndelivered++],
			.nbytes = DATAGRAM_BYTES,
			.source = SENDER,
		};
	return (int)nmax;
}

static void forget(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
}

static const struct mmc_driver network = {
	.name = "network",
	.send = keep,
	.poll = deliver,
	.close = forget,
};

/* ---- the measurement ----------------------------------------------------- */

static struct mmc_endpoint *protected(struct mmc_endpoint *inner, uint32_t rank)
{
	const struct mmc_protect_options options = {
		.primitive = &idle,
		.mode = MMC_PROTECT_AUTHENTICATE,
		.rank = rank,
		.nranks = NRANKS,
		.body_bytes = CHUNK_BYTES,
	};
	struct mmc_endpoint *endpoint = NULL;
	struct mmc_secret *secret;

	inner->driver = &network;
	CHECK_EQ(mmc_protect_wrap(&options, inner, &endpoint), 0);
	CHECK_EQ(mmc_secret_create(&secret), 0);
	CHECK_EQ(mmc_protect_start(endpoint, secret), 0);
	mmc_secret_free(secret);
	return endpoint;
}

static uint32_t send_all(struct mmc_endpoint *sender)
{
	static uint8_t headers[BATCH_CHUNKS][MMC_HEADER_BYTES];
	static uint8_t body[CHUNK_BYTES];
	struct mmc_parcel parcels[BATCH_CHUNKS];

	for (unsigned i = 0; i < BATCH_CHUNKS; i++)
		parcels[i] = (struct mmc_parcel){
			.head = headers[i],
			.head_bytes = MMC_HEADER_BYTES,
			.body = body,
			.body_bytes = CHUNK_BYTES,
			.peer = MMC_PEER_ALL,
		};
	while (nsent < NCHUNKS)
		if (sender->driver->send(sender, parcels, BATCH_CHUNKS) != 0)
			return 0;
	return nsent;
}

static uint32_t receive_all(struct mmc_endpoint *receiver)
{
	struct mmc_event events[BATCH_CHUNKS];
	uint32_t ngenuine = 0;

	while (ndelivered < NCHUNKS) {
		int count =
			receiver->driver->poll(receiver, events, BATCH_CHUNKS);

		for (int i = 0; i < count; i++)
			ngenuine += events[i].kind == MMC_EVENT_DATAGRAM;
	}
	return ngenuine;
}

__attribute__((noinline)) static uint32_t
measured(struct mmc_endpoint *const *endpoints, bool opens)
{
	return opens ? receive_all(endpoints[RECEIVER])
		     : send_all(endpoints[SENDER]);
}

int main(int argc, char **argv)
{
	bool opens = argc == 2 && strcmp(argv[1], "open") == 0;
	struct mmc_endpoint inners[NRANKS] = { { .driver = NULL } };
	struct mmc_endpoint *const endpoints[NRANKS] = {
		protected(&inners[SENDER], SENDER),
		protected(&inners[RECEIVER], RECEIVER),
	};
	uint32_t nchunks;

	if (opens)
		send_all(endpoints[SENDER]);
	nchunks = measured(endpoints, opens);
	printf("%" PRIu32 " chunks\n", nchunks);
	for (unsigned i = 0; i < NRANKS; i++)
		endpoints[i]->driver->close(endpoints[i]);
	return nchunks != NCHUNKS;
}
