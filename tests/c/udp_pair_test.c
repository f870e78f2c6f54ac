/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs over the UDP driver: two ranks that send by unicast what a team multicasts. */
#include "check.h"

#include <mpimcast/mmc.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/wire/header.h"
#include "udp_team.h"

/* Opens the two ranks of a pair, without connecting them. */
static void pair_open(struct team *team)
{
	memset(team, 0, sizeof(*team));
	team->nranks = 2;
	nteams++;
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct mmc_udp_options options = team_options(rank, 1);

		options.nranks = 2;
		options.pair = true;
		if (!CHECK_EQ(mmc_udp_open(&options, &team->buffer_bytes,
					   &team->endpoints[rank]),
			      0))
			exit(1);
		team->endpoints[rank]->driver->address(
			team->endpoints[rank],
			team->addresses + rank * MMC_UDP_ADDRESS_BYTES);
	}
}

static void send_numbered(struct mmc_endpoint *endpoint, uint8_t number,
			  bool control)
{
	uint8_t head[MMC_HEADER_BYTES];
	const struct mmc_parcel parcel = {
		.head = head,
		.head_bytes = sizeof(head),
		.peer = MMC_PEER_ALL,
		.control = control,
	};

	memset(head, number, sizeof(head));
	CHECK_EQ(endpoint->driver->send(endpoint, &parcel, 1), 0);
}

/* What goes to all arrives at the other rank, control and data in their order. */
static void what_goes_to_all_goes_to_the_other(void)
{
	struct team team;

	pair_open(&team);
	team_connect(&team);
	for (uint32_t sender = 0; sender < 2; sender++) {
		struct mmc_endpoint *other = team.endpoints[1 - sender];

		for (uint8_t i = 1; i <= 8; i++)
			send_numbered(team.endpoints[sender], i, i % 3 == 0);
		for (uint8_t i = 1; i <= 8; i++) {
			struct mmc_event event = receive_one(other);

			CHECK_EQ(event.source, sender);
			CHECK_EQ(event.bytes[0], i);
		}
		CHECK(is_quiet(other));
		CHECK(is_quiet(team.endpoints[sender]));
	}
	team_close(&team);
}

/* A pair holds no port of groups, so that another process may have all of them. */
static void no_port_of_groups_is_bound(void)
{
	struct team team;
	struct mmc_udp_options options;
	struct sockaddr_in address = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	pair_open(&team);
	team_connect(&team);
	options = team_options(0, 1);
	address.sin_port = htons((uint16_t)options.port);
	/* Without SO_REUSEPORT this needs the port alone. */
	CHECK_EQ(bind(fd, (const struct sockaddr *)&address, sizeof(address)),
		 0);
	close(fd);
	team_close(&team);
}

/* The receive buffer is one, and not an equal part for each source. */
static void the_buffer_is_larger(void)
{
	struct team team, pair;

	team_open_ranks(&team, 2, 1);
	pair_open(&pair);
	CHECK(team.endpoints[0]->has_buffer_per_source);
	CHECK(!pair.endpoints[0]->has_buffer_per_source);
	CHECK(pair.buffer_bytes >= team.buffer_bytes);
	team_close(&pair);
	team_close(&team);
}

static void a_pair_has_two_ranks(void)
{
	struct mmc_udp_options options = team_options(0, 1);
	struct mmc_endpoint *endpoint = NULL;
	uint32_t buffer_bytes = 0;

	options.pair = true;
	CHECK_EQ(mmc_udp_open(&options, &buffer_bytes, &endpoint), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "a pair has two ranks, not 3") != NULL);
}

CHECK_MAIN(CHECK_TEST(what_goes_to_all_goes_to_the_other),
	   CHECK_TEST(no_port_of_groups_is_bound),
	   CHECK_TEST(the_buffer_is_larger), CHECK_TEST(a_pair_has_two_ranks))
