/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a team in one process: verbs endpoints, each on its device. */
#ifndef MMC_TESTS_VERBS_TEAM_H
#define MMC_TESTS_VERBS_TEAM_H

#include <poll.h>
#include <time.h>

#include "check.h"
#include "core/wire/header.h"
#include "drivers/verbs/endpoint.h"

#define NDEVICES 8 /* in the guest: rxe0 to rxe7 */

#define NRANKS_MAX NDEVICES

#define CHUNK_BYTES 4080 /* with the header it fills the MTU */

/* How long anything may take on a busy machine. */
#define PATIENCE_MS 20000
/* How long a test waits for what must not arrive. */
#define QUIET_MS 50

struct team {
	uint32_t nranks;
	struct mmc_team_options options; /* of rank 0 */
	struct mmc_endpoint *endpoints[NRANKS_MAX];
	uint8_t addresses[NRANKS_MAX * MMC_ADDRESS_BYTES_MAX];
	uint32_t buffer_bytes;
};

static uint8_t pattern[CHUNK_BYTES];

static inline struct mmc_team_options team_options(uint32_t nranks)
{
	static uint32_t nteams;
	struct mmc_team_options options = {
		.transport = MMC_TRANSPORT_VERBS,
		.nranks = nranks,
		.group = 0xef000100 + nteams * 128,
		.subgroups = 1,
		.ttl = 1,
		.qkey = 0x1234567 + nteams,
		.chunk_bytes = CHUNK_BYTES,
		.checksum = MMC_CHECKSUM_HEADER,
	};

	nteams++;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + 1);
	return options;
}

static inline void succeed(int rv)
{
	if (CHECK_EQ(rv, 0))
		return;
	fprintf(stderr, "%s\n", mmc_last_error());
	exit(1);
}

static inline uint8_t *address_of(struct team *team, uint32_t rank)
{
	return team->addresses + rank * team->endpoints[rank]->address_bytes;
}

/* Opens an endpoint of `rank` on the device with the number `device`. */
static inline struct mmc_endpoint *open_rank(struct mmc_team_options options,
					     uint32_t rank, uint32_t device,
					     uint32_t *buffer_bytes)
{
	struct mmc_endpoint *endpoint;
	char name[16];

	snprintf(name, sizeof(name), "rxe%u", device);
	succeed(mmc_verbs_device(name, 0, &options.device));
	options.rank = rank;
	succeed(mmc_verbs_open(&options, buffer_bytes, &endpoint));
	return endpoint;
}

static inline void team_open(struct team *team,
			     const struct mmc_team_options *options)
{
	memset(team, 0, sizeof(*team));
	team->nranks = options->nranks;
	team->options = *options;
	for (uint32_t rank = 0; rank < team->nranks; rank++) {
		team->endpoints[rank] =
			open_rank(*options, rank, rank, &team->buffer_bytes);
		team->endpoints[rank]->driver->address(team->endpoints[rank],
						       address_of(team, rank));
	}
}

static inline void team_connect(struct team *team)
{
	for (uint32_t rank = 0; rank < team->nranks; rank++)
		succeed(team->endpoints[rank]->driver->connect(
			team->endpoints[rank], team->addresses));
}

/* Opens and connects a team of `nranks` with the usual options. */
static inline void team_start(struct team *team, uint32_t nranks)
{
	struct mmc_team_options options = team_options(nranks);

	team_open(team, &options);
	team_connect(team);
}

static inline void team_close(struct team *team)
{
	for (uint32_t rank = 0; rank < team->nranks; rank++)
		if (team->endpoints[rank] != NULL)
			team->endpoints[rank]->driver->close(
				team->endpoints[rank]);
}

/* ---- sending and receiving ----------------------------------------------- */

/* Sends a datagram whose header has `index`. */
static inline void send_to(struct mmc_endpoint *endpoint, uint32_t peer,
			   uint32_t subgroup, bool control, uint32_t index,
			   uint32_t body_bytes)
{
	const struct mmc_header header = { .index = index };
	uint8_t head[MMC_HEADER_BYTES];
	struct mmc_parcel parcel = {
		.head = head,
		.head_bytes = sizeof(head),
		.body = body_bytes > 0 ? pattern : NULL,
		.body_bytes = body_bytes,
		.peer = peer,
		.subgroup = subgroup,
		.control = control,
	};

	mmc_header_encode(head, &header, sizeof(head) + body_bytes,
			  MMC_CHECKSUM_OFF);
	CHECK_EQ(endpoint->driver->send(endpoint, &parcel, 1), 0);
}

static inline uint32_t index_of(const struct mmc_event *event)
{
	return mmc_header_peek(event->bytes).index;
}

static inline const uint8_t *body_of(const struct mmc_event *event)
{
	return event->body != NULL ? event->body
				   : event->bytes + MMC_HEADER_BYTES;
}

/* Sleeps until a descriptor is readable. Returns false if none is in time. */
static inline bool sleep_until_readable(struct mmc_endpoint *endpoint,
					int timeout_ms)
{
	struct pollfd watched[MMC_ENDPOINT_FDS_MAX];
	int fds[MMC_ENDPOINT_FDS_MAX];
	unsigned ncontrol = 0;
	unsigned count = endpoint->driver->fds(endpoint, fds, &ncontrol);

	CHECK_EQ(ncontrol, count - 1);
	for (unsigned i = 0; i < count; i++)
		watched[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	return poll(watched, count, timeout_ms) > 0;
}

/*
 * Sleeps until there are events, and fetches at most `nmax`; returns how many,
 * or 0 if there are none in time.
 */
static inline int receive(struct mmc_endpoint *endpoint,
			  struct mmc_event *events, unsigned nmax,
			  int timeout_ms)
{
	int count = 0;

	do {
		count = endpoint->driver->poll(endpoint, events, nmax);
	} while (count == 0 && (endpoint->driver->arm(endpoint) ||
				sleep_until_readable(endpoint, timeout_ms)));
	CHECK(count >= 0);
	return count;
}

/* Receives one event; its bytes are valid until the next call. */
static inline struct mmc_event receive_one(struct mmc_endpoint *endpoint)
{
	struct mmc_event event = { .source = MMC_PEER_NONE };

	CHECK_EQ(receive(endpoint, &event, 1, PATIENCE_MS), 1);
	return event;
}

static inline bool is_quiet(struct mmc_endpoint *endpoint)
{
	struct mmc_event event;

	return receive(endpoint, &event, 1, QUIET_MS) == 0;
}

#endif
