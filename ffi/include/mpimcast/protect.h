/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection of a team's datagrams: what it is, by which library, and the secret that the
 * ranks of a team share. See the section on protection in ffi/PROTOCOL.md.
 */
#ifndef MPIMCAST_PROTECT_H
#define MPIMCAST_PROTECT_H

#include <stdint.h>

/* How a team's datagrams are protected: the setting PROTECT. */
enum mmc_protect {
	MMC_PROTECT_OFF = 0,
	MMC_PROTECT_AUTHENTICATE = 1, /* each has a tag that needs the key */
	MMC_PROTECT_ENCRYPT = 2, /* and what follows the header is encrypted */
};

/* What computes tags and encrypts, from the fastest on. */
enum mmc_primitive_kind {
	MMC_PRIMITIVE_AEGIS = 0, /* AEGIS-128L of libaegis */
	MMC_PRIMITIVE_AES = 1, /* AES-128-GCM of libcrypto, or its GMAC alone */
};

#define MMC_PRIMITIVES 2    /* how many kinds there are */
#define MMC_SECRET_BYTES 32 /* of a secret */
#define MMC_SEAL_BYTES 24   /* by which protection makes a datagram longer */

/*
 * Opens the library of a kind of primitive and checks it by known answers; a library
 * that was opened stays open, and is not opened again. `library` is the path of a shared
 * object, or "" for the library's usual name. Returns 0, or -MMC_ENODEV with the reason
 * set. Any thread may call this.
 */
int mmc_primitive_open(uint32_t kind, const char *library);

/* Returns the name of a kind of primitive, for people; "" if there is no such kind. */
const char *mmc_primitive_name(uint32_t kind);

/*
 * A secret that all ranks of one team share. It is in memory of its own that is left out
 * of core dumps, is zero in children of fork(), is not swapped out if the limit of locked
 * memory allows, and is wiped when it is freed.
 */
struct mmc_secret;

/* Writes a new secret, all zeros, to `*secret`. Returns 0 or -MMC_ENOMEM. */
int mmc_secret_create(struct mmc_secret **secret);

/* Fills a secret with random bits from the system. Returns 0 or -MMC_EIO. */
int mmc_secret_draw(struct mmc_secret *secret);

/* Returns the MMC_SECRET_BYTES of a secret, to be passed to or from other ranks. */
uint8_t *mmc_secret_bytes(struct mmc_secret *secret);

/* Wipes and frees a secret, which may be NULL. */
void mmc_secret_free(struct mmc_secret *secret);

#endif
