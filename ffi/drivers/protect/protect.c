/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/protect.h"

#include <stdlib.h>

#include "core/wire/header.h"
#include "drivers/protect/keys.h"
#include "drivers/protect/nonce.h"
#include "drivers/protect/replay.h"
#include "drivers/wrapper.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/error.h"

#define NUMBER_BYTES 8
#define HEAD_BYTES (MMC_HEADER_BYTES + MMC_SEAL_BYTES)

_Static_assert(NUMBER_BYTES + MMC_TAG_BYTES == MMC_SEAL_BYTES,
	       "a seal is a number and a tag");

/* The datagrams that are sealed, or opened, for one call of the driver below. */
#define BATCH MMC_BATCH_DATAGRAMS_MAX

struct protect {
	struct mmc_wrapper wrapper;
	struct mmc_protect_options options;
	struct mmc_keys keys;
	uint64_t sealed[MMC_NONCE_CLASSES]; /* the latest numbers */
	/* The replay windows of each rank, one a class: [nranks * MMC_NONCE_CLASSES]. */
	struct mmc_replay *replays;
	uint64_t *words; /* of all replays */
	uint8_t heads[BATCH][HEAD_BYTES];
	struct mmc_parcel parcels[BATCH];
	/* Bodies that were encrypted or decrypted, BATCH each; NULL without encryption. */
	uint8_t *sealed_bodies;
	uint8_t *opened_bodies;
};

static struct protect *protect_of(struct mmc_endpoint *endpoint)
{
	return (struct protect *)endpoint;
}

static bool encrypts(const struct protect *protect)
{
	return protect->options.mode == MMC_PROTECT_ENCRYPT;
}

/* Returns the end of a nonce that the primitive takes. */
static const uint8_t *end_of(const struct protect *protect,
			     const uint8_t *nonce)
{
	return nonce + MMC_NONCE_BYTES_MAX -
	       protect->options.primitive->nonce_bytes;
}

/* Returns place `i` of an array of bodies, NULL if bodies stay as they are. */
static uint8_t *place_of(const struct protect *protect, uint8_t *bodies,
			 unsigned i)
{
	return bodies == NULL
		       ? NULL
		       : bodies + (size_t)i * protect->options.body_bytes;
}

/* ---- sending ------------------------------------------------------------- */

/* Seals a parcel as parcel `i` of the batch. Returns 0 or a negative error. */
static int seal(struct protect *protect, const struct mmc_parcel *parcel,
		unsigned i, void *cipher)
{
	enum mmc_nonce_class class =
		mmc_nonce_class_of(mmc_header_peek(parcel->head).index);
	uint8_t *to = place_of(protect, protect->sealed_bodies, i);
	uint8_t *head = protect->heads[i];
	uint8_t nonce[MMC_NONCE_BYTES_MAX];
	const struct mmc_text text = {
		.nonce = end_of(protect, nonce),
		.header = head,
		.header_bytes = MMC_HEADER_BYTES,
		.body = parcel->body,
		.body_bytes = parcel->body_bytes,
		.to = to,
	};
	uint64_t number;
	int rv = mmc_nonce_take(&protect->sealed[class], &number);

	MMC_ASSERT(parcel->head_bytes == MMC_HEADER_BYTES &&
		   parcel->body_bytes <= protect->options.body_bytes);
	if (rv != 0)
		return rv;
	mmc_nonce_write(nonce, protect->options.rank, class, number);
	memcpy(head, parcel->head, MMC_HEADER_BYTES);
	mmc_put_u64(head + MMC_HEADER_BYTES, number);
	protect->parcels[i] = *parcel;
	protect->parcels[i].head = head;
	protect->parcels[i].head_bytes = HEAD_BYTES;
	if (to != NULL)
		protect->parcels[i].body = to;
	return protect->options.primitive->seal(
		cipher, &text, head + MMC_HEADER_BYTES + NUMBER_BYTES);
}

static int protect_send(struct mmc_endpoint *endpoint,
			const struct mmc_parcel *parcels, unsigned nparcels)
{
	struct protect *protect = protect_of(endpoint);
	struct mmc_endpoint *inner = protect->wrapper.inner;
	void *cipher =
		mmc_keys_cipher(&protect->keys, protect->options.rank, true);
	int rv = cipher == NULL ? -MMC_EIO : 0;

	while (rv == 0 && nparcels > 0) {
		unsigned count = mmc_min_u32(nparcels, BATCH);

		for (unsigned i = 0; rv == 0 && i < count; i++)
			rv = seal(protect, &parcels[i], i, cipher);
		if (rv == 0)
			rv = inner->driver->send(inner, protect->parcels,
						 count);
		parcels += count;
		nparcels -= count;
	}
	return rv;
}

/* ---- receiving ----------------------------------------------------------- */

/*
 * Opens a datagram from another rank; `to` is where its decrypted body goes. Returns
 * whether it is genuine; its event is then that of the datagram as it was before it was
 * sealed. Writes its class and number if it is.
 */
static bool open_datagram(struct protect *protect, struct mmc_event *event,
			  uint8_t *to, enum mmc_nonce_class *class,
			  uint64_t *number)
{
	/* A driver may deliver what follows the header at another place. */
	const uint8_t *seal = event->body != NULL
				      ? event->body
				      : event->bytes + MMC_HEADER_BYTES;
	uint8_t nonce[MMC_NONCE_BYTES_MAX];
	struct mmc_text text = {
		.nonce = end_of(protect, nonce),
		.header = event->bytes,
		.header_bytes = MMC_HEADER_BYTES,
		.body = seal + MMC_SEAL_BYTES,
		.to = to,
	};
	void *cipher;

	if (event->nbytes < HEAD_BYTES ||
	    event->nbytes - HEAD_BYTES > protect->options.body_bytes ||
	    event->source == protect->options.rank)
		return false;
	text.body_bytes = event->nbytes - HEAD_BYTES;
	*class = mmc_nonce_class_of(mmc_header_peek(event->bytes).index);
	*number = mmc_get_u64(seal);
	cipher = mmc_keys_cipher(&protect->keys, event->source, false);
	if (cipher == NULL || *number > MMC_NONCE_NUMBER_MAX)
		return false;
	mmc_nonce_write(nonce, event->source, *class, *number);
	if (!protect->options.primitive->open(cipher, &text,
					      seal + NUMBER_BYTES))
		return false;
	event->body = to != NULL ? to : text.body;
	event->nbytes -= MMC_SEAL_BYTES;
	return true;
}

/* Turns the event of a datagram into that of its refusal. */
static void refuse(struct mmc_event *event, enum mmc_refusal refusal)
{
	event->kind = MMC_EVENT_REFUSED;
	event->refusal = refusal;
}

/* Opens the datagram of an event, if that is one, or refuses it. */
static void take(struct protect *protect, struct mmc_event *event, uint8_t *to)
{
	enum mmc_nonce_class class;
	uint64_t number;

	if (event->kind != MMC_EVENT_DATAGRAM ||
	    event->source >= protect->options.nranks)
		return;
	if (!open_datagram(protect, event, to, &class, &number))
		refuse(event, MMC_REFUSED_FORGED);
	else if (!mmc_replay_accept(
			 &protect->replays[event->source * MMC_NONCE_CLASSES +
					   class],
			 number))
		refuse(event, MMC_REFUSED_REPLAYED);
}

static int protect_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
			unsigned nmax)
{
	struct protect *protect = protect_of(endpoint);
	int rv = mmc_wrapper_poll(&protect->wrapper, events,
				  mmc_min_u32(nmax, BATCH));

	for (int i = 0; i < rv; i++)
		take(protect, &events[i],
		     place_of(protect, protect->opened_bodies, (unsigned)i));
	return rv;
}

/* ---- the driver ---------------------------------------------------------- */

static int protect_connect(struct mmc_endpoint *endpoint,
			   const uint8_t *addresses)
{
	struct protect *protect = protect_of(endpoint);
	struct mmc_endpoint *inner = protect->wrapper.inner;

	if (protect->keys.memory == NULL) {
		mmc_error_set("a protected team needs its secret before it is "
			      "connected");
		return -MMC_EINVAL;
	}
	return inner->driver->connect(inner, addresses);
}

static uint64_t protect_deadline_ns(struct mmc_endpoint *endpoint)
{
	struct mmc_endpoint *inner = protect_of(endpoint)->wrapper.inner;

	return inner->driver->deadline_ns(inner);
}

static void protect_close(struct mmc_endpoint *endpoint)
{
	struct protect *protect = protect_of(endpoint);

	protect->wrapper.inner->driver->close(protect->wrapper.inner);
	mmc_keys_destroy(&protect->keys);
	free(protect->opened_bodies);
	free(protect->sealed_bodies);
	free(protect->words);
	free(protect->replays);
	free(protect);
}

static int allocate(struct protect *protect)
{
	uint32_t nranks = protect->options.nranks;
	uint32_t each_words =
		MMC_PROTECT_CHUNK_WORDS + MMC_PROTECT_CONTROL_WORDS;
	size_t bodies_bytes = (size_t)BATCH * protect->options.body_bytes;

	if (mmc_keys_init(&protect->keys, protect->options.primitive,
			  protect->options.mode, protect->options.team,
			  nranks) != 0)
		return -MMC_ENOMEM;
	protect->replays = calloc((size_t)nranks * MMC_NONCE_CLASSES,
				  sizeof(*protect->replays));
	protect->words =
		calloc((size_t)nranks * each_words, sizeof(*protect->words));
	if (protect->replays == NULL || protect->words == NULL)
		return -MMC_ENOMEM;
	for (uint32_t rank = 0; rank < nranks; rank++) {
		struct mmc_replay *replays =
			&protect->replays[rank * MMC_NONCE_CLASSES];
		uint64_t *words = &protect->words[(size_t)rank * each_words];

		mmc_replay_init(&replays[MMC_NONCE_CHUNK], words,
				MMC_PROTECT_CHUNK_WORDS);
		mmc_replay_init(&replays[MMC_NONCE_CONTROL],
				words + MMC_PROTECT_CHUNK_WORDS,
				MMC_PROTECT_CONTROL_WORDS);
	}
	if (!encrypts(protect))
		return 0;
	protect->sealed_bodies = malloc(bodies_bytes);
	protect->opened_bodies = malloc(bodies_bytes);
	return protect->sealed_bodies == NULL || protect->opened_bodies == NULL
		       ? -MMC_ENOMEM
		       : 0;
}

/* Makes the wrapper's driver; of what `inner` can do, all that precedes a check ends. */
static void set_driver(struct protect *protect, struct mmc_endpoint *inner)
{
	struct mmc_driver *driver = &protect->wrapper.driver;

	mmc_wrapper_init(&protect->wrapper, inner);
	driver->name = "protect";
	driver->connect = protect_connect;
	driver->poll = protect_poll;
	driver->send = protect_send;
	driver->deadline_ns =
		inner->driver->deadline_ns == NULL ? NULL : protect_deadline_ns;
	driver->close = protect_close;
	driver->begin_placement = NULL;
	driver->end_placement = NULL;
	driver->register_memory = NULL;
	driver->deregister_memory = NULL;
	driver->grant_read = NULL;
	driver->revoke_read = NULL;
	driver->read = NULL;
	protect->wrapper.endpoint.read_bytes_max = 0;
}

int mmc_protect_wrap(const struct mmc_protect_options *options,
		     struct mmc_endpoint *inner, struct mmc_endpoint **endpoint)
{
	struct protect *protect = calloc(1, sizeof(*protect));

	if (protect == NULL) {
		inner->driver->close(inner);
		return -MMC_ENOMEM;
	}
	protect->options = *options;
	set_driver(protect, inner);
	if (allocate(protect) != 0) {
		protect_close(&protect->wrapper.endpoint);
		return -MMC_ENOMEM;
	}
	*endpoint = &protect->wrapper.endpoint;
	return 0;
}

int mmc_protect_start(struct mmc_endpoint *endpoint, struct mmc_secret *secret)
{
	return mmc_keys_start(&protect_of(endpoint)->keys, secret);
}
