/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small fabric for tests: 4 hosts on 2 leaves, each leaf linked to 2 spines. Its arrays
 * can be spoilt.
 */
#ifndef MMC_TESTS_FABRICS_H
#define MMC_TESTS_FABRICS_H

#include "check.h"
#include "drivers/sim/network.h"

enum {
	SMALL_HOSTS = 4,
	SMALL_SWITCHES = 4, /* leaves 0 and 1, spines 2 and 3 */
	SMALL_LINKS = 2 * SMALL_HOSTS + 8,
	/* The link from leaf L to spine S (0 or 1), and the one back. */
	SMALL_UP = 2 * SMALL_HOSTS,
	SMALL_DOWN = SMALL_UP + 4,
	SMALL_NS_PER_BYTE = 1,
	SMALL_LATENCY_NS = 1000,
};

struct small_fabric {
	struct mmc_fabric fabric;
	struct mmc_fabric_link links[SMALL_LINKS];
	uint32_t route_first[SMALL_SWITCHES * SMALL_SWITCHES + 1];
	uint32_t route_links[32];
	uint32_t tree_first[2 * SMALL_SWITCHES + 1];
	uint32_t tree_links[32];
};

static inline struct mmc_fabric_link small_link(uint32_t from, uint32_t to)
{
	return (struct mmc_fabric_link){
		.from = from,
		.to = to,
		.mbits = 8000 / SMALL_NS_PER_BYTE,
		.queue_bytes = 1 << 20,
		.latency_ns = SMALL_LATENCY_NS,
	};
}

static inline uint32_t small_up(uint32_t leaf, uint32_t spine)
{
	return SMALL_UP + 2 * leaf + spine;
}

static inline uint32_t small_down(uint32_t spine, uint32_t leaf)
{
	return SMALL_DOWN + 2 * spine + leaf;
}

static inline void small_lay_links(struct small_fabric *small)
{
	for (uint32_t h = 0; h < SMALL_HOSTS; h++) {
		uint32_t leaf = SMALL_HOSTS + h / 2;

		small->links[h] = small_link(h, leaf);
		small->links[SMALL_HOSTS + h] = small_link(leaf, h);
	}
	for (uint32_t leaf = 0; leaf < 2; leaf++)
		for (uint32_t spine = 0; spine < 2; spine++) {
			uint32_t a = SMALL_HOSTS + leaf;
			uint32_t b = SMALL_HOSTS + 2 + spine;

			small->links[small_up(leaf, spine)] = small_link(a, b);
			small->links[small_down(spine, leaf)] =
				small_link(b, a);
		}
}

/* From a leaf both spines lead everywhere; spines reach each other by both leaves. */
static inline void small_lay_routes(struct small_fabric *small)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < SMALL_SWITCHES; s++)
		for (uint32_t goal = 0; goal < SMALL_SWITCHES; goal++) {
			uint32_t place = s * SMALL_SWITCHES + goal;

			for (uint32_t i = 0; s != goal && i < 2; i++) {
				bool near = (s < 2) != (goal < 2);

				if (near && i != goal % 2)
					continue;
				small->route_links[n++] =
					s < 2 ? small_up(s, i)
					      : small_down(s - 2, i);
			}
			small->route_first[place + 1] = n;
		}
}

/* Tree t has its root at spine t. */
static inline void small_lay_trees(struct small_fabric *small)
{
	uint32_t n = 0;

	for (uint32_t tree = 0; tree < 2; tree++)
		for (uint32_t s = 0; s < SMALL_SWITCHES; s++) {
			for (uint32_t i = 0; s < 2 && i < 2; i++)
				small->tree_links[n++] =
					SMALL_HOSTS + 2 * s + i;
			if (s < 2)
				small->tree_links[n++] = small_up(s, tree);
			for (uint32_t i = 0; s == 2 + tree && i < 2; i++)
				small->tree_links[n++] = small_down(tree, i);
			small->tree_first[tree * SMALL_SWITCHES + s + 1] = n;
		}
}

static inline void small_fabric_init(struct small_fabric *small)
{
	*small = (struct small_fabric){
		.fabric = {
			.nhosts = SMALL_HOSTS,
			.nswitches = SMALL_SWITCHES,
			.nlinks = SMALL_LINKS,
			.ntrees = 2,
			.links = small->links,
			.route_first = small->route_first,
			.route_links = small->route_links,
			.tree_first = small->tree_first,
			.tree_links = small->tree_links,
		},
	};
	small_lay_links(small);
	small_lay_routes(small);
	small_lay_trees(small);
}

/* Returns the options of a network on a fabric of as many hosts. */
static inline struct mmc_network_options
small_options(const struct mmc_fabric *fabric)
{
	return (struct mmc_network_options){
		.nhosts = SMALL_HOSTS,
		.fabric = fabric,
		.datagram_bytes_max = 2048,
		.head_bytes = MMC_HEADER_BYTES,
		.payload_scale = 1,
		.seed = 7,
	};
}

/* Opens a network on a fabric, which outlives it. */
static inline void small_open(const struct small_fabric *small,
			      struct mmc_network *network)
{
	const struct mmc_network_options options =
		small_options(&small->fabric);

	CHECK_EQ(mmc_network_init(network, &options), 0);
}

#endif
