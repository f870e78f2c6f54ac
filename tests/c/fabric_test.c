/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabrics of the simulated network: descriptions, ways, trees, outages. */
#include "drivers/sim/fabric.h"

#include "drivers/sim/tree.h"
#include "fabrics.h"

static void send_to(struct mmc_network *network, uint32_t source, uint32_t peer,
		    uint32_t subgroup)
{
	uint8_t bytes[MMC_HEADER_BYTES] = { 0 };
	const struct mmc_parcel parcel = {
		.head = bytes,
		.head_bytes = sizeof(bytes),
		.peer = peer,
		.subgroup = subgroup,
	};

	mmc_network_send(network, source, &parcel);
}

/* Runs the network until it is empty, and counts the arrivals at each host. */
static void drain(struct mmc_network *network, uint32_t *arrivals)
{
	struct mmc_heap_item event;

	while (mmc_network_next(network, &event)) {
		CHECK_EQ(event.kind, MMC_NETWORK_ARRIVAL);
		arrivals[event.target]++;
		mmc_network_release(network, event.subject);
	}
}

/* ---- descriptions ---------------------------------------------------------- */

static void sane_fabric_is_accepted(void)
{
	struct small_fabric small;

	small_fabric_init(&small);
	CHECK_EQ(mmc_fabric_check(&small.fabric), 0);
}

static void spoilt_links_are_refused(void)
{
	for (unsigned flaw = 0; flaw < 9; flaw++) {
		struct small_fabric small;

		small_fabric_init(&small);
		switch (flaw) {
		case 0:
			small.links[1].from = 0;
			break;
		case 1:
			small.links[SMALL_HOSTS + 1].from = SMALL_HOSTS + 1;
			break;
		case 2:
			small.links[SMALL_UP].to = 99;
			break;
		case 3:
			small.links[SMALL_UP].to = 0;
			break;
		case 4:
			small.links[SMALL_UP].mbits = 0;
			break;
		case 5:
			small.links[2].burst_bytes = 1;
			break;
		case 6:
			small.links[SMALL_UP].to = small.links[SMALL_UP].from;
			break;
		case 7:
			small.links[3].loss = UINT32_C(3) << 30;
			small.links[3].loss_period = 2;
			break;
		default:
			small.fabric.nlinks = 2 * SMALL_HOSTS - 1;
		}
		CHECK_EQ(mmc_fabric_check(&small.fabric), -MMC_EINVAL);
	}
}

static void spoilt_tables_are_refused(void)
{
	for (unsigned flaw = 0; flaw < 6; flaw++) {
		struct small_fabric small;

		small_fabric_init(&small);
		switch (flaw) {
		case 0: /* from another switch */
			small.route_links[0] = small_up(1, 0);
			break;
		case 1: /* to a host */
			small.route_links[0] = SMALL_HOSTS;
			break;
		case 2: /* away from the goal: leaf 0 to spine 0 by spine 1 */
			small.route_links[2] = small_up(0, 1);
			break;
		case 3: /* no way from leaf 0 to leaf 1 */
			for (uint32_t i = 2; i <= 16; i++)
				small.route_first[i] -= 2;
			break;
		case 4:
			small.tree_links[0] = SMALL_LINKS;
			break;
		default:
			small.tree_first[3] = 0;
		}
		CHECK_EQ(mmc_fabric_check(&small.fabric), -MMC_EINVAL);
	}
}

/* ---- trees ----------------------------------------------------------------- */

static void reach_counts_the_hosts_behind_each_link(void)
{
	struct small_fabric small;
	uint32_t reach[2 * SMALL_LINKS] = { 0 };

	small_fabric_init(&small);
	CHECK_EQ(mmc_trees_measure(&small.fabric, reach), 0);
	for (uint32_t tree = 0; tree < 2; tree++) {
		const uint32_t *behind = reach + tree * SMALL_LINKS;

		for (uint32_t h = 0; h < SMALL_HOSTS; h++) {
			CHECK_EQ(behind[h], SMALL_HOSTS - 1);
			CHECK_EQ(behind[SMALL_HOSTS + h], 1);
		}
		for (uint32_t leaf = 0; leaf < 2; leaf++)
			for (uint32_t spine = 0; spine < 2; spine++) {
				uint32_t used = spine == tree ? 2 : 0;

				CHECK_EQ(behind[small_up(leaf, spine)], used);
				CHECK_EQ(behind[small_down(spine, leaf)], used);
			}
	}
}

static void circles_and_one_way_trees_are_refused(void)
{
	struct small_fabric small;
	uint32_t reach[2 * SMALL_LINKS] = { 0 };

	small_fabric_init(&small);
	/* Both of a leaf's spines in one tree. */
	small.tree_links[1] = small_up(0, 1);
	CHECK_EQ(mmc_trees_measure(&small.fabric, reach), -MMC_EINVAL);
	small_fabric_init(&small);
	/* The spine's way down to leaf 0 is missing. */
	small.tree_links[6] = small_down(0, 1);
	CHECK_EQ(mmc_trees_measure(&small.fabric, reach), -MMC_EINVAL);
}

static void multicast_takes_the_tree_of_its_subgroup(void)
{
	struct small_fabric small;
	struct mmc_network network;

	small_fabric_init(&small);
	for (uint32_t subgroup = 0; subgroup < 4; subgroup++) {
		const struct mmc_network_options options =
			small_options(&small.fabric);
		uint32_t arrivals[SMALL_HOSTS] = { 0 };

		CHECK_EQ(mmc_network_init(&network, &options), 0);
		send_to(&network, 1, MMC_PEER_ALL, subgroup);
		drain(&network, arrivals);
		for (uint32_t h = 0; h < SMALL_HOSTS; h++)
			CHECK_EQ(arrivals[h], h != 1);
		for (uint32_t spine = 0; spine < 2; spine++) {
			bool used = spine == subgroup % 2;

			CHECK_EQ(network.links[small_up(0, spine)].entered,
				 used);
			CHECK_EQ(network.links[small_down(spine, 1)].entered,
				 used);
			CHECK_EQ(network.links[small_down(spine, 0)].entered,
				 0);
		}
		mmc_network_free(&network);
	}
}

/* Hosts that no rank is on get what their tree brings them, and nobody sees it. */
static void hosts_without_a_rank_are_no_concern(void)
{
	struct small_fabric small;
	struct mmc_network_options options;
	uint32_t arrivals[SMALL_HOSTS] = { 0 };
	struct mmc_network network;

	small_fabric_init(&small);
	options = small_options(&small.fabric);
	options.nhosts = 3;
	CHECK_EQ(mmc_network_init(&network, &options), 0);
	send_to(&network, 0, MMC_PEER_ALL, 0);
	drain(&network, arrivals);
	CHECK_EQ(arrivals[1] + arrivals[2], 2);
	CHECK_EQ(arrivals[3], 0);
	CHECK_EQ(network.links[SMALL_HOSTS + 3].delivered, 1);
	mmc_network_free(&network);
	options.nhosts = 5;
	CHECK_EQ(mmc_network_init(&network, &options), -MMC_EINVAL);
}

/* ---- unicast --------------------------------------------------------------- */

static void flows_spread_and_stay(void)
{
	uint32_t used[2] = { 0 };
	struct small_fabric small;
	struct mmc_network network;
	uint32_t links[MMC_PATH_LINKS_MAX];

	small_fabric_init(&small);
	for (uint64_t seed = 0; seed < 64; seed++) {
		struct mmc_network_options options =
			small_options(&small.fabric);
		uint32_t arrivals[SMALL_HOSTS] = { 0 };
		uint32_t nlinks;

		options.seed = seed;
		CHECK_EQ(mmc_network_init(&network, &options), 0);
		nlinks = mmc_fabric_path(&network.fabric,
					 (struct mmc_journey){ 0, 3 }, seed,
					 network.links, links);
		CHECK_EQ(nlinks, 4);
		send_to(&network, 0, 3, 0);
		send_to(&network, 0, 3, 0);
		drain(&network, arrivals);
		CHECK_EQ(arrivals[3], 2);
		for (uint32_t i = 0; i < nlinks; i++)
			CHECK_EQ(network.links[links[i]].entered, 2);
		used[links[1] == small_up(0, 1)]++;
		mmc_network_free(&network);
	}
	CHECK(used[0] > 16 && used[1] > 16);
}

static void adaptive_choice_takes_the_shorter_queue(void)
{
	struct small_fabric small;
	struct mmc_network_options options;
	uint32_t arrivals[SMALL_HOSTS] = { 0 };
	struct mmc_network network;

	small_fabric_init(&small);
	small.fabric.choice = MMC_FABRIC_ADAPTIVE;
	/* The hosts' links are ten times as fast, so that leaf 0 has a queue. */
	for (uint32_t i = 0; i < 2 * SMALL_HOSTS; i++)
		small.links[i].mbits *= 10;
	options = small_options(&small.fabric);
	CHECK_EQ(mmc_network_init(&network, &options), 0);
	for (unsigned i = 0; i < 20; i++)
		send_to(&network, 0, 3, 0);
	drain(&network, arrivals);
	CHECK_EQ(arrivals[3], 20);
	CHECK_EQ(network.links[small_up(0, 0)].entered, 10);
	CHECK_EQ(network.links[small_up(0, 1)].entered, 10);
	mmc_network_free(&network);
}

/* ---- outages --------------------------------------------------------------- */

/* A link that fails cuts both of its directions, and no link beside it. */
static void failed_link_cuts_both_directions(void)
{
	struct small_fabric small;
	struct mmc_network_options options;
	struct mmc_network network;

	small_fabric_init(&small);
	options = small_options(&small.fabric);
	options.outage = (struct mmc_outage){
		.kind = MMC_OUTAGE_LINK,
		.place = small_up(0, 0),
		.end_ns = UINT64_MAX,
	};
	for (uint32_t subgroup = 0; subgroup < 2; subgroup++)
		for (uint32_t source = 0; source < 4; source += 2) {
			uint32_t arrivals[SMALL_HOSTS] = { 0 };

			CHECK_EQ(mmc_network_init(&network, &options), 0);
			send_to(&network, source, MMC_PEER_ALL, subgroup);
			drain(&network, arrivals);
			CHECK_EQ(arrivals[source + 1], 1);
			CHECK_EQ(arrivals[3 - source], subgroup);
			mmc_network_free(&network);
		}
}

CHECK_MAIN(CHECK_TEST(sane_fabric_is_accepted),
	   CHECK_TEST(spoilt_links_are_refused),
	   CHECK_TEST(spoilt_tables_are_refused),
	   CHECK_TEST(reach_counts_the_hosts_behind_each_link),
	   CHECK_TEST(circles_and_one_way_trees_are_refused),
	   CHECK_TEST(multicast_takes_the_tree_of_its_subgroup),
	   CHECK_TEST(hosts_without_a_rank_are_no_concern),
	   CHECK_TEST(flows_spread_and_stay),
	   CHECK_TEST(adaptive_choice_takes_the_shorter_queue),
	   CHECK_TEST(failed_link_cuts_both_directions))
