/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/address.h"

#include <string.h>

#include "core/wire/header.h"

/* "vrb1", with which no other driver's address begins. */
#define ADDRESS_TAG UINT32_C(0x76726231)

#define MTU_MAX 5		      /* IBV_MTU_4096 */
#define LID_MULTICAST 0xc000	      /* the first LID that is a group's */
#define NUMBER_MAX UINT32_C(0xffffff) /* QPNs and PSNs have 24 bits */
#define QPN_MULTICAST NUMBER_MAX      /* the QPN of multicasts */
#define QPN_FIRST 2   /* QPNs 0 and 1 are reserved for management */
#define READS_MAX 255 /* the device's limits have 8 bits */

/* The offsets of the fields; see address.h. */
enum {
	ADDRESS_RANK = 4,
	ADDRESS_GID = 8,
	ADDRESS_LID = 24,
	ADDRESS_COUNTS = 28,
	ADDRESS_READS = 32,
	ADDRESS_UNICAST = 36,
	ADDRESS_QPNS = 40,
};

_Static_assert(ADDRESS_QPNS + 4 * MMC_VERBS_SUBGROUPS_MAX +
			       8 * MMC_VERBS_PARTNERS_MAX <=
		       MMC_ADDRESS_BYTES_MAX,
	       "the longest address is within the limit");

static const uint8_t ipv4_prefix[12] = { [10] = 0xff, [11] = 0xff };

uint32_t mmc_verbs_gid_ipv4(const uint8_t *gid)
{
	if (memcmp(gid, ipv4_prefix, sizeof(ipv4_prefix)) != 0)
		return 0;
	return mmc_get_u32(gid + sizeof(ipv4_prefix));
}

void mmc_verbs_gid_from_ipv4(uint8_t *gid, uint32_t ipv4)
{
	memcpy(gid, ipv4_prefix, sizeof(ipv4_prefix));
	mmc_put_u32(gid + sizeof(ipv4_prefix), ipv4);
}

uint32_t mmc_verbs_address_bytes(uint32_t nsubgroups, uint32_t nconnections)
{
	return ADDRESS_QPNS + 4 * nsubgroups + 8 * nconnections;
}

void mmc_verbs_address_encode(uint8_t *bytes,
			      const struct mmc_verbs_address *address)
{
	uint8_t *at = bytes + ADDRESS_QPNS;

	mmc_put_u32(bytes, ADDRESS_TAG);
	mmc_put_u32(bytes + ADDRESS_RANK, address->rank);
	memcpy(bytes + ADDRESS_GID, address->gid, sizeof(address->gid));
	mmc_put_u32(bytes + ADDRESS_LID, (uint32_t)address->lid << 16 |
						 (uint32_t)address->mtu << 8 |
						 address->ethernet);
	mmc_put_u32(bytes + ADDRESS_COUNTS,
		    address->nsubgroups << 16 | address->nconnections);
	mmc_put_u32(bytes + ADDRESS_READS, address->reads_max);
	mmc_put_u32(bytes + ADDRESS_UNICAST, address->unicast_qpn);
	for (uint32_t i = 0; i < address->nsubgroups; i++, at += 4)
		mmc_put_u32(at, address->group_qpns[i]);
	for (uint32_t i = 0; i < address->nconnections; i++, at += 8) {
		mmc_put_u32(at, address->connections[i].qpn);
		mmc_put_u32(at + 4, address->connections[i].psn);
	}
}

static bool is_qpn(uint32_t number)
{
	return number >= QPN_FIRST && number < QPN_MULTICAST;
}

/* Returns whether MTU, GID and LID can be those of a single port, not of a group. */
static bool is_single_port(const struct mmc_verbs_address *address)
{
	static const uint8_t nobody[MMC_VERBS_GID_BYTES];
	uint32_t ipv4 = mmc_verbs_gid_ipv4(address->gid);

	if (address->mtu == 0 || address->mtu > MTU_MAX)
		return false;
	if (address->ethernet == 1)
		return ipv4 != 0 && ipv4 >> 28 < 0xe && address->lid == 0;
	return address->ethernet == 0 && address->gid[0] != 0xff &&
	       memcmp(address->gid, nobody, sizeof(nobody)) != 0 &&
	       address->lid != 0 && address->lid < LID_MULTICAST;
}

/* Returns whether all QPNs and PSNs are in their range. */
static bool has_valid_numbers(const struct mmc_verbs_address *address)
{
	if (!is_qpn(address->unicast_qpn))
		return false;
	for (uint32_t i = 0; i < address->nsubgroups; i++)
		if (!is_qpn(address->group_qpns[i]))
			return false;
	for (uint32_t i = 0; i < address->nconnections; i++)
		if (!is_qpn(address->connections[i].qpn) ||
		    address->connections[i].psn > NUMBER_MAX)
			return false;
	return true;
}

int mmc_verbs_address_decode(struct mmc_verbs_address *address,
			     const uint8_t *bytes, uint32_t nsubgroups,
			     uint32_t nconnections)
{
	struct mmc_verbs_address read = {
		.rank = mmc_get_u32(bytes + ADDRESS_RANK),
		.lid = (uint16_t)(mmc_get_u32(bytes + ADDRESS_LID) >> 16),
		.mtu = bytes[ADDRESS_LID + 2],
		.ethernet = bytes[ADDRESS_LID + 3],
		.reads_max = mmc_get_u32(bytes + ADDRESS_READS),
		.unicast_qpn = mmc_get_u32(bytes + ADDRESS_UNICAST),
		.nsubgroups = nsubgroups,
		.nconnections = nconnections,
	};
	const uint8_t *at = bytes + ADDRESS_QPNS;

	if (mmc_get_u32(bytes) != ADDRESS_TAG ||
	    mmc_get_u32(bytes + ADDRESS_COUNTS) !=
		    (nsubgroups << 16 | nconnections) ||
	    read.reads_max > READS_MAX)
		return -MMC_EINVAL;
	memcpy(read.gid, bytes + ADDRESS_GID, sizeof(read.gid));
	for (uint32_t i = 0; i < nsubgroups; i++, at += 4)
		read.group_qpns[i] = mmc_get_u32(at);
	for (uint32_t i = 0; i < nconnections; i++, at += 8)
		read.connections[i] = (struct mmc_verbs_end){
			.qpn = mmc_get_u32(at),
			.psn = mmc_get_u32(at + 4),
		};
	if (!is_single_port(&read) || !has_valid_numbers(&read))
		return -MMC_EINVAL;
	*address = read;
	return 0;
}
