/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "support/assert.h"
#include "support/bits.h"
#include "support/prng.h"

/* A distance that stands for: not known, or not reachable. */
#define FAR UINT32_MAX

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
		     !rate_is_possible(link->burst_mbits)))
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
 * Returns how many links lead from one switch to another when each switch takes the
 * first of its routes; FAR if they do not lead there.
 */
static uint32_t distance(const struct mmc_fabric *fabric, uint32_t from,
			 uint32_t to)
{
	uint32_t at = from;

	for (uint32_t n = 0; n < MMC_PATH_LINKS_MAX; n++) {
		uint32_t place = at * fabric->nswitches + to;
		uint32_t first = fabric->route_first[place];

		if (at == to)
			return n;
		if (first == fabric->route_first[place + 1])
			return FAR;
		at = fabric->links[fabric->route_links[first]].to -
		     fabric->nhosts;
	}
	return FAR;
}

/* Returns whether all routes of one place of the table come nearer to the goal. */
static bool routes_come_nearer(const struct mmc_fabric *fabric,
			       const uint32_t *distances, uint32_t place)
{
	uint32_t nswitches = fabric->nswitches;
	uint32_t goal = place % nswitches;
	uint32_t end = fabric->route_first[place + 1];

	for (uint32_t k = fabric->route_first[place]; k < end; k++) {
		uint32_t link = fabric->route_links[k];
		uint32_t next = fabric->links[link].to - fabric->nhosts;

		if (distances[next * nswitches + goal] >= distances[place])
			return false;
	}
	return true;
}

static bool routes_are_sane(const struct mmc_fabric *fabric,
			    uint32_t *distances)
{
	uint32_t nswitches = fabric->nswitches;
	uint32_t nroutes = fabric->route_first[nswitches * nswitches];

	for (uint32_t k = 0; k < nroutes; k++)
		if (!mmc_fabric_is_inner(fabric, fabric->route_links[k]))
			return false;
	for (uint32_t i = 0; i < nswitches * nswitches; i++) {
		distances[i] = distance(fabric, i / nswitches, i % nswitches);
		if (distances[i] == FAR)
			return false;
	}
	for (uint32_t i = 0; i < nswitches * nswitches; i++)
		if (!routes_come_nearer(fabric, distances, i))
			return false;
	return true;
}

int mmc_fabric_check(const struct mmc_fabric *fabric)
{
	uint32_t nswitches = fabric->nswitches;
	uint32_t *distances;
	bool sane;

	if (fabric->nhosts == 0 || nswitches == 0 || fabric->ntrees == 0 ||
	    nswitches > 65535 || fabric->nlinks < 2 * fabric->nhosts ||
	    fabric->choice > MMC_FABRIC_ADAPTIVE || !links_are_sane(fabric) ||
	    !table_is_sane(fabric, fabric->route_first, fabric->route_links,
			   nswitches * nswitches, nswitches) ||
	    !table_is_sane(fabric, fabric->tree_first, fabric->tree_links,
			   fabric->ntrees * nswitches, 1))
		return -MMC_EINVAL;
	distances = malloc((size_t)nswitches * nswitches * sizeof(*distances));
	if (!distances)
		return -MMC_ENOMEM;
	sane = routes_are_sane(fabric, distances);
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
