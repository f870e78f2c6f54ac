/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/leaves.h"

#include <stdlib.h>

/* A fabric that is being described. Its tables are those of `fabric`, to be written. */
struct leaves {
	const struct mmc_network_options *options;
	struct mmc_fabric fabric;
	struct mmc_fabric_link *links;
	uint32_t *route_first;
	uint32_t *route_links;
	uint32_t *tree_first;
	uint32_t *tree_links;
	uint32_t nroutes;  /* entries of route_links so far */
	uint32_t nentries; /* entries of tree_links so far */
};

static uint32_t leaf_of(const struct mmc_network_options *options,
			uint32_t host)
{
	return (uint32_t)((uint64_t)host * options->nswitches /
			  options->nhosts);
}

/* Returns the first host of `leaf`, or the number of hosts if there is no such leaf. */
static uint32_t first_host(const struct mmc_network_options *options,
			   uint32_t leaf)
{
	uint64_t product = (uint64_t)leaf * options->nhosts;

	return (uint32_t)((product + options->nswitches - 1) /
			  options->nswitches);
}

/* Returns a link as the options describe it. */
static struct mmc_fabric_link
make_link(const struct mmc_network_options *options, uint32_t from, uint32_t to)
{
	bool last = to < options->nhosts;
	bool inner = from >= options->nhosts && !last;

	return (struct mmc_fabric_link){
		.from = from,
		.to = to,
		.mbits = inner ? options->trunk_mbits : options->link_mbits,
		.queue_bytes = options->queue_bytes,
		.loss = last ? options->loss : options->uplink_loss,
		.loss_period = options->loss_period,
		.latency_ns = options->latency_ns,
		.jitter_ns = last ? options->jitter_ns : 0,
	};
}

static void lay_links(struct leaves *leaves)
{
	const struct mmc_network_options *options = leaves->options;
	uint32_t nhosts = options->nhosts;
	uint32_t spine = nhosts + options->nswitches;

	for (uint32_t h = 0; h < nhosts; h++) {
		uint32_t leaf = nhosts + leaf_of(options, h);

		leaves->links[h] = make_link(options, h, leaf);
		leaves->links[nhosts + h] = make_link(options, leaf, h);
	}
	for (uint32_t i = 2 * nhosts; i < leaves->fabric.nlinks; i++) {
		uint32_t leaf = nhosts + (i - 2 * nhosts) % options->nswitches;

		leaves->links[i] = i < 2 * nhosts + options->nswitches
					   ? make_link(options, leaf, spine)
					   : make_link(options, spine, leaf);
	}
}

/* Lists the links of a switch in the tree, which are all its links. */
static void lay_tree(struct leaves *leaves, uint32_t s)
{
	const struct mmc_network_options *options = leaves->options;
	uint32_t nleaves = options->nswitches;
	uint32_t inner = 2 * options->nhosts;

	if (s == nleaves) {
		for (uint32_t leaf = 0; leaf < nleaves; leaf++)
			leaves->tree_links[leaves->nentries++] =
				inner + nleaves + leaf;
	} else {
		for (uint32_t h = first_host(options, s);
		     h < first_host(options, s + 1); h++)
			leaves->tree_links[leaves->nentries++] =
				options->nhosts + h;
		if (nleaves > 1)
			leaves->tree_links[leaves->nentries++] = inner + s;
	}
	leaves->tree_first[s + 1] = leaves->nentries;
}

/* Lists the one link by which a switch forwards to each other switch. */
static void lay_routes(struct leaves *leaves, uint32_t s)
{
	uint32_t nleaves = leaves->options->nswitches;
	uint32_t inner = 2 * leaves->options->nhosts;
	uint32_t n = leaves->fabric.nswitches;

	for (uint32_t goal = 0; goal < n; goal++) {
		if (goal != s)
			leaves->route_links[leaves->nroutes++] =
				s == nleaves ? inner + nleaves + goal
					     : inner + s;
		leaves->route_first[s * n + goal + 1] = leaves->nroutes;
	}
}

/* Allocates the arrays. Returns 0 or -MMC_ENOMEM. */
static int allocate(struct leaves *leaves)
{
	struct mmc_fabric *fabric = &leaves->fabric;
	size_t nplaces = (size_t)fabric->nswitches * fabric->nswitches;
	size_t nnumbers =
		2 * (nplaces + 1) + fabric->nswitches + 1 + fabric->nlinks;

	leaves->links = calloc(1, fabric->nlinks * sizeof(*leaves->links) +
					  nnumbers * sizeof(uint32_t));
	if (!leaves->links)
		return -MMC_ENOMEM;
	leaves->route_first = (uint32_t *)(leaves->links + fabric->nlinks);
	leaves->route_links = leaves->route_first + nplaces + 1;
	leaves->tree_first = leaves->route_links + nplaces + 1;
	leaves->tree_links = leaves->tree_first + fabric->nswitches + 1;
	fabric->links = leaves->links;
	fabric->route_first = leaves->route_first;
	fabric->route_links = leaves->route_links;
	fabric->tree_first = leaves->tree_first;
	fabric->tree_links = leaves->tree_links;
	return 0;
}

int mmc_leaves_build(const struct mmc_network_options *options,
		     struct mmc_fabric *fabric)
{
	uint32_t nleaves = options->nswitches;
	bool has_spine = nleaves > 1;
	struct leaves leaves = {
		.options = options,
		.fabric = {
			.nhosts = options->nhosts,
			.nswitches = nleaves + has_spine,
			.nlinks = 2 * options->nhosts +
				  (has_spine ? 2 * nleaves : 0),
			.ntrees = 1,
		},
	};

	if (options->nhosts == 0 || nleaves == 0 || nleaves > options->nhosts)
		return -MMC_EINVAL;
	if (allocate(&leaves) < 0)
		return -MMC_ENOMEM;
	lay_links(&leaves);
	for (uint32_t s = 0; s < leaves.fabric.nswitches; s++) {
		lay_tree(&leaves, s);
		lay_routes(&leaves, s);
	}
	*fabric = leaves.fabric;
	return 0;
}
