/* SPDX-License-Identifier: BSD-3-Clause */
/* Convoys in the simulated network, and links with a token bucket. */
#include "drivers/sim/transit.h"

#include "check.h"
#include "fabrics.h"

enum { PACKET_BYTES = 1000 };

/* Sends packets together. Returns when the last one arrives. */
static uint64_t convoy_time_ns(struct mmc_network *network, uint32_t to,
			       uint32_t npackets)
{
	struct mmc_heap_item event;

	CHECK(mmc_transit_send(network,
			      &(struct mmc_convoy){
				      .journey = { 0, to },
				      .message = 42,
				      .packets = {
					      .nbytes = (uint64_t)npackets *
							PACKET_BYTES,
					      .packet_bytes = PACKET_BYTES,
					      .npackets = npackets,
				      },
			      }) >= (uint64_t)npackets * PACKET_BYTES);
	CHECK(mmc_network_next(network, &event));
	CHECK_EQ(event.kind, MMC_NETWORK_CONVOY);
	CHECK_EQ(event.target, to);
	CHECK_EQ(((struct mmc_convoy *)event.subject)->message, 42);
	mmc_convoys_release(&network->convoys, event.subject);
	CHECK(!mmc_network_next(network, &event));
	return event.time_ns;
}

/* A switch forwards packet by packet: each further link costs one packet's time. */
static void convoys_are_stored_and_forwarded_by_packet(void)
{
	for (uint32_t npackets = 1; npackets <= 16; npackets += 5) {
		struct small_fabric small;
		struct mmc_network network;

		small_fabric_init(&small);
		small_open(&small, &network);
		CHECK_EQ(convoy_time_ns(&network, 3, npackets),
			 (npackets + 3) * PACKET_BYTES + 4 * SMALL_LATENCY_NS);
		CHECK_EQ(network.links[0].packets, npackets);
		CHECK_EQ(network.links[0].bytes,
			 (uint64_t)npackets * PACKET_BYTES);
		mmc_network_free(&network);
	}
}

/* A link that is faster than those before it waits for the packets. */
static void convoys_are_no_faster_than_their_slowest_link(void)
{
	struct small_fabric small;
	struct mmc_network network;

	small_fabric_init(&small);
	for (uint32_t i = SMALL_UP; i < SMALL_LINKS; i++)
		small.links[i].mbits *= 10;
	small_open(&small, &network);
	CHECK_EQ(convoy_time_ns(&network, 3, 10),
		 (10 + 1) * PACKET_BYTES + 2 * PACKET_BYTES / 10 +
			 4 * SMALL_LATENCY_NS);
	mmc_network_free(&network);
}

/* The ends of a convoy may be switches: a reduction in the network. */
static void convoys_end_at_switches(void)
{
	struct small_fabric small;
	struct mmc_network network;

	small_fabric_init(&small);
	small_open(&small, &network);
	CHECK_EQ(convoy_time_ns(&network, SMALL_HOSTS + 2, 4),
		 5 * PACKET_BYTES + 2 * SMALL_LATENCY_NS);
	mmc_network_free(&network);
}

/* ---- token buckets --------------------------------------------------------- */

/* Bytes with tokens leave at the rate of the burst, the others at that of the link. */
static void bucket_lets_a_burst_pass(void)
{
	struct mmc_fabric_link described = small_link(0, 1);
	struct mmc_link link;
	uint64_t left_ns = 0;

	described.burst_bytes = 10 * PACKET_BYTES;
	described.burst_mbits = 80000;
	link = mmc_link_make(&described);
	for (unsigned i = 1; i <= 20; i++) {
		CHECK(mmc_link_enter(&link, PACKET_BYTES, 0, &left_ns));
		CHECK_EQ(left_ns, i <= 11 ? (i <= 10 ? i * 100 : 1100)
					  : (i - 10) * 1000);
	}
	/* After a pause the bucket is full again. */
	CHECK(mmc_link_enter(&link, PACKET_BYTES, 1000000, &left_ns));
	CHECK_EQ(left_ns, 1000100);
	CHECK_EQ(link.bytes, 21 * PACKET_BYTES);
}

CHECK_MAIN(CHECK_TEST(convoys_are_stored_and_forwarded_by_packet),
	   CHECK_TEST(convoys_are_no_faster_than_their_slowest_link),
	   CHECK_TEST(convoys_end_at_switches),
	   CHECK_TEST(bucket_lets_a_burst_pass))
