/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/probe.h"

#include <stdlib.h>

#include "engine/remote/calls.h"
#include "engine/threads/callers.h"

/* How often each probe is sent: even a healthy network may lose one. */
#define COPIES 3

/* The payload of a short probe, which every path carries. */
#define SHORT_BYTES 64

/* Returns what the team's `heard` of a rank is when it has been heard everywhere. */
static uint64_t all_subgroups(const struct mmc_team *team)
{
	uint32_t nsubgroups = team->options.subgroups;

	return nsubgroups >= MMC_HEARD_SUBGROUPS_MAX
		       ? ~UINT64_C(0)
		       : (UINT64_C(1) << nsubgroups) - 1;
}

static int send_probe(struct mmc_team *team, uint32_t subgroup,
		      const uint8_t *padding, uint32_t padding_bytes)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	uint8_t head[MMC_HEADER_BYTES + MMC_CRC_BYTES];
	const struct mmc_parcel parcel = {
		.head = head,
		.head_bytes = mmc_team_write_head(team, head, subgroup, 0,
						  padding, padding_bytes),
		.body = padding,
		.body_bytes = padding_bytes,
		.peer = MMC_PEER_ALL,
		.subgroup = subgroup,
	};

	return endpoint->driver->send(endpoint, &parcel, 1);
}

/* Sends one short and one full-size probe to each subgroup. */
static int send_probes(struct mmc_team *team, const uint8_t *padding)
{
	uint32_t short_bytes =
		mmc_min_u32(SHORT_BYTES, team->options.chunk_bytes);
	int rv = 0;

	for (uint32_t s = 0; rv == 0 && s < team->options.subgroups; s++) {
		rv = send_probe(team, s, padding, short_bytes);
		if (rv == 0)
			rv = send_probe(team, s, padding,
					team->options.chunk_bytes);
	}
	return rv;
}

/*
 * Sends each copy of the probes at its time, and listens in between by waiting for
 * `listening`, which never completes.
 */
static int send_copies(struct mmc_team *team, struct mmc_request *listening)
{
	uint8_t *padding = calloc(1, team->options.chunk_bytes);
	uint64_t now_ns = mmc_team_now_ns(team);
	uint64_t begin_ns = now_ns;
	int rv = padding == NULL ? -MMC_ENOMEM : 0;

	for (uint32_t i = 0; rv == 0 && i < COPIES; i++) {
		uint64_t at_ns =
			begin_ns + mmc_probe_offset_ns(team->options.rank,
						       team->options.nranks, i);

		for (; now_ns < at_ns; now_ns = mmc_team_now_ns(team))
			mmc_engine_wait_for(
				team->engine,
				&(struct mmc_goal){ .request = listening },
				at_ns - now_ns);
		rv = send_probes(team, padding);
	}
	free(padding);
	return rv;
}

/* Returns which ranks have not been heard yet. */
static struct mmc_probe unheard_ranks(const struct mmc_team *team)
{
	struct mmc_probe probe = { .rank = UINT32_MAX };
	uint64_t all = all_subgroups(team);

	for (uint32_t r = 0; r < team->options.nranks; r++) {
		if (r == team->options.rank)
			continue;
		probe.unheard += team->heard[r] != all;
		if (team->heard_full[r] == all)
			continue;
		if (probe.unheard_full++ == 0)
			probe.rank = r;
	}
	return probe;
}

int mmc_team_probe(struct mmc_team *team, uint64_t slice_ns,
		   struct mmc_probe *probe)
{
	/* To listen is to wait for an operation that never completes. */
	struct mmc_request listening = { 0 };
	const struct mmc_goal goal = { .request = &listening };
	uint64_t step_ns = mmc_min_u64(slice_ns, MMC_MS_NS);
	uint64_t spent_ns = 0;
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	if (mmc_team_is_remote(team)) {
		rv = mmc_remote_probe(team, slice_ns, probe);
		mmc_engine_leave(team->engine);
		return rv;
	}
	rv = send_copies(team, &listening);
	while (rv == 0 && unheard_ranks(team).unheard_full > 0 &&
	       spent_ns < slice_ns) {
		mmc_engine_wait_for(team->engine, &goal, step_ns);
		spent_ns += step_ns;
	}
	if (rv == 0)
		*probe = unheard_ranks(team);
	mmc_engine_leave(team->engine);
	return rv;
}
