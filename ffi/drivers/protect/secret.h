/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for secrets, of which struct mmc_secret of mpimcast/protect.h is one use. */
#ifndef MMC_DRIVERS_PROTECT_SECRET_H
#define MMC_DRIVERS_PROTECT_SECRET_H

#include <mpimcast/protect.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Returns `nbytes` of zeros in pages of their own, which core dumps leave out and children
 * of fork() find empty; NULL if there is no memory. They are locked if the limit allows.
 */
void *mmc_secret_allocate(size_t nbytes);

/* Wipes and frees what mmc_secret_allocate() has returned for `nbytes`, or NULL. */
void mmc_secret_release(void *memory, size_t nbytes);

/*
 * Copies a secret to `bytes`, MMC_SECRET_BYTES long, and wipes it: it keys one team and
 * no other. Returns false if that has happened before.
 */
bool mmc_secret_spend(struct mmc_secret *secret, uint8_t *bytes);

#endif
