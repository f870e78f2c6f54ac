/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address that a rank publishes, and the table that maps the source of a datagram
 * to the rank that has sent it.
 */
#ifndef MMC_DRIVERS_UDP_PEERS_H
#define MMC_DRIVERS_UDP_PEERS_H

#include "drivers/driver.h"

#define MMC_UDP_ADDRESS_BYTES 64

/*
 * A rank's address. The bytes that ranks exchange are, in network order:
 *
 *     0     4      8      12             14          16              18
 *     | tag | rank | IPv4 | control port | data port | listener port | zeros ...
 */
struct mmc_udp_address {
	uint32_t rank;
	uint32_t ip;	       /* host order */
	uint16_t control_port; /* UDP: it receives control here */
	uint16_t data_port; /* UDP: it receives repairs, sends multicast here */
	uint16_t listener_port; /* TCP: its listener (listener.h) */
};

/* Writes MMC_UDP_ADDRESS_BYTES. */
void mmc_udp_address_encode(uint8_t *bytes,
			    const struct mmc_udp_address *address);

/*
 * Reads MMC_UDP_ADDRESS_BYTES. Returns 0, or -MMC_EINVAL if they are no address of this
 * driver: the tag is wrong, the IP address is not a unicast address, a port is 0, or a
 * byte of the padding is not 0. `address` is written only on success.
 */
int mmc_udp_address_decode(struct mmc_udp_address *address,
			   const uint8_t *bytes);

struct mmc_udp_peer {
	uint64_t key; /* made of the IPv4 address and port; 0: a free slot */
	uint32_t rank;
};

/* A hash table with linear probing, at most half full. */
struct mmc_udp_peers {
	struct mmc_udp_peer *slots;
	uint32_t mask; /* number of slots, a power of two, less 1 */
};

/* Makes an empty table for `nranks`. Returns 0 or -MMC_ENOMEM. */
int mmc_udp_peers_init(struct mmc_udp_peers *peers, uint32_t nranks);

void mmc_udp_peers_destroy(struct mmc_udp_peers *peers);

/*
 * Adds an address that `rank` sends from. Each rank has two: one for its control
 * socket, and one for its data socket. Returns 0, or -MMC_EINVAL if the table has the
 * address already.
 */
int mmc_udp_peers_add(struct mmc_udp_peers *peers, uint32_t ip, uint16_t port,
		      uint32_t rank);

/* Returns the rank that sends from `ip` and `port`, or MMC_PEER_UNKNOWN. */
uint32_t mmc_udp_peers_find(const struct mmc_udp_peers *peers, uint32_t ip,
			    uint16_t port);

#endif
