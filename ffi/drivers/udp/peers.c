/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/peers.h"

#include <stdlib.h>

#include "core/wire/header.h"
#include "support/memory.h"

/* "udp4", with which no other driver's address begins. */
#define ADDRESS_TAG UINT32_C(0x75647034)

/* The offsets of the fields; see peers.h. */
enum {
	ADDRESS_RANK = 4,
	ADDRESS_IP = 8,
	ADDRESS_PORTS = 12,
	ADDRESS_LISTENER = 16,
	ADDRESS_END = 18,
};

void mmc_udp_address_encode(uint8_t *bytes,
			    const struct mmc_udp_address *address)
{
	memset(bytes, 0, MMC_UDP_ADDRESS_BYTES);
	mmc_put_u32(bytes, ADDRESS_TAG);
	mmc_put_u32(bytes + ADDRESS_RANK, address->rank);
	mmc_put_u32(bytes + ADDRESS_IP, address->ip);
	mmc_put_u32(bytes + ADDRESS_PORTS,
		    (uint32_t)address->control_port << 16 | address->data_port);
	mmc_put_u32(bytes + ADDRESS_LISTENER,
		    (uint32_t)address->listener_port << 16);
}

int mmc_udp_address_decode(struct mmc_udp_address *address,
			   const uint8_t *bytes)
{
	uint32_t ports = mmc_get_u32(bytes + ADDRESS_PORTS);
	struct mmc_udp_address read = {
		.rank = mmc_get_u32(bytes + ADDRESS_RANK),
		.ip = mmc_get_u32(bytes + ADDRESS_IP),
		.control_port = (uint16_t)(ports >> 16),
		.data_port = (uint16_t)ports,
		.listener_port =
			(uint16_t)(mmc_get_u32(bytes + ADDRESS_LISTENER) >> 16),
	};

	if (mmc_get_u32(bytes) != ADDRESS_TAG)
		return -MMC_EINVAL;
	for (unsigned i = ADDRESS_END; i < MMC_UDP_ADDRESS_BYTES; i++)
		if (bytes[i] != 0)
			return -MMC_EINVAL;
	/* Addresses from 224.0.0.0 on are multicast, reserved, or broadcast. */
	if (read.ip == 0 || read.ip >> 28 >= 0xe)
		return -MMC_EINVAL;
	if (read.control_port == 0 || read.data_port == 0 ||
	    read.listener_port == 0)
		return -MMC_EINVAL;
	*address = read;
	return 0;
}

/* Returns the key of a source; never 0, which marks a free slot: no rank has port 0. */
static uint64_t key_of(uint32_t ip, uint16_t port)
{
	return (uint64_t)ip << 16 | port;
}

/* Returns the slot that holds `key`, or the free one where it belongs. */
static struct mmc_udp_peer *probe(const struct mmc_udp_peers *peers,
				  uint64_t key)
{
	/*
	 * 2^64 divided by the golden ratio: the product spreads neighbouring ports over
	 * the high bits (Fibonacci hashing).
	 */
	uint64_t mixed = key * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)(mixed >> 32) & peers->mask;

	while (peers->slots[at].key != 0 && peers->slots[at].key != key)
		at = (at + 1) & peers->mask;
	return &peers->slots[at];
}

int mmc_udp_peers_init(struct mmc_udp_peers *peers, uint32_t nranks)
{
	size_t nslots = 4;

	/* Each rank has two entries, and half of the slots stay free. */
	while (nslots < (size_t)nranks * 4)
		nslots *= 2;
	peers->slots = calloc(nslots, sizeof(*peers->slots));
	if (peers->slots == NULL)
		return -MMC_ENOMEM;
	peers->mask = (uint32_t)(nslots - 1);
	return 0;
}

void mmc_udp_peers_destroy(struct mmc_udp_peers *peers)
{
	free(peers->slots);
}

int mmc_udp_peers_add(struct mmc_udp_peers *peers, uint32_t ip, uint16_t port,
		      uint32_t rank)
{
	uint64_t key = key_of(ip, port);
	struct mmc_udp_peer *slot = probe(peers, key);

	if (slot->key == key)
		return -MMC_EINVAL;
	*slot = (struct mmc_udp_peer){ .key = key, .rank = rank };
	return 0;
}

uint32_t mmc_udp_peers_find(const struct mmc_udp_peers *peers, uint32_t ip,
			    uint16_t port)
{
	uint64_t key = key_of(ip, port);
	const struct mmc_udp_peer *slot = probe(peers, key);

	return slot->key == key && port != 0 ? slot->rank : MMC_PEER_UNKNOWN;
}
