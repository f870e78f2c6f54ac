/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AES-128-GCM (NIST SP 800-38D), and HKDF (RFC 5869), of OpenSSL's libcrypto 3, opened at
 * run time. Of a text that is not encrypted, GCM computes its tag alone, called GMAC.
 */
#ifndef MMC_DRIVERS_PROTECT_LIBCRYPTO_H
#define MMC_DRIVERS_PROTECT_LIBCRYPTO_H

#include "drivers/protect/primitive.h"

/* Valid once mmc_libcrypto_open() has returned 0. */
extern const struct mmc_primitive mmc_libcrypto;

/* As mmc_primitive_open(), but checks no answers; one thread at a time calls this. */
int mmc_libcrypto_open(const char *library);

/*
 * Expands a secret to a key of MMC_KEY_BYTES by HKDF with SHA-256. `info` says what the
 * key is for. Returns 0, or -MMC_ENODEV with the reason set.
 */
int mmc_libcrypto_derive(const uint8_t *secret, size_t secret_bytes,
			 const uint8_t *info, size_t info_bytes, uint8_t *key);

#endif
