/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "core/wire/header.h"
#include "drivers/fault/fault.h"
#include "drivers/protect/protect.h"
#include "drivers/udp/udp.h"
#include "drivers/verbs/verbs.h"
#include "engine/callers.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "engine/responder.h"
#include "engine/survey.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/error.h"

static int check_options(const struct mmc_team_options *options)
{
	if (options->nranks == 0 || options->rank >= options->nranks ||
	    options->nranks > UINT32_C(1) << MMC_ROUNDS_MAX) {
		mmc_error_set("rank %u of %u ranks is out of range",
			      options->rank, options->nranks);
		return -MMC_EINVAL;
	}
	if (options->chunk_bytes == 0 || options->subgroups == 0 ||
	    options->checksum > MMC_CHECKSUM_FULL ||
	    options->protect > MMC_PROTECT_ENCRYPT) {
		mmc_error_set("invalid options: %u bytes per chunk, %u "
			      "subgroups, checksum mode %u, protection %u",
			      options->chunk_bytes, options->subgroups,
			      options->checksum, options->protect);
		return -MMC_EINVAL;
	}
	return 0;
}

static void free_team(struct mmc_team *team)
{
	if (team == NULL)
		return;
	mmc_survey_free(team->survey);
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
	int rv = check_options(options);

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

static bool is_protected(const struct mmc_team_options *options)
{
	return options->protect != MMC_PROTECT_OFF;
}

/* Returns by how much protection makes each datagram longer. */
static uint32_t seal_bytes_of(const struct mmc_team_options *options)
{
	return is_protected(options) ? MMC_SEAL_BYTES : 0;
}

static int open_udp(const struct mmc_team_options *options,
		    uint32_t *buffer_bytes, struct mmc_endpoint **endpoint)
{
	const struct mmc_udp_options udp = {
		.rank = options->rank,
		.nranks = options->nranks,
		.interface = options->interface,
		.group = options->group,
		.port = options->port,
		.ports = options->ports,
		.nsubgroups = options->subgroups,
		.ttl = options->ttl,
		.chunk_bytes = options->chunk_bytes,
		.checksum = options->checksum,
		.workers = options->workers != 0,
		.seal_bytes = seal_bytes_of(options),
	};

	return mmc_udp_open(&udp, buffer_bytes, endpoint);
}

/*
 * Opens the driver's endpoint that `options` describe. If they ask for protection, its
 * chunks are longer than the team's by a seal.
 */
static int open_driver(const struct mmc_team_options *options,
		       uint32_t *buffer_bytes, struct mmc_endpoint **endpoint)
{
	struct mmc_team_options longer = *options;
	int rv;

	longer.chunk_bytes += seal_bytes_of(options);
	if (options->transport == MMC_TRANSPORT_VERBS)
		rv = mmc_verbs_open(&longer, buffer_bytes, endpoint);
	else
		rv = open_udp(&longer, buffer_bytes, endpoint);
	if (rv == 0)
		*buffer_bytes = *buffer_bytes / longer.chunk_bytes *
				options->chunk_bytes;
	return rv;
}

/* Protects the datagrams of `inner` as `options` ask. Closes it after a failure. */
static int protect_endpoint(const struct mmc_team_options *options,
			    struct mmc_endpoint *inner,
			    struct mmc_endpoint **endpoint)
{
	const struct mmc_protect_options protect = {
		.primitive = mmc_primitive_find(options->primitive),
		.mode = options->protect,
		.team = options->channel,
		.rank = options->rank,
		.nranks = options->nranks,
		.body_bytes =
			mmc_max_u32(options->chunk_bytes,
				    MMC_MESSAGE_BYTES_MAX - MMC_HEADER_BYTES),
	};

	if (protect.primitive != NULL)
		return mmc_protect_wrap(&protect, inner, endpoint);
	inner->driver->close(inner);
	mmc_error_set("PROTECT needs primitive %u, which is not open",
		      options->primitive);
	return -MMC_ENODEV;
}

/*
 * Opens the endpoint that `options` describe: the driver's, around it the faults that they
 * ask for, and around those protection, which notices them.
 */
static int open_endpoint(const struct mmc_team_options *options,
			 uint32_t *buffer_bytes, struct mmc_endpoint **endpoint)
{
	struct mmc_endpoint *inner;
	int rv = open_driver(options, buffer_bytes, &inner);

	if (rv == 0)
		rv = mmc_fault_wrap(options->fault, options->rank, inner,
				    options->checksum, is_protected(options),
				    &inner);
	if (rv == 0 && is_protected(options))
		rv = protect_endpoint(options, inner, &inner);
	if (rv == 0)
		*endpoint = inner;
	return rv;
}

int mmc_team_create(struct mmc_engine *engine,
		    const struct mmc_team_options *options,
		    struct mmc_team **team)
{
	struct mmc_team_options own = *options;
	struct mmc_endpoint *endpoint;
	uint32_t buffer_bytes;
	int rv = check_options(options);

	if (is_protected(options)) {
		own.zero_copy = false;
		if (own.checksum == MMC_CHECKSUM_FULL)
			own.checksum = MMC_CHECKSUM_HEADER;
	}
	if (rv == 0)
		rv = open_endpoint(&own, &buffer_bytes, &endpoint);
	if (rv != 0)
		return rv;
	return mmc_team_create_on(engine, endpoint, &own, buffer_bytes, team);
}

int mmc_team_protect(struct mmc_team *team, struct mmc_secret *secret)
{
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	if (is_protected(&team->options)) {
		rv = mmc_protect_start(team->endpoint, secret);
	} else {
		mmc_error_set("a team with PROTECT=off takes no secret");
		rv = -MMC_EINVAL;
	}
	mmc_engine_leave(team->engine);
	return rv;
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
		mmc_responder_watch(team->engine, team);
	}
	mmc_engine_leave(team->engine);
	return rv;
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
