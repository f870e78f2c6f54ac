/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secrets of simulated jobs. They protect nothing, so they lie in ordinary memory, and are
 * not wiped.
 */
#include "drivers/protect/secret.h"

#include <mpimcast/errors.h>
#include <stdlib.h>
#include <string.h>

struct mmc_secret {
	uint8_t bytes[MMC_SECRET_BYTES];
	bool spent;
};

void *mmc_secret_allocate(size_t nbytes)
{
	return calloc(1, nbytes);
}

void mmc_secret_release(void *memory, size_t nbytes)
{
	(void)nbytes;
	free(memory);
}

int mmc_secret_create(struct mmc_secret **secret)
{
	*secret = calloc(1, sizeof(**secret));
	return *secret == NULL ? -MMC_ENOMEM : 0;
}

uint8_t *mmc_secret_bytes(struct mmc_secret *secret)
{
	return secret->bytes;
}

bool mmc_secret_spend(struct mmc_secret *secret, uint8_t *bytes)
{
	if (secret->spent)
		return false;
	memcpy(bytes, secret->bytes, sizeof(secret->bytes));
	secret->spent = true;
	return true;
}

void mmc_secret_free(struct mmc_secret *secret)
{
	free(secret);
}
