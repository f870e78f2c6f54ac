/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of the UDP driver stay joined for a while after their endpoints close. */
#include "check.h"

#include <netinet/in.h>

#include "drivers/udp/linger.h"
#include "membership.h"
#include "udp_team.h"

static uint64_t now_of(const struct team *team)
{
	return team->endpoints[0]->driver->now_ns(team->endpoints[0]);
}

static void groups_outlive_endpoints(void)
{
	uint32_t group = team_options(0, 1).group;
	uint64_t before_ns;
	struct team team;

	team_open(&team, 2);
	CHECK(!is_joined(group));
	team_connect(&team);
	CHECK(is_joined(group));
	CHECK(is_joined(group + 1));
	before_ns = now_of(&team);
	team_close(&team);
	mmc_udp_linger_sweep(before_ns + MMC_UDP_LINGER_NS - 1);
	CHECK(is_joined(group));
	CHECK(is_joined(group + 1));
	CHECK_EQ(mmc_udp_linger_sweep(MMC_NEVER_NS), MMC_NEVER_NS);
	CHECK(!is_joined(group));
	CHECK(!is_joined(group + 1));
}

/* An endpoint that never joined a group leaves no membership behind. */
static void only_joined_groups_linger(void)
{
	struct team team;

	team_open(&team, 1);
	team_close(&team);
	CHECK(!is_joined(team_options(0, 1).group));
}

/* A group that is left again stays joined for the full time again. */
static void closing_again_begins_anew(void)
{
	uint32_t group = team_options(0, 1).group;

	mmc_udp_linger(INADDR_LOOPBACK, group, 0);
	mmc_udp_linger(INADDR_LOOPBACK, group, 1);
	mmc_udp_linger(INADDR_LOOPBACK, group + 1, 2);
	CHECK_EQ(mmc_udp_linger_sweep(MMC_UDP_LINGER_NS),
		 MMC_UDP_LINGER_NS + 1);
	CHECK(is_joined(group));
	CHECK_EQ(mmc_udp_linger_sweep(MMC_UDP_LINGER_NS + 1),
		 MMC_UDP_LINGER_NS + 2);
	CHECK(!is_joined(group));
	CHECK_EQ(mmc_udp_linger_sweep(MMC_UDP_LINGER_NS + 2), MMC_NEVER_NS);
}

/* When too many groups linger, the one that has done so longest is left. */
static void the_oldest_gives_way(void)
{
	uint32_t group = team_options(0, 1).group;

	for (uint32_t i = 0; i <= MMC_UDP_LINGERING_MAX; i++)
		mmc_udp_linger(INADDR_LOOPBACK, group + i, i);
	CHECK(!is_joined(group));
	for (uint32_t i = 1; i <= MMC_UDP_LINGERING_MAX; i++)
		CHECK(is_joined(group + i));
	mmc_udp_linger_sweep(UINT64_MAX);
}

/* An interface that is gone causes no failure, and takes no place. */
static void nothing_lingers_nowhere(void)
{
	uint32_t group = team_options(0, 1).group;

	mmc_udp_linger(0xc0000201, group, 0);
	CHECK(!is_joined(group));
}

CHECK_MAIN(CHECK_TEST(groups_outlive_endpoints),
	   CHECK_TEST(only_joined_groups_linger),
	   CHECK_TEST(closing_again_begins_anew),
	   CHECK_TEST(the_oldest_gives_way),
	   CHECK_TEST(nothing_lingers_nowhere))
