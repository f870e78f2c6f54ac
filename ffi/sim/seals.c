/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/seals.h"

#include <stdlib.h>
#include <string.h>

#include "core/wire/header.h"

#define NONCE_BYTES 12

/* The offset basis and the prime of FNV-1a. */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* A key and a nonce that were used together; `taken` in a place that is not empty. */
struct mmc_seal_used {
	uint8_t key[MMC_KEY_BYTES];
	uint8_t nonce[NONCE_BYTES];
	bool taken;
};

struct cipher {
	struct mmc_seals *seals;
	uint8_t key[MMC_KEY_BYTES];
};

static _Thread_local struct mmc_seals *entered;

void mmc_seals_enter(struct mmc_seals *seals)
{
	entered = seals;
}

void mmc_seals_free(struct mmc_seals *seals)
{
	free(seals->used);
	*seals = (struct mmc_seals){ .used = NULL };
}

static uint64_t mix(uint64_t hash, const uint8_t *bytes, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		hash = (hash ^ bytes[i]) * FNV_PRIME;
	return hash;
}

/* ---- which nonces were used ---------------------------------------------- */

/* Returns the place of an entry, or the empty one where it belongs. */
static struct mmc_seal_used *find(const struct mmc_seals *seals,
				  const struct mmc_seal_used *wanted)
{
	uint64_t at = mix(mix(FNV_BASIS, wanted->key, sizeof(wanted->key)),
			  wanted->nonce, sizeof(wanted->nonce));

	for (;; at++) {
		struct mmc_seal_used *used =
			&seals->used[at & (seals->capacity - 1)];

		if (!used->taken ||
		    (memcmp(used->key, wanted->key, sizeof(used->key)) == 0 &&
		     memcmp(used->nonce, wanted->nonce, sizeof(used->nonce)) ==
			     0))
			return used;
	}
}

/* Doubles the table. Returns false if there is no memory for that. */
static bool grow(struct mmc_seals *seals)
{
	struct mmc_seals larger = *seals;

	larger.capacity = seals->capacity == 0 ? 1024 : 2 * seals->capacity;
	larger.used = calloc(larger.capacity, sizeof(*larger.used));
	if (larger.used == NULL)
		return false;
	for (uint64_t i = 0; i < seals->capacity; i++)
		if (seals->used[i].taken)
			*find(&larger, &seals->used[i]) = seals->used[i];
	free(seals->used);
	*seals = larger;
	return true;
}

static void note(struct mmc_seals *seals, const struct mmc_seal_used *use)
{
	struct mmc_seal_used *place;

	if (2 * seals->count >= seals->capacity && !grow(seals)) {
		seals->out_of_memory = true;
		return;
	}
	place = find(seals, use);
	seals->repeated = seals->repeated || place->taken;
	seals->count += !place->taken;
	*place = *use;
}

/* ---- the primitive ------------------------------------------------------- */

static int derive(const uint8_t *secret, size_t secret_bytes,
		  const uint8_t *info, size_t info_bytes, uint8_t *key)
{
	uint64_t hash =
		mix(mix(FNV_BASIS, secret, secret_bytes), info, info_bytes);

	mmc_put_u64(key, hash);
	mmc_put_u64(key + 8, hash * FNV_PRIME);
	return 0;
}

static int open_cipher(const uint8_t *key, bool seals, void **cipher)
{
	struct cipher *new = malloc(sizeof(*new));

	(void)seals;
	if (new == NULL)
		return -MMC_ENOMEM;
	new->seals = entered;
	memcpy(new->key, key, sizeof(new->key));
	*cipher = new;
	return 0;
}

static void write_tag(const struct cipher *cipher, const struct mmc_text *text,
		      uint8_t *tag)
{
	uint64_t hash = mix(FNV_BASIS, cipher->key, sizeof(cipher->key));

	hash = mix(hash, text->nonce, NONCE_BYTES);
	hash = mix(hash, text->header, text->header_bytes);
	hash = mix(hash, text->body, text->body_bytes);
	mmc_put_u64(tag, hash);
	mmc_put_u64(tag + 8, ~hash);
}

static int seal(void *cipher, const struct mmc_text *text, uint8_t *tag)
{
	struct cipher *own = cipher;
	struct mmc_seal_used use = { .taken = true };

	memcpy(use.key, own->key, sizeof(use.key));
	memcpy(use.nonce, text->nonce, sizeof(use.nonce));
	note(own->seals, &use);
	write_tag(own, text, tag);
	if (text->to != NULL && text->body_bytes > 0)
		memcpy(text->to, text->body, text->body_bytes);
	return 0;
}

static bool open_text(void *cipher, const struct mmc_text *text,
		      const uint8_t *tag)
{
	uint8_t expected[MMC_TAG_BYTES];
	uint8_t difference = 0;

	write_tag(cipher, text, expected);
	/* A fuzzer reads the operands of memcmp(), and would learn the tag from it. */
	for (unsigned i = 0; i < sizeof(expected); i++)
		difference |= expected[i] ^ tag[i];
	if (difference != 0)
		return false;
	if (text->to != NULL && text->body_bytes > 0)
		memcpy(text->to, text->body, text->body_bytes);
	return true;
}

const struct mmc_primitive mmc_sim_primitive = {
	.name = "a stand-in",
	.nonce_bytes = NONCE_BYTES,
	.derive = derive,
	.open_cipher = open_cipher,
	.close_cipher = free,
	.seal = seal,
	.open = open_text,
};
