/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A primitive seals a datagram with a key and a nonce, and opens it again if nothing of it
 * has been changed. Libraries of cryptography implement primitives; this project has no
 * cryptographic code of its own.
 *
 * A primitive is an AEAD (RFC 5116). To authenticate without encrypting, all of a
 * datagram is associated data, or goes into the library's MAC of the same family.
 */
#ifndef MMC_DRIVERS_PROTECT_PRIMITIVE_H
#define MMC_DRIVERS_PROTECT_PRIMITIVE_H

#include <mpimcast/protect.h>

#include "core/types.h"

#define MMC_KEY_BYTES 16
#define MMC_NONCE_BYTES_MAX 16
#define MMC_TAG_BYTES 16

/* The parts of one datagram that is to be sealed or opened. */
struct mmc_text {
	const uint8_t *nonce;  /* never used before with the key */
	const uint8_t *header; /* what is authenticated, but stays readable */
	uint32_t header_bytes;
	const uint8_t *body;
	uint32_t body_bytes;
	/*
	 * Where the encrypted body, or the decrypted one, goes; it may not overlap
	 * `body`. NULL: the body is not encrypted, but only authenticated.
	 */
	uint8_t *to;
};

struct mmc_primitive {
	const char *name;
	uint32_t
		nonce_bytes; /* of each text's nonce, MMC_NONCE_BYTES_MAX at most */

	/*
	 * Expands a secret to a key of MMC_KEY_BYTES; `info` says what the key is for.
	 * Returns 0, or -MMC_ENODEV with the reason set.
	 */
	int (*derive)(const uint8_t *secret, size_t secret_bytes,
		      const uint8_t *info, size_t info_bytes, uint8_t *key);

	/*
	 * Makes a cipher of a key, for seal() alone or open() alone. The key must stay
	 * where it is until close_cipher(). Returns 0 or -MMC_ENOMEM.
	 */
	int (*open_cipher)(const uint8_t *key, bool seals, void **cipher);

	/* Wipes and frees a cipher. */
	void (*close_cipher)(void *cipher);

	/* Seals a text; writes its tag, MMC_TAG_BYTES long. Returns 0 or -MMC_EIO. */
	int (*seal)(void *cipher, const struct mmc_text *text, uint8_t *tag);

	/*
	 * Returns whether `tag` is that of the text; the library compares them in
	 * constant time. If not, what has been written to `to` is of no use.
	 */
	bool (*open)(void *cipher, const struct mmc_text *text,
		     const uint8_t *tag);
};

/*
 * Returns the primitive of a kind, once mmc_primitive_open() has opened its library; NULL
 * before, or if there is no such kind.
 */
const struct mmc_primitive *mmc_primitive_find(uint32_t kind);

#endif
