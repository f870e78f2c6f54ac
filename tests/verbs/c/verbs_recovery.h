/* SPDX-License-Identifier: BSD-3-Clause */
/* A team whose connections and memberships end, and that recovers by polling. */
#ifndef MMC_TESTS_VERBS_RECOVERY_H
#define MMC_TESTS_VERBS_RECOVERY_H

#include <errno.h>
#include <stdlib.h>

#include "verbs_team.h"

#define TIMEOUT_NS (8 * MMC_S_NS)

static inline struct team start(uint32_t nranks, enum mmc_join join)
{
	struct mmc_team_options options = team_options(nranks);
	struct team team;

	options.timeout_ns = TIMEOUT_NS;
	options.join = join;
	options.subgroups = 2;
	team_open(&team, &options);
	team_connect(&team);
	return team;
}

static inline struct mmc_verbs_connection *
connection_to(const struct team *team, uint32_t rank, uint32_t peer)
{
	return mmc_verbs_of(team->endpoints[rank])->ranks[peer].connection;
}

struct tally {
	uint32_t ndatagrams;
	uint32_t nfailed_reads;
	uint32_t nreads;
	uint32_t nbroken;
	uint32_t last; /* index of the last datagram */
};

/* Polls all ranks once; adds what rank 0 gets to `tally`. */
static inline void move(const struct team *team, struct tally *tally)
{
	struct mmc_event events[8];

	usleep(200); /* the guest's only processor also sends */
	for (uint32_t rank = 0; rank < team->nranks; rank++) {
		struct mmc_endpoint *endpoint = team->endpoints[rank];
		int count;

		if (endpoint == NULL)
			continue;
		mmc_verbs_watch_device(mmc_verbs_of(endpoint));
		count = endpoint->driver->poll(endpoint, events, 8);
		for (int i = 0; i < count && rank == 0; i++) {
			bool data = events[i].kind == MMC_EVENT_DATAGRAM;
			bool read = events[i].kind == MMC_EVENT_READ;

			tally->ndatagrams += data;
			if (data)
				tally->last = index_of(&events[i]);
			tally->nreads += read && events[i].nbytes > 0;
			tally->nfailed_reads += read && events[i].nbytes == 0;
			tally->nbroken += events[i].kind == MMC_EVENT_BROKEN;
		}
	}
}

static inline uint64_t patience_ns(void)
{
	return mmc_verbs_clock_ns() + (uint64_t)PATIENCE_MS * MMC_MS_NS;
}

/* Polls until both ends are in state `link`; returns false if not in time. */
static inline bool await_links(const struct team *team, struct tally *tally,
			       enum mmc_verbs_link link)
{
	uint64_t until_ns = patience_ns();

	while (connection_to(team, 0, 1)->link != link ||
	       connection_to(team, 1, 0)->link != link) {
		if (mmc_verbs_clock_ns() > until_ns)
			return false;
		move(team, tally);
	}
	return true;
}

/* Returns whether rank 0 gets a datagram with `index` in time. */
static inline bool await_datagram(const struct team *team, struct tally *tally,
				  uint32_t index)
{
	uint64_t until_ns = patience_ns();

	while (tally->last != index && mmc_verbs_clock_ns() < until_ns)
		move(team, tally);
	return tally->last == index;
}

/*
 * Polls until `rank` has rejoined groups `count` times in all; returns false if
 * that is not in time.
 */
static inline bool await_rejoins(const struct team *team, struct tally *tally,
				 uint32_t rank, uint64_t count)
{
	uint64_t until_ns = patience_ns();

	while (team->endpoints[rank]->rejoins < count &&
	       mmc_verbs_clock_ns() < until_ns)
		move(team, tally);
	return team->endpoints[rank]->rejoins >= count;
}

/* Checks that multicast of rank 1 to both groups, and its unicast, reach rank 0. */
static inline void check_all_ways(const struct team *team, struct tally *tally)
{
	static uint32_t index = 1000;

	for (uint32_t subgroup = 0; subgroup < 2; subgroup++) {
		send_to(team->endpoints[1], MMC_PEER_ALL, subgroup, false,
			++index, 30);
		CHECK(await_datagram(team, tally, index));
	}
	send_to(team->endpoints[1], 0, 0, true, ++index, 30);
	CHECK(await_datagram(team, tally, index));
	send_to(team->endpoints[1], 0, 0, false, ++index, 30);
	CHECK(await_datagram(team, tally, index));
}

#endif
