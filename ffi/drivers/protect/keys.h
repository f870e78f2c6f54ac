/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of a team: each sender has one of its own, which all ranks expand from the
 * secret when they need it first. Only that sender seals with it.
 */
#ifndef MMC_DRIVERS_PROTECT_KEYS_H
#define MMC_DRIVERS_PROTECT_KEYS_H

#include "drivers/protect/primitive.h"

struct mmc_keys {
	const struct mmc_primitive *primitive;
	uint64_t team; /* the team's channel */
	uint32_t mode; /* enum mmc_protect */
	uint32_t nranks;
	/* The secret, and then a key for each rank; NULL until mmc_keys_start(). */
	uint8_t *memory;
	void **ciphers; /* [nranks], NULL where none has been needed */
};

/*
 * Prepares the keys of the `nranks` ranks of `team`, a channel; they can be used once the
 * secret is known. Returns 0 or -MMC_ENOMEM. mmc_keys_destroy() must be called in either
 * case.
 */
int mmc_keys_init(struct mmc_keys *keys, const struct mmc_primitive *primitive,
		  enum mmc_protect mode, uint64_t team, uint32_t nranks);

/*
 * Takes the secret, which is wiped. Returns 0, -MMC_ENOMEM, or -MMC_EINVAL if the secret
 * was spent before, or these keys have one: a second would begin at nonces that are used.
 */
int mmc_keys_start(struct mmc_keys *keys, struct mmc_secret *secret);

/*
 * Returns the cipher of a sender: to seal if that is this rank (`seals`), else to open.
 * Returns NULL, with the reason set, if there is no memory for it or no key yet.
 */
void *mmc_keys_cipher(struct mmc_keys *keys, uint32_t sender, bool seals);

/* Wipes and frees all keys. */
void mmc_keys_destroy(struct mmc_keys *keys);

#endif
