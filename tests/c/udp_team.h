/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a team in one process: UDP endpoints over loopback. */
#ifndef MMC_TESTS_UDP_TEAM_H
#define MMC_TESTS_UDP_TEAM_H

#include <poll.h>

#include "check.h"
#include "drivers/udp/peers.h"
#include "drivers/udp/udp.h"

#define NRANKS 3 /* in most teams */
#define NRANKS_MAX 33
#define CHUNK_BYTES 8960

#define EVENTS_MAX 64

/* How long a datagram on loopback may take on a busy machine. */
#define PATIENCE_MS 5000
/* How long a test waits for what must not arrive. */
#define QUIET_MS 20

struct team {
	uint32_t nranks;
	struct mmc_endpoint *endpoints[NRANKS_MAX];
	uint8_t addresses[NRANKS_MAX * MMC_UDP_ADDRESS_BYTES];
	uint32_t buffer_bytes;
};

static uint32_t nteams;	      /* teams opened; each has a port of its own */
static bool team_has_workers; /* whether the teams to open have workers */

static inline struct mmc_udp_options team_options(uint32_t rank,
						  uint32_t nsubgroups)
{
	struct mmc_udp_options options = {
		.rank = rank,
		.nranks = NRANKS,
		.group = 0xef000100 + ((uint32_t)getpid() & 0xffff) * 128,
		.port = 20000 + ((uint32_t)getpid() + nteams) % 20000,
		.nsubgroups = nsubgroups,
		.chunk_bytes = CHUNK_BYTES,
		.checksum = MMC_CHECKSUM_HEADER,
		.workers = team_has_workers,
	};

	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	return options;
}

static inline void team_open_ranks(struct team *team, uint32_t nranks,
				   uint32_t nsubgroups)
{
	memset(team, 0, sizeof(*team));
	team->nranks = nranks;
	nteams++;
	for (uint32_t rank = 0; rank < nranks; rank++) {
		struct mmc_udp_options options = team_options(rank, nsubgroups);

		options.nranks = nranks;
		if (!CHECK_EQ(mmc_udp_open(&options, &team->buffer_bytes,
					   &team->endpoints[rank]),
			      0)) {
			fprintf(stderr, "%s\n", mmc_last_error());
			exit(1);
		}
		team->endpoints[rank]->driver->address(
			team->endpoints[rank],
			team->addresses + rank * MMC_UDP_ADDRESS_BYTES);
	}
}

static inline void team_open(struct team *team, uint32_t nsubgroups)
{
	team_open_ranks(team, NRANKS, nsubgroups);
}

static inline void team_connect(struct team *team)
{
	for (uint32_t rank = 0; rank < team->nranks; rank++) {
		struct mmc_endpoint *endpoint = team->endpoints[rank];

		if (!CHECK_EQ(endpoint->driver->connect(endpoint,
							team->addresses),
			      0)) {
			fprintf(stderr, "%s\n", mmc_last_error());
			exit(1);
		}
	}
}

static inline void team_close(struct team *team)
{
	for (uint32_t rank = 0; rank < team->nranks; rank++)
		team->endpoints[rank]->driver->close(team->endpoints[rank]);
}

/* ---- receiving --------------------------------------------------------- */

/*
 * Sleeps until there is something to poll, by a descriptor or by the endpoint's own
 * deadline; returns false if there is nothing in time.
 */
static inline bool wait_readable(struct mmc_endpoint *endpoint, int timeout_ms)
{
	struct pollfd watched[MMC_ENDPOINT_FDS_MAX];
	int fds[MMC_ENDPOINT_FDS_MAX];
	unsigned ncontrol = 0;
	unsigned count = endpoint->driver->fds(endpoint, fds, &ncontrol);

	CHECK_EQ(ncontrol, 1);
	for (unsigned i = 0; i < count; i++)
		watched[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	if (endpoint->driver->arm != NULL && endpoint->driver->arm(endpoint))
		return true;
	if (endpoint->driver->deadline_ns(endpoint) <=
	    endpoint->driver->now_ns(endpoint))
		return true;
	return poll(watched, count, timeout_ms) > 0;
}

/*
 * Waits for datagrams, and receives at most `count` in one call; returns how many, or 0
 * if none arrived in time.
 */
static inline unsigned receive(struct mmc_endpoint *endpoint,
			       struct mmc_event *events, unsigned count)
{
	int rv = 0;

	do {
		if (!wait_readable(endpoint, PATIENCE_MS))
			return 0;
		rv = endpoint->driver->poll(endpoint, events, count);
	} while (rv == 0);
	CHECK(rv > 0);
	return rv > 0 ? (unsigned)rv : 0;
}

/* Receives one datagram; its bytes are valid until the next call. */
static inline struct mmc_event receive_one(struct mmc_endpoint *endpoint)
{
	struct mmc_event event = { .source = MMC_PEER_NONE };

	CHECK_EQ(receive(endpoint, &event, 1), 1);
	return event;
}

static inline bool is_quiet(struct mmc_endpoint *endpoint)
{
	struct mmc_event events[EVENTS_MAX];

	while (wait_readable(endpoint, QUIET_MS))
		if (endpoint->driver->poll(endpoint, events, EVENTS_MAX) != 0)
			return false;
	return true;
}

#endif
