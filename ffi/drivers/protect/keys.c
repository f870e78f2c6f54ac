/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/keys.h"

#include <stdlib.h>
#include <string.h>

#include "core/wire/header.h"
#include "drivers/protect/secret.h"
#include "support/assert.h"
#include "support/error.h"

/*
 * The info parameter of HKDF, which says what a key is for, begins with this label. The
 * team's channel, the mode, the sender's rank and the primitive's name follow it, so that
 * no two uses of a secret share a key.
 */
static const char label[] = "mpimcast protect 1";

#define INFO_BYTES (sizeof(label) + 8 + 4 + 4)
#define NAME_BYTES_MAX 64

static size_t memory_bytes(const struct mmc_keys *keys)
{
	return MMC_SECRET_BYTES + (size_t)keys->nranks * MMC_KEY_BYTES;
}

static uint8_t *key_of(const struct mmc_keys *keys, uint32_t sender)
{
	return keys->memory + MMC_SECRET_BYTES + (size_t)sender * MMC_KEY_BYTES;
}

int mmc_keys_init(struct mmc_keys *keys, const struct mmc_primitive *primitive,
		  enum mmc_protect mode, uint64_t team, uint32_t nranks)
{
	*keys = (struct mmc_keys){
		.primitive = primitive,
		.team = team,
		.mode = mode,
		.nranks = nranks,
		.ciphers = calloc(nranks, sizeof(*keys->ciphers)),
	};
	return keys->ciphers == NULL ? -MMC_ENOMEM : 0;
}

int mmc_keys_start(struct mmc_keys *keys, struct mmc_secret *secret)
{
	uint8_t *memory;

	if (keys->memory != NULL) {
		mmc_error_set("a team takes one secret; open another team");
		return -MMC_EINVAL;
	}
	memory = mmc_secret_allocate(memory_bytes(keys));
	if (memory == NULL)
		return -MMC_ENOMEM;
	if (!mmc_secret_spend(secret, memory)) {
		mmc_secret_release(memory, memory_bytes(keys));
		mmc_error_set("a secret keys one team only; draw another");
		return -MMC_EINVAL;
	}
	keys->memory = memory;
	return 0;
}

/* Expands the secret to the key of a sender. Returns 0 or a negative error. */
static int derive(struct mmc_keys *keys, uint32_t sender)
{
	size_t name_bytes = strlen(keys->primitive->name);
	uint8_t info[INFO_BYTES + NAME_BYTES_MAX];
	uint8_t *at = info + sizeof(label);

	MMC_ASSERT(name_bytes <= NAME_BYTES_MAX);
	memcpy(info, label, sizeof(label));
	mmc_put_u64(at, keys->team);
	mmc_put_u32(at + 8, keys->mode);
	mmc_put_u32(at + 12, sender);
	memcpy(info + INFO_BYTES, keys->primitive->name, name_bytes);
	return keys->primitive->derive(keys->memory, MMC_SECRET_BYTES, info,
				       INFO_BYTES + name_bytes,
				       key_of(keys, sender));
}

void *mmc_keys_cipher(struct mmc_keys *keys, uint32_t sender, bool seals)
{
	void **cipher = &keys->ciphers[sender];

	if (*cipher != NULL)
		return *cipher;
	if (keys->memory == NULL) {
		mmc_error_set("this team has no secret yet");
		return NULL;
	}
	if (derive(keys, sender) != 0)
		return NULL;
	if (keys->primitive->open_cipher(key_of(keys, sender), seals, cipher) !=
	    0) {
		mmc_error_set("no memory for the key of rank %u", sender);
		*cipher = NULL;
	}
	return *cipher;
}

void mmc_keys_destroy(struct mmc_keys *keys)
{
	for (uint32_t rank = 0; keys->ciphers != NULL && rank < keys->nranks;
	     rank++)
		if (keys->ciphers[rank] != NULL)
			keys->primitive->close_cipher(keys->ciphers[rank]);
	free(keys->ciphers);
	mmc_secret_release(keys->memory, memory_bytes(keys));
}
