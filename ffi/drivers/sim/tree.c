/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/tree.h"

#include <stdlib.h>

#include "drivers/sim/fabric.h"

/* The notes of a search about one switch of the tree. */
struct place {
	uint32_t parent; /* the switch from which it was found, or itself */
	uint32_t nhosts; /* hosts on it and on the switches found from it */
	bool found;
};

/* A search through one tree, which may be in several parts. */
struct search {
	const struct mmc_fabric *fabric;
	const uint32_t *first; /* [nswitches + 1] of this tree */
	struct place *places;  /* [nswitches] */
	uint32_t *order;       /* [nswitches] switches as they were found */
	uint32_t nfound;
	uint32_t *reach; /* [nlinks] of this tree */
};

static uint32_t link_of(const struct search *search, uint32_t k)
{
	return search->fabric->tree_links[k];
}

/* Returns the number of the switch that a link leads to. */
static uint32_t next_of(const struct search *search, uint32_t link)
{
	return search->fabric->links[link].to - search->fabric->nhosts;
}

/*
 * Finds what hangs directly on a switch. Returns false if a switch is found a second
 * time, or if the way back to the parent is not there exactly once.
 */
static bool look_around(struct search *search, uint32_t here)
{
	struct place *place = &search->places[here];
	uint32_t nback = place->parent == here;

	for (uint32_t k = search->first[here]; k < search->first[here + 1];
	     k++) {
		uint32_t link = link_of(search, k);
		uint32_t next;

		if (!mmc_fabric_is_inner(search->fabric, link)) {
			search->reach[link] = 1;
			place->nhosts++;
			continue;
		}
		next = next_of(search, link);
		if (next == place->parent) {
			nback++;
			continue;
		}
		if (search->places[next].found)
			return false;
		search->places[next] =
			(struct place){ .parent = here, .found = true };
		search->order[search->nfound++] = next;
	}
	return nback == 1;
}

/* Writes what the links between the switches found from number `begin` on reach. */
static void measure_part(struct search *search, uint32_t begin)
{
	uint32_t total;

	for (uint32_t i = search->nfound - 1; i > begin; i--) {
		const struct place *place = &search->places[search->order[i]];

		search->places[place->parent].nhosts += place->nhosts;
	}
	total = search->places[search->order[begin]].nhosts;
	for (uint32_t i = begin; i < search->nfound; i++) {
		uint32_t here = search->order[i];
		uint32_t end = search->first[here + 1];

		for (uint32_t k = search->first[here]; k < end; k++) {
			uint32_t link = link_of(search, k);
			uint32_t next;

			if (!mmc_fabric_is_inner(search->fabric, link)) {
				search->reach[link - search->fabric->nhosts] =
					total - 1;
				continue;
			}
			next = next_of(search, link);
			search->reach[link] =
				search->places[next].parent == here
					? search->places[next].nhosts
					: total - search->places[here].nhosts;
		}
	}
}

static bool measure_tree(struct search *search)
{
	for (uint32_t s = 0; s < search->fabric->nswitches; s++) {
		uint32_t begin = search->nfound;

		if (search->places[s].found)
			continue;
		search->places[s] =
			(struct place){ .parent = s, .found = true };
		search->order[search->nfound++] = s;
		for (uint32_t i = begin; i < search->nfound; i++)
			if (!look_around(search, search->order[i]))
				return false;
		measure_part(search, begin);
	}
	return true;
}

int mmc_trees_measure(const struct mmc_fabric *fabric, uint32_t *reach)
{
	uint32_t n = fabric->nswitches;
	struct place *places = calloc(n, sizeof(*places));
	uint32_t *order = calloc(n, sizeof(*order));
	int rv = places && order ? 0 : -MMC_ENOMEM;

	for (uint32_t t = 0; rv == 0 && t < fabric->ntrees; t++) {
		struct search search = {
			.fabric = fabric,
			.first = fabric->tree_first + (size_t)t * n,
			.places = places,
			.order = order,
			.reach = reach + (size_t)t * fabric->nlinks,
		};

		for (uint32_t s = 0; s < n; s++)
			places[s] = (struct place){ 0 };
		if (!measure_tree(&search))
			rv = -MMC_EINVAL;
	}
	free(places);
	free(order);
	return rv;
}
