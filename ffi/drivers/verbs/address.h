/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address that a rank publishes. Ranks exchange these bytes, in network order:
 *
 *     0         4      8     24    26    27         28
 *     | tag u32 | rank | GID | LID | MTU | ethernet |
 *     28       30            32      36            40
 *     | groups | connections | reads | unicast QPN |
 *     40
 *     | QPN of each group's queue ... | QPN and PSN of each connection ...
 *
 * `groups`, `connections` and `reads` are numbers: nsubgroups, nconnections and
 * reads_max below. A QPN is the number of a queue pair, a PSN that of a packet; the
 * connections are in the order of mmc_verbs_partners().
 */
#ifndef MMC_DRIVERS_VERBS_ADDRESS_H
#define MMC_DRIVERS_VERBS_ADDRESS_H

#include "drivers/driver.h"
#include "drivers/verbs/partners.h"

/*
 * The most subgroups. With so many, and the most connections, an address is still no
 * longer than MMC_ADDRESS_BYTES_MAX.
 */
#define MMC_VERBS_SUBGROUPS_MAX 64

#define MMC_VERBS_GID_BYTES 16

/* One end of a connection. */
struct mmc_verbs_end {
	uint32_t qpn;
	uint32_t psn; /* of the first packet that this end sends */
};

struct mmc_verbs_address {
	uint32_t rank;
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint16_t lid;	    /* 0 on Ethernet */
	uint8_t mtu;	    /* enum ibv_mtu: the port's active MTU */
	uint8_t ethernet;   /* 1: RoCE, the GID has an IPv4 address; 0: no */
	uint32_t reads_max; /* reads of its memory that the peer may start */
	uint32_t unicast_qpn;
	uint32_t nsubgroups;
	uint32_t nconnections;
	uint32_t group_qpns[MMC_VERBS_SUBGROUPS_MAX];
	struct mmc_verbs_end connections[MMC_VERBS_PARTNERS_MAX];
};

uint32_t mmc_verbs_address_bytes(uint32_t nsubgroups, uint32_t nconnections);

/* Writes the mmc_verbs_address_bytes() of an address. */
void mmc_verbs_address_encode(uint8_t *bytes,
			      const struct mmc_verbs_address *address);

/*
 * Reads the bytes of an address with this many subgroups and connections. Returns 0, or
 * -MMC_EINVAL if they are no such address: the tag or a count is wrong, GID or LID
 * cannot be those of a single port, or a number is out of its range. `address` is
 * written only on success.
 */
int mmc_verbs_address_decode(struct mmc_verbs_address *address,
			     const uint8_t *bytes, uint32_t nsubgroups,
			     uint32_t nconnections);

/* Returns the IPv4 address, in host order, that a GID contains, or 0 if it has none. */
uint32_t mmc_verbs_gid_ipv4(const uint8_t *gid);

/* Writes the GID that contains an IPv4 address or group, given in host order. */
void mmc_verbs_gid_from_ipv4(uint8_t *gid, uint32_t ipv4);

#endif
