/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses, partners and peers of the verbs driver; the tests need no device. */
#include "check.h"

#include "core/wire/header.h"
#include "drivers/verbs/peers.h"
#include "support/bits.h"
#include "support/prng.h"

enum { NSUBGROUPS = 3, NCONNECTIONS = 5, QPNS = 40 };

static const uint8_t infiniband_gid[MMC_VERBS_GID_BYTES] = {
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x24, 0x8a, 0x07, 3, 0, 1, 2, 3,
};

static struct mmc_verbs_address example(bool ethernet)
{
	struct mmc_verbs_address address = {
		.rank = 77,
		.lid = ethernet ? 0 : 0xbfff,
		.mtu = 5,
		.ethernet = ethernet,
		.reads_max = 16,
		.unicast_qpn = 0xfffffe,
		.nsubgroups = NSUBGROUPS,
		.nconnections = NCONNECTIONS,
	};

	memcpy(address.gid, infiniband_gid, sizeof(address.gid));
	if (ethernet)
		mmc_verbs_gid_from_ipv4(address.gid, 0x0a080005);
	for (uint32_t i = 0; i < NSUBGROUPS; i++)
		address.group_qpns[i] = 2 + i;
	for (uint32_t i = 0; i < NCONNECTIONS; i++)
		address.connections[i] = (struct mmc_verbs_end){
			.qpn = 0x123400 + i,
			.psn = 0xffffff - i,
		};
	return address;
}

static int decode(struct mmc_verbs_address *address, const uint8_t *bytes)
{
	return mmc_verbs_address_decode(address, bytes, NSUBGROUPS,
					NCONNECTIONS);
}

static void addresses_come_through(void)
{
	for (int ethernet = 0; ethernet < 2; ethernet++) {
		struct mmc_verbs_address address = example(ethernet != 0);
		struct mmc_verbs_address read;
		uint8_t bytes[MMC_ADDRESS_BYTES_MAX];

		mmc_verbs_address_encode(bytes, &address);
		CHECK_EQ(decode(&read, bytes), 0);
		CHECK_EQ(read.rank, address.rank);
		CHECK_BYTES(read.gid, address.gid, sizeof(read.gid));
		CHECK_EQ(read.lid, address.lid);
		CHECK_EQ(read.mtu, address.mtu);
		CHECK_EQ(read.ethernet, address.ethernet);
		CHECK_EQ(read.reads_max, address.reads_max);
		CHECK_EQ(read.unicast_qpn, address.unicast_qpn);
		CHECK_EQ(read.nsubgroups, NSUBGROUPS);
		CHECK_EQ(read.nconnections, NCONNECTIONS);
		for (uint32_t i = 0; i < NSUBGROUPS; i++)
			CHECK_EQ(read.group_qpns[i], address.group_qpns[i]);
		for (uint32_t i = 0; i < NCONNECTIONS; i++) {
			CHECK_EQ(read.connections[i].qpn,
				 address.connections[i].qpn);
			CHECK_EQ(read.connections[i].psn,
				 address.connections[i].psn);
		}
	}
}

static void the_longest_address_fits(void)
{
	uint8_t bytes[MMC_ADDRESS_BYTES_MAX + 1];
	struct mmc_verbs_address address = example(true);
	uint32_t nbytes = mmc_verbs_address_bytes(MMC_VERBS_SUBGROUPS_MAX,
						  MMC_VERBS_PARTNERS_MAX);

	CHECK(nbytes <= MMC_ADDRESS_BYTES_MAX);
	address.nsubgroups = MMC_VERBS_SUBGROUPS_MAX;
	address.nconnections = MMC_VERBS_PARTNERS_MAX;
	bytes[nbytes] = 0xa5;
	mmc_verbs_address_encode(bytes, &address);
	CHECK_EQ(bytes[nbytes], 0xa5);
}

static void refuse(struct mmc_verbs_address address)
{
	struct mmc_verbs_address read = { .rank = 5 };
	uint8_t bytes[MMC_ADDRESS_BYTES_MAX];

	mmc_verbs_address_encode(bytes, &address);
	CHECK_EQ(decode(&read, bytes), -MMC_EINVAL);
	CHECK_EQ(read.rank, 5);
}

#define REFUSE(ethernet, member, value)                                        \
	do {                                                                   \
		struct mmc_verbs_address spoiled = example(ethernet);          \
		spoiled.member = (value);                                      \
		refuse(spoiled);                                               \
	} while (0)

/* Addresses with an MTU, LID or GID that no port has are refused. */
static void what_no_port_has_is_refused(void)
{
	struct mmc_verbs_address address = example(true);

	REFUSE(true, mtu, 0);
	REFUSE(true, mtu, 6);
	REFUSE(true, ethernet, 2);
	REFUSE(true, lid, 1);
	REFUSE(false, lid, 0);
	REFUSE(false, lid, 0xc000);
	REFUSE(false, ethernet, 1);
	REFUSE(false, gid[0], 0xff);
	REFUSE(true, gid[0], 0xfe);
	REFUSE(true, gid[12], 0xef);
	memset(address.gid + 12, 0, 4);
	refuse(address);
	address = example(false);
	memset(address.gid, 0, sizeof(address.gid));
	refuse(address);
}

static void numbers_out_of_range_are_refused(void)
{
	REFUSE(true, reads_max, 256);
	REFUSE(true, unicast_qpn, 0);
	REFUSE(true, unicast_qpn, 1);
	REFUSE(true, unicast_qpn, 0xffffff);
	REFUSE(true, unicast_qpn, 0x1000002);
	REFUSE(true, group_qpns[2], 0);
	REFUSE(true, connections[4].qpn, 0xffffff);
	REFUSE(true, connections[4].psn, 0x1000000);
	REFUSE(true, nsubgroups, NSUBGROUPS + 1);
	REFUSE(true, nconnections, NCONNECTIONS - 1);
}

/* Any bytes are refused, or encode to the same bytes again. */
static void hostile_bytes_do_no_harm(void)
{
	uint32_t nbytes = mmc_verbs_address_bytes(NSUBGROUPS, NCONNECTIONS);
	struct mmc_verbs_address address = example(true);
	uint8_t *bytes = malloc(nbytes);
	uint8_t good[MMC_ADDRESS_BYTES_MAX];
	uint8_t again[MMC_ADDRESS_BYTES_MAX];
	struct mmc_prng prng = { .state = check_seed() };

	mmc_verbs_address_encode(good, &address);
	for (int i = 0; i < 100000; i++) {
		memcpy(bytes, good, nbytes);
		for (uint64_t j = mmc_prng_below(&prng, 4) + 1; j > 0; j--)
			bytes[mmc_prng_below(&prng, nbytes)] =
				(uint8_t)mmc_prng_below(&prng, 256);
		if (decode(&address, bytes) != 0)
			continue;
		mmc_verbs_address_encode(again, &address);
		if (!CHECK_BYTES(again, bytes, nbytes))
			break;
	}
	free(bytes);
}

/* ---- partners ------------------------------------------------------------ */

/* Partners of a rank are listed once each, and have it as their partner. */
static void partners_are_mutual_and_each_once(void)
{
	for (uint32_t nranks = 1; nranks < 70; nranks++) {
		uint32_t partners[MMC_VERBS_PARTNERS_MAX];
		uint32_t others[MMC_VERBS_PARTNERS_MAX];
		uint32_t first = mmc_verbs_partners(0, nranks, partners);

		CHECK(first <= 2 * mmc_log2_ceil(nranks));
		for (uint32_t rank = 0; rank < nranks; rank++) {
			uint32_t count =
				mmc_verbs_partners(rank, nranks, partners);

			CHECK_EQ(count, first);
			for (uint32_t i = 0; i < count; i++) {
				uint32_t at = mmc_verbs_partner_index(
					partners[i], nranks, rank);

				CHECK(partners[i] != rank);
				mmc_verbs_partners(partners[i], nranks, others);
				CHECK_EQ(others[at], rank);
				CHECK_EQ(mmc_verbs_partner_index(rank, nranks,
								 partners[i]),
					 i);
			}
		}
	}
}

/* Partners are the ranks that are a power of 2 away in either direction. */
static void neighbours_and_distances_are_partners(void)
{
	uint32_t partners[MMC_VERBS_PARTNERS_MAX];

	CHECK_EQ(mmc_verbs_partners(0, 1, partners), 0);
	CHECK_EQ(mmc_verbs_partners(1, 2, partners), 1);
	CHECK_EQ(partners[0], 0);
	CHECK_EQ(mmc_verbs_partners(3, 8, partners), 5);
	for (uint32_t i = 0; i < 5; i++)
		CHECK(partners[i] != 0 && partners[i] != 6);
	CHECK_EQ(mmc_verbs_partners(0, UINT32_C(1) << MMC_ROUNDS_MAX, partners),
		 MMC_VERBS_PARTNERS_MAX - 1);
}

/* ---- peers --------------------------------------------------------------- */

static void peers_are_found_by_port_and_queue(void)
{
	enum { NRANKS = 200 };
	uint8_t gid[MMC_VERBS_GID_BYTES];
	struct mmc_verbs_peers peers;

	CHECK_EQ(mmc_verbs_peers_init(&peers, 2 * NRANKS), 0);
	/* Four ranks share each port. */
	for (uint32_t rank = 0; rank < NRANKS; rank++) {
		mmc_verbs_gid_from_ipv4(gid, 0x0a000001 + rank / 4);
		for (uint32_t i = 0; i < 2; i++)
			CHECK_EQ(mmc_verbs_peers_add(&peers, gid,
						     0x11 + rank % 4 * 2 + i,
						     rank),
				 0);
		CHECK_EQ(mmc_verbs_peers_add(&peers, gid, 0x11 + rank % 4 * 2,
					     rank),
			 -MMC_EINVAL);
	}
	for (uint32_t rank = 0; rank < NRANKS; rank++) {
		mmc_verbs_gid_from_ipv4(gid, 0x0a000001 + rank / 4);
		CHECK_EQ(mmc_verbs_peers_find(&peers, gid, 0x12 + rank % 4 * 2),
			 rank);
		CHECK_EQ(mmc_verbs_peers_find(&peers, gid, 0x19),
			 MMC_PEER_UNKNOWN);
		CHECK_EQ(mmc_verbs_peers_find(&peers, gid, 0),
			 MMC_PEER_UNKNOWN);
	}
	mmc_verbs_gid_from_ipv4(gid, 0x0b000001);
	CHECK_EQ(mmc_verbs_peers_find(&peers, gid, 0x11), MMC_PEER_UNKNOWN);
	CHECK_EQ(mmc_verbs_peers_find(&peers, infiniband_gid, 0x11),
		 MMC_PEER_UNKNOWN);
	mmc_verbs_peers_destroy(&peers);
}

CHECK_MAIN(CHECK_TEST(addresses_come_through),
	   CHECK_TEST(the_longest_address_fits),
	   CHECK_TEST(what_no_port_has_is_refused),
	   CHECK_TEST(numbers_out_of_range_are_refused),
	   CHECK_TEST(hostile_bytes_do_no_harm),
	   CHECK_TEST(partners_are_mutual_and_each_once),
	   CHECK_TEST(neighbours_and_distances_are_partners),
	   CHECK_TEST(peers_are_found_by_port_and_queue))
