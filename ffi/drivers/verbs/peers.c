/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/peers.h"

#include <stdlib.h>
#include <string.h>

/* Returns the slot that holds the queue pair, or the free one where it belongs. */
static struct mmc_verbs_peer *probe(const struct mmc_verbs_peers *peers,
				    const uint8_t *gid, uint32_t qpn)
{
	uint64_t key;
	uint32_t at;

	/* Within a fabric the first halves of GIDs are equal: hash the rest. */
	memcpy(&key, gid + MMC_VERBS_GID_BYTES - sizeof(key), sizeof(key));
	/*
	 * 2^64 divided by the golden ratio: the product spreads neighbouring numbers
	 * over the high bits (Fibonacci hashing).
	 */
	key = (key ^ (uint64_t)qpn << 8) * UINT64_C(0x9e3779b97f4a7c15);
	at = (uint32_t)(key >> 32) & peers->mask;
	while (peers->slots[at].qpn != 0 &&
	       (peers->slots[at].qpn != qpn ||
		memcmp(peers->slots[at].gid, gid, MMC_VERBS_GID_BYTES) != 0))
		at = (at + 1) & peers->mask;
	return &peers->slots[at];
}

int mmc_verbs_peers_init(struct mmc_verbs_peers *peers, uint32_t nqueues)
{
	size_t nslots = 4;

	while (nslots < (size_t)nqueues * 2)
		nslots *= 2;
	peers->slots = calloc(nslots, sizeof(*peers->slots));
	if (peers->slots == NULL)
		return -MMC_ENOMEM;
	peers->mask = (uint32_t)(nslots - 1);
	return 0;
}

void mmc_verbs_peers_destroy(struct mmc_verbs_peers *peers)
{
	free(peers->slots);
}

int mmc_verbs_peers_add(struct mmc_verbs_peers *peers, const uint8_t *gid,
			uint32_t qpn, uint32_t rank)
{
	struct mmc_verbs_peer *slot = probe(peers, gid, qpn);

	if (slot->qpn != 0)
		return -MMC_EINVAL;
	memcpy(slot->gid, gid, sizeof(slot->gid));
	slot->qpn = qpn;
	slot->rank = rank;
	return 0;
}

uint32_t mmc_verbs_peers_find(const struct mmc_verbs_peers *peers,
			      const uint8_t *gid, uint32_t qpn)
{
	const struct mmc_verbs_peer *slot = probe(peers, gid, qpn);

	return slot->qpn != 0 && qpn != 0 ? slot->rank : MMC_PEER_UNKNOWN;
}
