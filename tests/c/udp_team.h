/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a team in one process: UDP endpoints over loopback. */
#ifndef MMC_TESTS_UDP_TEAM_H
#define MMC_TESTS_UDP_TEAM_H

#include "check.h"
#include "drivers/udp/udp.h"

#define NRANKS 3
#define CHUNK_BYTES 8960

struct team {
	struct mmc_endpoint *endpoints[NRANKS];
	uint8_t addresses[NRANKS * MMC_ADDRESS_BYTES];
	uint32_t buffer_bytes;
};

static uint32_t nteams; /* opened so far; each has a port of its own */

static inline struct mmc_udp_options team_options(uint32_t rank,
						  uint32_t nsubgroups)
{
	struct mmc_udp_options options = {
		.rank = rank,
		.nranks = NRANKS,
		.group = 0xefc00100 + ((uint32_t)getpid() & 0x3fff) * 4,
		.port = 20000 + ((uint32_t)getpid() + nteams) % 20000,
		.nsubgroups = nsubgroups,
		.chunk_bytes = CHUNK_BYTES,
		.checksum = MMC_CHECKSUM_HEADER,
	};

	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	return options;
}

static inline void team_open(struct team *team, uint32_t nsubgroups)
{
	memset(team, 0, sizeof(*team));
	nteams++;
	for (uint32_t rank = 0; rank < NRANKS; rank++) {
		struct mmc_udp_options options = team_options(rank, nsubgroups);

		if (!CHECK_EQ(mmc_udp_open(&options, &team->buffer_bytes,
					   &team->endpoints[rank]),
			      0)) {
			fprintf(stderr, "%s\n", mmc_last_error());
			exit(1);
		}
		team->endpoints[rank]->driver->address(
			team->endpoints[rank],
			team->addresses + rank * MMC_ADDRESS_BYTES);
	}
}

static inline void team_connect(struct team *team)
{
	for (uint32_t rank = 0; rank < NRANKS; rank++) {
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
	for (uint32_t rank = 0; rank < NRANKS; rank++)
		team->endpoints[rank]->driver->close(team->endpoints[rank]);
}

#endif
