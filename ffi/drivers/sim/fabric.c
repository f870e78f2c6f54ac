/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "support/assert.h"
#include "support/bits.h"
#include "support/prng.h"

static bool rate_is_possible(uint32_t mbits)
{
	return mbits > 0 && mbits <= MMC_FABRIC_MBITS_MAX;
}

static bool links_are_sane(const struct mmc_fabric *fabric)
{
	uint32_t nhosts = fabric->nhosts;
	uint32_t nnodes = nhosts + fabric->nswitches;

	for (uint32_t i = 0; i < fabric->nlinks; i++) {
		const struct mmc_fabric_link *link = &fabric->links[i];
		uint32_t host = i % nhosts;
		bool up = i < nhosts;
		bool inner = mmc_fabric_is_inner(fabric, i);

		if (link->from >= nnodes || link->to >= nnodes ||
		    link->from == link->to || !rate_is_possible(link->mbits) ||
		    (link->burst_bytes > 0 &&
		     !rate_is_possible(link->burst_mbits)) ||
		    !mmc_gilbert_is_valid(link->loss, link->loss_period))
			return false;
		if (inner && (link->from < nhosts || link->to < nhosts))
			return false;
		if (!inner &&
		    ((up ? link->from : link->to) != host ||
		     (up ? link->to : link->from) < nhosts ||
		     link->to + link->from != host + fabric->links[host].to))
			return false;
	}
	return true;
}

/* Returns whether a table lists, for each place, links that start at its switch. */
static bool table_is_sane(const struct mmc_fabric *fabric,
			  const uint32_t *first, const uint32_t *links,
			  uint32_t nplaces, uint32_t places_a_switch)
{
	if (first[0] != 0)
		return false;
	for (uint32_t i = 0; i < nplaces; i++) {
		uint32_t place = i / places_a_switch % fabric->nswitches;

		if (first[i + 1] < first[i])
			return false;
		for (uint32_t k = first[i]; k < first[i + 1]; k++)
			if (links[k] >= fabric->nlinks ||
			    fabric->links[links[k]].from !=
				    fabric->nhosts + place)
				return false;
	}
	return true;
}

/*
 * Returns whether all routes of a place of the table lead to switches that are at most
 * `nlinks` links from the goal, as far as `distances` are known; 0: not known.
 */
static bool leads_near(const struct mmc_fabric *fabric, uint32_t place,
		       const uint8_t *distances, uint8_t nlinks)
{
	uint32_t first = fabric->route_first[place];
	uint32_t end = fabric->route_first[place + 1];

	for (uint32_t k = first; k < end; k++) {
		uint32_t link = fabric->route_links[k];
		uint8_t distance;

		if (!mmc_fabric_is_inner(fabric, link))
			return false;
		distance = distances[fabric->links[link].to - fabric->nhosts];
		if (distance == 0 || distance > nlinks)
			return false;
	}
	return first < end;
}

/*
 * Returns whether the routes from all switches lead to `goal` without circles, over so
 * few links that a path has room for them. Distances are counted from a host of the goal,
 * so that none is 0.
 */
static bool routes_reach(const struct mmc_fabric *fabric, uint32_t goal,
			 uint8_t *distances)
{
	uint32_t nswitches = fabric->nswitches;
	uint32_t nfound = 1;

	memset(distances, 0, nswitches);
	distances[goal] = 1;
	for (uint8_t n = 1; n + 1 < MMC_PATH_LINKS_MAX && nfound < nswitches;
	     n++)
		for (uint32_t s = 0; s < nswitches; s++)
			if (distances[s] == 0 &&
			    leads_near(fabric, s * nswitches + goal, distances,
				       n)) {
				distances[s] = (uint8_t)(n + 1);
				nfound++;
			}
	return nfound == nswitches;
}

int mmc_fabric_check(const struct mmc_fabric *fabric)
{
	uint32_t nswitches = fabric->nswitches;
	bool sane = true;
	uint8_t *distances;

	if (fabric->nhosts == 0 || nswitches == 0 || fabric->ntrees == 0 ||
	    nswitches > 65535 || fabric->nlinks < 2 * fabric->nhosts ||
	    fabric->choice > MMC_FABRIC_ADAPTIVE || !links_are_sane(fabric) ||
	    !table_is_sane(fabric, fabric->route_first, fabric->route_links,
			   nswitches * nswitches, nswitches) ||
	    !table_is_sane(fabric, fabric->tree_first, fabric->tree_links,
			   fabric->ntrees * nswitches, 1))
		return -MMC_EINVAL;
	distances = malloc(nswitches);
	if (!distances)
		return -MMC_ENOMEM;
	for (uint32_t goal = 0; goal < nswitches && sane; goal++)
		sane = routes_reach(fabric, goal, distances);
	free(distances);
	return sane ? 0 : -MMC_EINVAL;
}

/* ---- the way of a datagram ------------------------------------------------- */

/* Returns a number that differs between flows, and for one flow between switches. */
static uint64_t flow_hash(struct mmc_journey journey, uint32_t at,
			  uint64_t seed)
{
	struct mmc_prng flow = {
		.state = (seed ^ ((uint64_t)journey.from << 32 | journey.to) ^
			  at * UINT64_C(0x9e3779b97f4a7c15)) -
			 UINT64_C(0x9e3779b97f4a7c15),
	};

	return mmc_prng_next(&flow);
}

uint32_t mmc_fabric_next_link(const struct mmc_fabric *fabric, uint32_t at,
			      struct mmc_journey journey, uint64_t seed,
			      const struct mmc_link *states)
{
	uint32_t here = at - fabric->nhosts;
	uint32_t goal = mmc_fabric_switch_of(fabric, journey.to);
	const uint32_t *links;
	uint32_t nlinks, chosen, place;

	if (mmc_fabric_is_host(fabric, at))
		return at;
	if (here == goal)
		return fabric->nhosts + journey.to;
	place = here * fabric->nswitches + goal;
	links = fabric->route_links + fabric->route_first[place];
	nlinks = fabric->route_first[place + 1] - fabric->route_first[place];
	chosen = (uint32_t)(flow_hash(journey, at, seed) % nlinks);
	if (fabric->choice == MMC_FABRIC_HASHED)
		return links[chosen];
	for (uint32_t i = 0; i < nlinks; i++)
		if (states[links[i]].free_ps < states[links[chosen]].free_ps)
			chosen = i;
	return links[chosen];
}

uint32_t mmc_fabric_path(const struct mmc_fabric *fabric,
			 struct mmc_journey journey, uint64_t seed,
			 const struct mmc_link *states, uint32_t *links)
{
	uint32_t at = journey.from;
	uint32_t n = 0;

	while (at != journey.to) {
		MMC_ASSERT(n < MMC_PATH_LINKS_MAX);
		links[n] =
			mmc_fabric_next_link(fabric, at, journey, seed, states);
		at = fabric->links[links[n++]].to;
	}
	return n;
}
