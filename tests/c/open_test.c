/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams open an endpoint of this machine's, with the faults and the protection asked for. */
#include "check.h"
#include "engine/engine.h"
#include "engine/state.h"

/* Returns the options of a team of one rank over UDP on loopback. */
static struct mmc_team_options loopback(void)
{
	struct mmc_team_options options = {
		.nranks = 1,
		.group = 0xefc10100 + ((uint32_t)getpid() & 0xffff),
		.port = 20000 + (uint32_t)getpid() % 20000,
		.subgroups = 1,
		.chunk_bytes = 1000,
		.channel = UINT64_C(99) << 32,
	};

	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	return options;
}

/* Opens such a team with a FAULT setting. */
static int open_udp(struct mmc_engine *engine, const char *fault,
		    struct mmc_team **team)
{
	struct mmc_team_options options = loopback();

	snprintf(options.fault, sizeof(options.fault), "%s", fault);
	return mmc_team_create(engine, &options, team);
}

/* The endpoint that a team opens itself is wrapped in the faults that are asked for. */
static void faults_as_asked_for(void)
{
	struct mmc_engine *engine;
	struct mmc_team *team;

	CHECK_EQ(mmc_engine_create_stepped(&engine), 0);
	CHECK_EQ(open_udp(engine, "", &team), 0);
	CHECK(strcmp(team->endpoint->driver->name, "udp") == 0);
	mmc_team_close(team);
	CHECK_EQ(open_udp(engine, "loss=0.1", &team), 0);
	CHECK(strcmp(team->endpoint->driver->name, "udp") != 0);
	mmc_team_close(team);
	CHECK_EQ(open_udp(engine, "loss=2", &team), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "a number from 0 to 1") != NULL);
	mmc_engine_destroy(engine);
}

/* Without a library for its primitive, a protected team is refused, and closes its sockets. */
static void protection_without_a_library_is_refused(void)
{
	struct mmc_team_options options = loopback();
	struct mmc_engine *engine;
	struct mmc_team *team;

	options.protect = MMC_PROTECT_ENCRYPT;
	options.primitive = MMC_PRIMITIVE_AES;
	CHECK_EQ(mmc_engine_create_stepped(&engine), 0);
	CHECK_EQ(mmc_team_create(engine, &options, &team), -MMC_ENODEV);
	CHECK(strstr(mmc_last_error(), "primitive") != NULL);
	CHECK(engine->teams == NULL);
	mmc_engine_destroy(engine);
}

/* A secret that would protect nothing is refused, rather than be taken for protection. */
static void a_secret_without_protection_is_refused(void)
{
	struct mmc_engine *engine;
	struct mmc_team *team;
	struct mmc_secret *secret;

	CHECK_EQ(mmc_engine_create_stepped(&engine), 0);
	CHECK_EQ(mmc_secret_create(&secret), 0);
	CHECK_EQ(open_udp(engine, "", &team), 0);
	CHECK_EQ(mmc_team_protect(team, secret), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "PROTECT=off") != NULL);
	mmc_team_close(team);
	mmc_secret_free(secret);
	mmc_engine_destroy(engine);
}

CHECK_MAIN(CHECK_TEST(faults_as_asked_for),
	   CHECK_TEST(protection_without_a_library_is_refused),
	   CHECK_TEST(a_secret_without_protection_is_refused))
