/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonces that are unique by construction. Each sender has a key of its own, and numbers
 * what it seals: chunks, whether sent for the first time or again, and apart from them
 * control messages and parity chunks. No number comes twice, whatever is in the datagram:
 *
 *      0          4            8                        16
 *     | 0 u32    | rank u32   | class 1 bit, number     |
 *
 * A primitive with shorter nonces takes the end of it.
 */
#ifndef MMC_DRIVERS_PROTECT_NONCE_H
#define MMC_DRIVERS_PROTECT_NONCE_H

#include "core/wire/header.h"
#include "drivers/protect/primitive.h"

/* The classes of datagrams, which are numbered and checked for replays apart. */
enum mmc_nonce_class {
	MMC_NONCE_CHUNK,
	MMC_NONCE_CONTROL,
	MMC_NONCE_CLASSES,
};

/*
 * The greatest number that is sealed. Then the key ends: far from where numbers wrap, and
 * where an attacker's advantage against AES-128-GCM is still below 2^-30 with chunks of
 * 9 KB (2^49 blocks; NIST SP 800-38D, RFC 8446 section 5.5).
 */
#define MMC_NONCE_NUMBER_MAX (UINT64_C(1) << 40)

/* Returns the class of a datagram whose header has this index. */
static inline enum mmc_nonce_class mmc_nonce_class_of(uint32_t index)
{
	return index & MMC_INDEX_CONTROL ? MMC_NONCE_CONTROL : MMC_NONCE_CHUNK;
}

/* Writes a nonce, MMC_NONCE_BYTES_MAX long. `number` is below 2^63. */
static inline void mmc_nonce_write(uint8_t *nonce, uint32_t rank,
				   enum mmc_nonce_class class, uint64_t number)
{
	mmc_put_u32(nonce, 0);
	mmc_put_u32(nonce + 4, rank);
	mmc_put_u64(nonce + 8, (uint64_t) class << 63 | number);
}

/*
 * Takes the number behind `*latest`, and makes it the latest. Returns 0, or -MMC_EIO with
 * the reason set if the key has ended.
 */
int mmc_nonce_take(uint64_t *latest, uint64_t *number);

#endif
