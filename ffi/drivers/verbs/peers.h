/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank a datagram came from, by the port and the queue that sent it. */
#ifndef MMC_DRIVERS_VERBS_PEERS_H
#define MMC_DRIVERS_VERBS_PEERS_H

#include "drivers/verbs/address.h"

struct mmc_verbs_peer {
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint32_t qpn; /* 0 if free: that is the management's */
	uint32_t rank;
};

/* A hash table with linear probing, at most half full. */
struct mmc_verbs_peers {
	struct mmc_verbs_peer *slots;
	uint32_t mask; /* slots - 1, a power of two */
};

/* Makes an empty table for `nqueues` in all. Returns 0 or -MMC_ENOMEM. */
int mmc_verbs_peers_init(struct mmc_verbs_peers *peers, uint32_t nqueues);

void mmc_verbs_peers_destroy(struct mmc_verbs_peers *peers);

/* Adds a rank's queue. Returns 0, or -MMC_EINVAL if it is there already. */
int mmc_verbs_peers_add(struct mmc_verbs_peers *peers, const uint8_t *gid,
			uint32_t qpn, uint32_t rank);

/* The rank whose queue that is, or MMC_PEER_UNKNOWN. */
uint32_t mmc_verbs_peers_find(const struct mmc_verbs_peers *peers,
			      const uint8_t *gid, uint32_t qpn);

#endif
