/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/refusal.h"

#include "support/bits.h"

static void guard(struct mmc_team *team)
{
	const struct mmc_driver *driver = team->endpoint->driver;
	uint64_t channels[MMC_GUARD_CHANNELS_MAX];
	uint32_t n = 0;

	/* Where there are more, the driver goes by the other marks of a stranger. */
	if (team->nopen < MMC_GUARD_CHANNELS_MAX) {
		channels[n++] = team->options.channel & MMC_CHANNEL_MASK;
		for (uint32_t i = 0; i < team->nopen; i++)
			channels[n++] = mmc_epochs_channel(
				&team->by_channel[i]->epochs);
	}
	driver->guard(team->endpoint, channels, n);
}

void mmc_team_guard(struct mmc_team *team)
{
	if (team->flood.guarded)
		guard(team);
}

/* Asks the driver to guard the endpoint if a flood has begun. */
static void watch_flood(struct mmc_team *team, uint64_t now_ns)
{
	struct mmc_flood *flood = &team->flood;

	if (flood->guarded || team->endpoint->driver->guard == NULL)
		return;
	if (flood->ndatagrams == 0 || now_ns - flood->begin_ns > MMC_FLOOD_NS) {
		flood->begin_ns = now_ns;
		flood->ndatagrams = 0;
	}
	if (++flood->ndatagrams < MMC_FLOOD_DATAGRAMS)
		return;
	flood->guarded = true;
	guard(team);
}

/*
 * Returns for how many datagrams the one of `event` stands. The driver cuts a sample of
 * others to their header, and no rank sends a header alone.
 */
static uint64_t nrepresented(const struct mmc_team *team,
			     const struct mmc_event *event)
{
	return team->flood.guarded && event->nbytes <= MMC_HEADER_BYTES
		       ? MMC_SAMPLED
		       : 1;
}

void mmc_team_note_refusal(struct mmc_team *team, const struct mmc_event *event,
			   enum mmc_refusal cause, uint64_t now_ns)
{
	uint64_t ndatagrams = nrepresented(team, event);

	team->nrefused++;
	mmc_count(&team->counters, MMC_COUNT_RX_FILTERED_DATAGRAMS,
		  ndatagrams - 1);
	mmc_strangers_note(&team->strangers, event, cause, ndatagrams, now_ns);
	watch_flood(team, now_ns);
}

void mmc_team_refuse(struct mmc_team *team, const struct mmc_event *event,
		     enum mmc_refusal cause, uint64_t now_ns)
{
	static const enum mmc_counter counters[MMC_REFUSAL_COUNT] = {
		[MMC_REFUSED_FOREIGN] = MMC_COUNT_RX_FOREIGN_DATAGRAMS,
		[MMC_REFUSED_MALFORMED] = MMC_COUNT_RX_MALFORMED_DATAGRAMS,
		[MMC_REFUSED_CORRUPT] = MMC_COUNT_RX_CORRUPT_DATAGRAMS,
		[MMC_REFUSED_FORGED] = MMC_COUNT_RX_FORGED_DATAGRAMS,
		[MMC_REFUSED_REPLAYED] = MMC_COUNT_RX_REPLAYED_DATAGRAMS,
	};

	mmc_count(&team->counters, counters[cause], 1);
	mmc_team_note_refusal(team, event, cause, now_ns);
}
