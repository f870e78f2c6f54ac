/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/remote/calls.h"
#include "engine/threads/callers.h"

uint32_t mmc_counter_count(void)
{
	return MMC_COUNTER_COUNT;
}

const char *mmc_counter_name(uint32_t index)
{
	static const char *const names[] = {
#define MMC_COUNTER_NAME(counter, name) name,
		MMC_COUNTER_TABLE(MMC_COUNTER_NAME)
#undef MMC_COUNTER_NAME
	};

	_Static_assert(sizeof(names) / sizeof(*names) == MMC_COUNTER_COUNT,
		       "each counter has a name");
	return index < MMC_COUNTER_COUNT ? names[index] : "";
}

void mmc_stream_counters(struct mmc_stream *stream, uint64_t *values)
{
	memcpy(values, stream->counters.value, sizeof(stream->counters.value));
	if (!mmc_team_is_remote(stream->team) ||
	    mmc_engine_enter(stream->team->engine) != 0)
		return;
	mmc_remote_stream_counters(stream, values);
	mmc_engine_leave(stream->team->engine);
}

void mmc_team_counters(struct mmc_team *team, uint64_t *values)
{
	memcpy(values, team->counters.value, sizeof(team->counters.value));
	values[MMC_COUNT_EVACUATED_CHUNKS] = team->endpoint->evacuated;
	values[MMC_COUNT_RECONNECTS] = team->endpoint->reconnects;
	values[MMC_COUNT_REJOINS] = team->endpoint->rejoins;
	values[MMC_COUNT_TX_CALLS] = team->endpoint->tx_calls;
	values[MMC_COUNT_RX_CALLS] = team->endpoint->rx_calls;
	if (!mmc_team_is_remote(team) || mmc_engine_enter(team->engine) != 0)
		return;
	mmc_remote_team_counters(team, values);
	mmc_engine_leave(team->engine);
}

uint32_t mmc_team_strangers(struct mmc_team *team,
			    struct mmc_stranger *strangers)
{
	uint32_t count;

	if (mmc_engine_enter(team->engine) != 0)
		return 0;
	if (mmc_team_is_remote(team)) {
		count = mmc_remote_strangers(team, strangers);
	} else {
		count = team->strangers.count;
		memcpy(strangers, team->strangers.items,
		       count * sizeof(*strangers));
	}
	mmc_engine_leave(team->engine);
	return count;
}
