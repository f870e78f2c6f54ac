/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations are counted. After a failure they end with the team. */
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
	CHECK(mmc_team_can_register(hub[0].team));
	CHECK_EQ(mmc_team_register(hub[0].team, memory, 100, &counters,
				   &region),
		 0);
	CHECK_EQ(region.address, (uintptr_t)memory);
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
	CHECK(!mmc_team_can_register(hub[0].team));
	CHECK_EQ(mmc_team_register(hub[0].team, memory, 100, &counters,
				   &region),
		 -MMC_ENODEV);
	CHECK_EQ(hub[0].nregions, 0);
	hub_close();
}

/* Memory that a failed rank may still read stays until the team closes. */
static void deferred_until_the_team_closes(void)
{
	struct mmc_counters counters = { 0 };

	hub_open(&readable);
	for (int i = 0; i < 3; i++) {
		void *memory = malloc(100);
		struct mmc_region region;

		CHECK_EQ(mmc_team_register(hub[0].team, memory, 100, &counters,
					   &region),
			 0);
		mmc_team_deregister_later(hub[0].team, &region, memory);
		CHECK(hub[0].regions[i].live);
	}
	hub_close();
	for (int i = 0; i < 3; i++)
		CHECK(!hub[0].regions[i].live);
	/* The leak sanitizer must not find the memory's address here. */
	memset(hub, 0, sizeof(hub));
}

CHECK_MAIN(CHECK_TEST(registered_and_ended),
	   CHECK_TEST(failures_are_not_counted),
	   CHECK_TEST(deferred_until_the_team_closes))
