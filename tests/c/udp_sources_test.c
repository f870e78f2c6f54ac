/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sources that are heard on a group of the UDP driver. With few ranks, each
 * is heard by a socket of its own; with many, all are heard by one. Strangers
 * are always told apart.
 */
#include "check.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/wire/header.h"
#include "drivers/udp/endpoint.h"
#include "udp_team.h"

/* The buffer that net.core.rmem_max usually grants an ordinary user. */
#define SMALL_BUFFER_BYTES 212992

static uint8_t payload[CHUNK_BYTES];

/* Multicasts full chunks, numbered from `first`, in batches as the engine does. */
static void multicast_chunks(struct mmc_endpoint *endpoint, uint32_t first,
			     uint32_t count)
{
	enum { BATCH = 16 };
	uint8_t heads[BATCH][MMC_HEADER_BYTES] = { { 0 } };
	struct mmc_parcel parcels[BATCH];

	for (uint32_t sent = 0; sent < count;) {
		uint32_t n = 0;

		for (; n < BATCH && sent < count; n++, sent++) {
			mmc_put_u32(heads[n], first + sent);
			parcels[n] = (struct mmc_parcel){
				.head = heads[n],
				.head_bytes = MMC_HEADER_BYTES,
				.body = payload,
				.body_bytes = CHUNK_BYTES,
				.peer = MMC_PEER_ALL,
			};
		}
		CHECK_EQ(endpoint->driver->send(endpoint, parcels, n), 0);
	}
}

/* Receives and counts what has arrived by source, and checks its order. */
static void count_sources(struct mmc_endpoint *endpoint, uint32_t *counts)
{
	struct mmc_event events[EVENTS_MAX];

	while (wait_readable(endpoint, QUIET_MS)) {
		int n = endpoint->driver->poll(endpoint, events, EVENTS_MAX);

		CHECK(n >= 0);
		for (int i = 0; i < n; i++) {
			uint32_t source = events[i].source;

			if (!CHECK(source < NRANKS_MAX))
				continue;
			CHECK_EQ(mmc_get_u32(events[i].bytes), counts[source]);
			counts[source]++;
		}
	}
}

static void all_hear_all(uint32_t nranks)
{
	enum { COUNT = 5 };
	struct team team;

	team_open_ranks(&team, nranks, 1);
	team_connect(&team);
	for (uint32_t rank = 0; rank < nranks; rank++)
		multicast_chunks(team.endpoints[rank], 0, COUNT);
	for (uint32_t rank = 0; rank < nranks; rank++) {
		uint32_t counts[NRANKS_MAX] = { 0 };

		count_sources(team.endpoints[rank], counts);
		for (uint32_t source = 0; source < nranks; source++)
			CHECK_EQ(counts[source], source == rank ? 0 : COUNT);
	}
	team_close(&team);
}

static void all_hear_all_in_order(void)
{
	all_hear_all(1);
	all_hear_all(2);
	all_hear_all(3);
	all_hear_all(MMC_UDP_RANKS_APART_MAX);
	all_hear_all(MMC_UDP_RANKS_APART_MAX + 1);
}

/* Gives a rank's receive buffers an ordinary user's size; returns what they hold. */
static uint32_t shrink_buffers(struct mmc_endpoint *endpoint)
{
	struct mmc_udp *udp = (struct mmc_udp *)endpoint;
	int half = SMALL_BUFFER_BYTES / 2; /* the kernel doubles it */
	uint32_t nothers = udp->options.nranks - 1;

	for (unsigned i = 0; i < udp->nsockets; i++)
		CHECK_EQ(setsockopt(udp->sockets[i].fd, SOL_SOCKET, SO_RCVBUF,
				    &half, sizeof(half)),
			 0);
	return mmc_udp_safe_bytes(udp) *
	       (mmc_udp_has_sources(&udp->options) ? nothers : 1);
}

/* A window of the promised size arrives in full, though no rank receives meanwhile. */
static void a_promise_holds(uint32_t nranks, bool small)
{
	uint32_t counts[NRANKS_MAX] = { 0 };
	uint32_t buffer_bytes, nchunks;
	struct team team;

	team_open_ranks(&team, nranks, 1);
	team_connect(&team);
	buffer_bytes = small ? shrink_buffers(team.endpoints[0])
			     : team.buffer_bytes;
	nchunks = buffer_bytes / CHUNK_BYTES / (nranks - 1);
	for (uint32_t rank = 1; rank < nranks; rank++)
		multicast_chunks(team.endpoints[rank], 0, nchunks);
	CHECK(nchunks > 0 || nranks > MMC_UDP_RANKS_APART_MAX);
	count_sources(team.endpoints[0], counts);
	for (uint32_t rank = 1; rank < nranks; rank++)
		CHECK_EQ(counts[rank], nchunks);
	team_close(&team);
}

static void a_promised_buffer_loses_nothing(void)
{
	a_promise_holds(2, false);
	a_promise_holds(3, false);
	a_promise_holds(3, true);
	a_promise_holds(8, true);
	a_promise_holds(MMC_UDP_RANKS_APART_MAX + 1, false);
	a_promise_holds(MMC_UDP_RANKS_APART_MAX + 1, true);
}

/* A flood from one rank takes none of the room that is promised to others. */
static void a_flood_drops_only_its_own(void)
{
	struct mmc_event events[EVENTS_MAX];
	uint32_t nflooded = 0, nchunks, next = 0;
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	nchunks = shrink_buffers(team.endpoints[0]) / CHUNK_BYTES / 2;
	multicast_chunks(team.endpoints[1], 0, 10 * nchunks);
	multicast_chunks(team.endpoints[2], 0, nchunks);
	while (wait_readable(team.endpoints[0], QUIET_MS)) {
		unsigned count = receive(team.endpoints[0], events, EVENTS_MAX);

		for (unsigned i = 0; i < count; i++) {
			if (events[i].source == 1) {
				nflooded++;
				continue;
			}
			CHECK_EQ(events[i].source, 2);
			CHECK_EQ(mmc_get_u32(events[i].bytes), next);
			next++;
		}
	}
	CHECK_EQ(next, nchunks);
	CHECK(nflooded >= nchunks);
	CHECK(nflooded < 10 * nchunks);
	team_close(&team);
}

/* Multicasts to the group of `team` from a socket that belongs to no rank. */
static void multicast_foreign(const struct team *team, uint32_t count)
{
	const struct mmc_udp *udp = (struct mmc_udp *)team->endpoints[0];
	struct in_addr via = { .s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof(via)),
		 0);
	for (uint32_t i = 0; i < count; i++)
		CHECK_EQ(sendto(fd, payload, 100, 0,
				(const struct sockaddr *)&udp->groups[0],
				sizeof(udp->groups[0])),
			 100);
	close(fd);
}

static void strangers_are_heard(uint32_t nranks)
{
	enum { COUNT = 100 };
	struct team team;

	team_open_ranks(&team, nranks, 1);
	team_connect(&team);
	multicast_foreign(&team, COUNT);
	for (uint32_t rank = 0; rank < nranks; rank++) {
		for (unsigned i = 0; i < COUNT; i++) {
			struct mmc_event event =
				receive_one(team.endpoints[rank]);

			CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
			CHECK_EQ(event.nbytes, 100);
		}
		CHECK(is_quiet(team.endpoints[rank]));
	}
	team_close(&team);
}

static void strangers_are_all_counted(void)
{
	strangers_are_heard(1);
	strangers_are_heard(3);
	strangers_are_heard(MMC_UDP_RANKS_APART_MAX + 1);
}

CHECK_MAIN(CHECK_TEST(all_hear_all_in_order),
	   CHECK_TEST(a_promised_buffer_loses_nothing),
	   CHECK_TEST(a_flood_drops_only_its_own),
	   CHECK_TEST(strangers_are_all_counted))
