/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "drivers/remote/remote.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "engine/options.h"
#include "engine/survey.h"
#include "engine/threads/callers.h"
#include "engine/threads/responder.h"
#include "support/assert.h"

static void free_team(struct mmc_team *team)
{
	if (team == NULL)
		return;
	mmc_survey_free(team->survey);
	free(team->posted);
	free(team->heard);
	free(team->heard_full);
	free(team->streams);
	free(team->by_channel);
	free(team);
}

static struct mmc_team *new_team(uint32_t nranks)
{
	struct mmc_team *team = calloc(1, sizeof(*team));

	if (team == NULL)
		return NULL;
	team->heard = calloc(nranks, sizeof(*team->heard));
	team->heard_full = calloc(nranks, sizeof(*team->heard_full));
	if (team->heard != NULL && team->heard_full != NULL)
		return team;
	free_team(team);
	return NULL;
}

/*
 * Returns the window to begin with, or 0 for no limit. As a rule, an RDMA network holds
 * packets back rather than drop them, so only the receive buffers limit it. On other
 * networks the queues of switches do, which are unknown. Loopback has no such queues;
 * an interface without an address is the simulator's, which sets its own window.
 */
static uint32_t first_window_bytes(const struct mmc_team_options *options,
				   uint32_t buffer_bytes)
{
	if (options->transport == MMC_TRANSPORT_VERBS)
		return buffer_bytes;
	if (options->interface.address == 0 || options->interface.loopback)
		return 0;
	return MMC_WINDOW_BYTES;
}

int mmc_team_create_on(struct mmc_engine *engine, struct mmc_endpoint *endpoint,
		       const struct mmc_team_options *options,
		       uint32_t buffer_bytes, struct mmc_team **team)
{
	struct mmc_team *new = NULL;
	int rv = mmc_options_check(options);

	if (rv == 0) {
		new = new_team(options->nranks);
		rv = new == NULL ? -MMC_ENOMEM : mmc_engine_enter(engine);
	}
	if (rv != 0) {
		free_team(new);
		endpoint->driver->close(endpoint);
		return rv;
	}
	new->engine = engine;
	new->endpoint = endpoint;
	new->options = *options;
	new->buffer_bytes = buffer_bytes;
	new->generation = options->channel;
	mmc_path_init(&new->path);
	mmc_path_set_window(&new->path,
			    first_window_bytes(options, buffer_bytes));
	if (options->crowded != 0)
		mmc_path_crowd(&new->path);
	new->next = engine->teams;
	engine->teams = new;
	mmc_engine_leave(engine);
	*team = new;
	return 0;
}

uint32_t mmc_team_address_bytes(const struct mmc_team *team)
{
	return team->endpoint->address_bytes;
}

void mmc_team_address(struct mmc_team *team, uint8_t *address)
{
	team->endpoint->driver->address(team->endpoint, address);
}

int mmc_team_connect(struct mmc_team *team, const uint8_t *addresses)
{
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	rv = team->endpoint->driver->connect(team->endpoint, addresses);
	if (rv == 0) {
		team->connected = true;
		rv = mmc_responder_watch(team->engine, team);
	}
	mmc_engine_leave(team->engine);
	return rv;
}

void mmc_team_runner(const struct mmc_team *team, struct mmc_runner *runner)
{
	*runner = (struct mmc_runner){ .kind = MMC_RUNNER_HOST };
	if (mmc_team_is_remote(team))
		*runner = mmc_remote_link(team->endpoint)->runner;
}

void mmc_team_close(struct mmc_team *team)
{
	struct mmc_engine *engine = team->engine;
	struct mmc_team **at = &engine->teams;

	if (mmc_engine_enter(engine) != 0)
		return;
	while (*at != team)
		at = &(*at)->next;
	*at = team->next;
	if (team->connected)
		mmc_responder_forget(engine, team);
	mmc_team_forget_memories(team);
	mmc_engine_leave(engine);
	for (uint32_t i = 0; i < team->nstreams; i++)
		MMC_ASSERT(team->streams[i] == NULL);
	team->endpoint->driver->close(team->endpoint);
	mmc_fetches_close(&team->fetches);
	free_team(team);
}
