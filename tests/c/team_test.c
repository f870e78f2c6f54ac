/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a team: its options, its first window, and whose endpoint it owns. */
#include "core/flow/path.h"
#include "hub.h"

#define BUFFER_BYTES 70000

static const struct mmc_team_options usual = {
	.rank = 1,
	.nranks = 4,
	.subgroups = 1,
	.chunk_bytes = HUB_CHUNK_BYTES,
	.channel = HUB_TEAM_CHANNEL,
};

/* Makes rank 1 anew, with an endpoint but no team. */
static struct hub_rank *bare_rank(void)
{
	struct hub_rank *rank = &hub[1];

	*rank = (struct hub_rank){
		.number = 1,
		.endpoint = { .driver = &hub_driver, .address_bytes = 1 },
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	pthread_mutex_init(&rank->mutex, NULL);
	hub_options = (struct hub_options){ .nranks = 4, .nplayed = 4 };
	CHECK_EQ(mmc_engine_create_stepped(&rank->engine), 0);
	return rank;
}

static void end(struct hub_rank *rank)
{
	CHECK(rank->closed);
	mmc_engine_destroy(rank->engine);
	pthread_mutex_destroy(&rank->mutex);
}

/* A refused team closes the endpoint that it was to own, and leaves no trace. */
static void wrong_options_are_refused(void)
{
	struct hub_rank *rank = bare_rank();
	struct mmc_team_options options = usual;

	options.subgroups = 0;
	CHECK_EQ(mmc_team_create_on(rank->engine, &rank->endpoint, &options,
				    BUFFER_BYTES, &rank->team),
		 -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "0 subgroups") != NULL);
	CHECK(rank->engine->teams == NULL);
	end(rank);
}

/* Returns the window that a team begins with. */
static uint32_t first_window(const struct mmc_team_options *options)
{
	struct hub_rank *rank = bare_rank();
	uint32_t window_bytes;

	CHECK_EQ(mmc_team_create_on(rank->engine, &rank->endpoint, options,
				    BUFFER_BYTES, &rank->team),
		 0);
	window_bytes = mmc_path_window_bytes(&rank->team->path);
	CHECK(rank->engine->teams == rank->team);
	CHECK(!rank->closed);
	mmc_team_close(rank->team);
	CHECK(rank->engine->teams == NULL);
	end(rank);
	return window_bytes;
}

/* Buffers limit RDMA, unknown switches limit UDP, and loopback has no limit. */
static void the_window_to_begin_with(void)
{
	struct mmc_team_options options = usual;

	CHECK_EQ(first_window(&options), 0);
	options.interface.address = 0x0a000001;
	CHECK_EQ(first_window(&options), MMC_WINDOW_BYTES);
	options.interface.loopback = 1;
	CHECK_EQ(first_window(&options), 0);
	options.transport = MMC_TRANSPORT_VERBS;
	CHECK_EQ(first_window(&options), BUFFER_BYTES);
}

/* An address is the driver's; whoever connects has the responder watch the team. */
static void addresses_and_connection(void)
{
	static const uint8_t addresses[] = { 0, 1, 2, 3 };
	struct hub_rank *rank = bare_rank();
	uint8_t address = 0;

	CHECK_EQ(mmc_team_create_on(rank->engine, &rank->endpoint, &usual,
				    BUFFER_BYTES, &rank->team),
		 0);
	CHECK(!mmc_team_is_attended(rank->team));
	CHECK_EQ(mmc_team_address_bytes(rank->team), 1);
	mmc_team_address(rank->team, &address);
	CHECK_EQ(address, 1);
	CHECK_EQ(mmc_team_connect(rank->team, addresses), 0);
	CHECK(mmc_team_is_attended(rank->team));
	mmc_team_close(rank->team);
	end(rank);
}

/* Teams of one engine close in any order, each with its own endpoint alone. */
static void several_teams(void)
{
	struct hub_rank *rank = bare_rank();
	struct mmc_endpoint *endpoints[3];
	struct hub_rank *spare[3] = { &hub[1], &hub[2], &hub[3] };
	struct mmc_team *teams[3];

	for (int i = 0; i < 3; i++) {
		spare[i]->endpoint = rank->endpoint;
		spare[i]->closed = false;
		if (i > 0)
			spare[i]->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		endpoints[i] = &spare[i]->endpoint;
		CHECK_EQ(mmc_team_create_on(rank->engine, endpoints[i], &usual,
					    BUFFER_BYTES, &teams[i]),
			 0);
	}
	for (int i = 1; i < 4; i++) {
		mmc_team_close(teams[i % 3]);
		CHECK(spare[i % 3]->closed);
		for (int later = i + 1; later < 4; later++)
			CHECK(!spare[later % 3]->closed);
	}
	CHECK(rank->engine->teams == NULL);
	end(rank);
}

CHECK_MAIN(CHECK_TEST(wrong_options_are_refused),
	   CHECK_TEST(the_window_to_begin_with),
	   CHECK_TEST(addresses_and_connection), CHECK_TEST(several_teams))
