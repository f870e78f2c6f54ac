/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/laws.h"
#include "support/bits.h"

_Static_assert(MMC_TRAFFIC_COUNT == 3,
	       "each array of struct mmc_sim_traffic has three elements");

/* Converts `count` to struct mmc_sim_traffic, the type in the simulator's public API. */
static struct mmc_sim_traffic traffic_of(const struct mmc_traffic_count *count)
{
	struct mmc_sim_traffic traffic;

	memcpy(traffic.datagrams, count->datagrams, sizeof(traffic.datagrams));
	memcpy(traffic.bytes, count->bytes, sizeof(traffic.bytes));
	return traffic;
}

/*
 * Writes to `rank` what the run has measured of the rank of `host`. Must be called only
 * once for each host, since each call adds the host's counters to `host->outcome`.
 */
static void fill_rank(struct mmc_sim_rank *rank, struct mmc_host *host)
{
	const struct mmc_monitor *monitor = &host->stage->monitor;

	mmc_host_sum_counters(host);
	*rank = host->outcome;
	rank->tx = traffic_of(&monitor->sent[host->rank]);
	rank->rx = traffic_of(&host->endpoint->received);
}

/* Writes the name of link number `index` of the fabric. */
static void name_link(char *name, size_t size, uint32_t index,
		      const struct mmc_network *network)
{
	uint32_t nhosts = network->fabric.nhosts;
	uint32_t from = network->fabric.links[index].from - nhosts;
	uint32_t to = network->fabric.links[index].to - nhosts;
	uint32_t nleaves = network->options.nswitches;

	if (index < nhosts)
		snprintf(name, size, "rank %u up", index);
	else if (index < 2 * nhosts)
		snprintf(name, size, "rank %u down", index - nhosts);
	else if (network->options.fabric)
		snprintf(name, size, "switch %u to %u", from, to);
	else if (to == nleaves)
		snprintf(name, size, "leaf %u up", from);
	else
		snprintf(name, size, "leaf %u down", to);
}

static void fill_link(struct mmc_sim_link *to, const struct mmc_link *from)
{
	to->bytes = from->bytes;
	memcpy(to->kind_bytes, from->kind_bytes, sizeof(to->kind_bytes));
	to->datagrams = from->entered;
	to->packets = from->packets;
	to->deepest_bytes = from->deepest_bytes;
	to->lost_datagrams = from->lost;
	to->overflowed_datagrams = from->overflowed;
}

/*
 * Returns the time from the first start of an operation on any rank to the last end of
 * an operation on any rank, or 0 if no operation was started.
 */
static uint64_t duration_ns(const struct mmc_run_state *run)
{
	uint64_t first_ns = MMC_NEVER_NS;
	uint64_t last_ns = 0;

	for (uint32_t i = 0; i < run->nhosts; i++) {
		const struct mmc_host *host = &run->hosts[i];

		for (uint32_t s = 0; s < run->stage.spec->nstreams; s++)
			if (host->streams[s].nstarted > 0 &&
			    host->streams[s].start_ns[0] < first_ns)
				first_ns = host->streams[s].start_ns[0];
		if (host->outcome.end_ns > last_ns)
			last_ns = host->outcome.end_ns;
	}
	return last_ns > first_ns ? last_ns - first_ns : 0;
}

int mmc_result_fill(struct mmc_sim_result *result, struct mmc_run_state *run)
{
	const struct mmc_network *network = &run->stage.network;
	struct mmc_sim_result filled = {
		.nranks = run->stage.spec->nranks,
		.nlinks = network->nlinks,
		.ranks = calloc(run->stage.spec->nranks, sizeof(*filled.ranks)),
		.links = calloc(network->nlinks, sizeof(*filled.links)),
		/*
		 * In a large run, each datagram carries a stamp of a few bytes in place
		 * of a chunk's payload. Each byte of the stamp counts as `scale` bytes
		 * of payload (sim/stage.c).
		 */
		.stamped = run->stage.scale > 1,
		.time_ns = duration_ns(run),
		.last_arrival_ns = run->last_arrival_ns,
		.events = network->nevents,
		.datagrams = run->narrivals,
		.sealed = run->stage.seals.count,
	};

	if (!filled.ranks || !filled.links) {
		mmc_sim_result_clear(&filled);
		return -MMC_ENOMEM;
	}
	memcpy(filled.violation, run->stage.finding.text,
	       sizeof(filled.violation));
	for (uint32_t i = 0; i < run->nhosts; i++)
		fill_rank(&filled.ranks[i], &run->hosts[i]);
	for (uint32_t i = 0; i < filled.nranks; i++) {
		filled.ranks[i].script_end_ns =
			mmc_player_end_ns(&run->player, i);
		filled.script_ns = mmc_max_u64(filled.script_ns,
					       filled.ranks[i].script_end_ns);
	}
	for (uint32_t i = 0; i < network->nlinks; i++) {
		fill_link(&filled.links[i], &network->links[i]);
		name_link(filled.links[i].name, sizeof(filled.links[i].name), i,
			  network);
	}
	mmc_laws_measure(run, &filled.figures);
	*result = filled;
	return 0;
}

void mmc_sim_result_clear(struct mmc_sim_result *result)
{
	free(result->ranks);
	free(result->links);
	result->ranks = NULL;
	result->links = NULL;
}
