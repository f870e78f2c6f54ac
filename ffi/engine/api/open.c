/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens teams over UDP or verbs, or at a proxy, and protects them. */
#include "engine/open.h"

#include <stdlib.h>

#include "drivers/fault/fault.h"
#include "drivers/protect/protect.h"
#include "drivers/remote/remote.h"
#include "drivers/udp/udp.h"
#include "drivers/verbs/verbs.h"
#include "engine/engine.h"
#include "engine/options.h"
#include "engine/remote/calls.h"
#include "engine/remote/requests.h"
#include "engine/threads/callers.h"
#include "support/bits.h"
#include "support/error.h"

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
		.workers = options->workers != 0 && options->pair == 0,
		.pair = options->pair != 0,
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

int mmc_endpoint_open(const struct mmc_team_options *options,
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

/* Opens a team whose operations the proxy that `options` name carries out. */
static int create_remote(struct mmc_engine *engine,
			 const struct mmc_team_options *options,
			 struct mmc_team **team)
{
	struct mmc_posted *posted = calloc(1, sizeof(*posted));
	struct mmc_endpoint *endpoint;
	int rv;

	if (posted == NULL)
		return -MMC_ENOMEM;
	rv = mmc_remote_open(options, &endpoint);
	if (rv == 0)
		rv = mmc_team_create_on(engine, endpoint, options, 0, team);
	if (rv == 0)
		(*team)->posted = posted;
	else
		free(posted);
	return rv;
}

int mmc_team_create(struct mmc_engine *engine,
		    const struct mmc_team_options *options,
		    struct mmc_team **team)
{
	struct mmc_team_options own = *options;
	struct mmc_endpoint *endpoint;
	uint32_t buffer_bytes;
	int rv = mmc_options_check(options);

	if (is_protected(options)) {
		own.zero_copy = false;
		if (own.checksum == MMC_CHECKSUM_FULL)
			own.checksum = MMC_CHECKSUM_HEADER;
	}
	if (rv == 0 && options->proxy[0] != 0)
		return create_remote(engine, options, team);
	if (rv == 0)
		rv = mmc_endpoint_open(&own, &buffer_bytes, &endpoint);
	if (rv != 0)
		return rv;
	return mmc_team_create_on(engine, endpoint, &own, buffer_bytes, team);
}

int mmc_team_protect(struct mmc_team *team, struct mmc_secret *secret)
{
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	if (mmc_team_is_remote(team)) {
		rv = mmc_remote_protect(team, secret);
	} else if (is_protected(&team->options)) {
		rv = mmc_protect_start(team->endpoint, secret);
	} else {
		mmc_error_set("a team with PROTECT=off takes no secret");
		rv = -MMC_EINVAL;
	}
	mmc_engine_leave(team->engine);
	return rv;
}
