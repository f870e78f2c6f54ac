/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations are counted; grants let the right neighbour read, until they end. */
#include "engine/registration.h"

#include "hub.h"

static const struct hub_options readable = {
	.nranks = 2,
	.nplayed = 1,
	.read_bytes_max = 4096,
};

/* A registration is counted, and ended by deregistering. */
static void registered_and_ended(void)
{
	struct mmc_counters counters = { 0 };
	struct mmc_region region;
	uint8_t memory[100];

	hub_open(&readable);
	CHECK(mmc_team_can_grant(hub[0].team));
	CHECK_EQ(mmc_team_register(hub[0].team, memory, 100, &counters,
				   &region),
		 0);
	CHECK_EQ(hub[0].nregions, 1);
	CHECK_EQ(hub[0].regions[0].nbytes, 100);
	CHECK_EQ(counters.value[MMC_COUNT_REGISTRATIONS], 1);
	mmc_team_deregister(hub[0].team, &region);
	CHECK(!hub[0].regions[0].live);
	hub_close();
}

static void failures_are_not_counted(void)
{
	struct mmc_counters counters = { 0 };
	struct mmc_region region;
	uint8_t memory[100];

	hub_open(&readable);
	hub[0].register_rv = -MMC_ENOMEM;
	CHECK_EQ(mmc_team_register(hub[0].team, memory, 100, &counters,
				   &region),
		 -MMC_ENOMEM);
	CHECK_EQ(counters.value[MMC_COUNT_REGISTRATIONS], 0);
	hub_close();

	/* An endpoint that cannot read memory is not even asked. */
	hub_open(&(struct hub_options){ .nranks = 2, .nplayed = 1 });
	CHECK(!mmc_team_can_grant(hub[0].team));
	CHECK_EQ(mmc_team_register(hub[0].team, memory, 100, &counters,
				   &region),
		 -MMC_ENODEV);
	CHECK_EQ(hub[0].nregions, 0);
	hub_close();
}

/* The right neighbour may read what is granted, and nobody else; then nobody may. */
static void granted_and_revoked(void)
{
	struct mmc_stretch stretch = { .nbytes = 40 };
	struct mmc_grant grant;
	uint8_t memory[100];

	hub_open(&(struct hub_options){
		.nranks = 3,
		.nplayed = 2,
		.read_bytes_max = 4096,
	});
	CHECK_EQ(mmc_team_grant(hub[0].team, NULL, memory + 10, 50, &grant), 0);
	stretch.address = grant.address + 10;
	stretch.key = grant.key;
	CHECK(hub_may_read(1, 0, &stretch));
	CHECK(!hub_may_read(2, 0, &stretch));
	stretch.nbytes = 41;
	CHECK(!hub_may_read(1, 0, &stretch));
	stretch.nbytes = 40;
	mmc_team_revoke(hub[0].team, &grant);
	CHECK(!hub_may_read(1, 0, &stretch));
	hub[0].grants_max = 1;
	CHECK_EQ(mmc_team_grant(hub[0].team, NULL, memory, 100, &grant),
		 -MMC_EAGAIN);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(registered_and_ended),
	   CHECK_TEST(failures_are_not_counted),
	   CHECK_TEST(granted_and_revoked))
