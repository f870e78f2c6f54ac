/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table that maps the source of a datagram, a port and a queue pair, to its rank.
 */
#ifndef MMC_DRIVERS_VERBS_PEERS_H
#define MMC_DRIVERS_VERBS_PEERS_H

#include "drivers/verbs/address.h"

struct mmc_verbs_peer {
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint32_t qpn; /* 0: the slot is free (QPN 0 belongs to management) */
	uint32_t rank;
};

/* A hash table with linear probing, at most half full. */
struct mmc_verbs_peers {
	struct mmc_verbs_peer *slots;
	uint32_t mask; /* number of slots, a power of two, less 1 */
};

/* Makes an empty table for up to `nqueues` queue pairs. Returns 0 or -MMC_ENOMEM. */
int mmc_verbs_peers_init(struct mmc_verbs_peers *peers, uint32_t nqueues);

void mmc_verbs_peers_destroy(struct mmc_verbs_peers *peers);

/* Adds a rank's queue pair. Returns 0, or -MMC_EINVAL if the table has it already. */
int mmc_verbs_peers_add(struct mmc_verbs_peers *peers, const uint8_t *gid,
			uint32_t qpn, uint32_t rank);

/* Returns the rank to which a queue pair belongs, or MMC_PEER_UNKNOWN. */
uint32_t mmc_verbs_peers_find(const struct mmc_verbs_peers *peers,
			      const uint8_t *gid, uint32_t qpn);

#endif
