/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/breakdown.h"

#include <stdio.h>

#include "engine/remote/requests.h"
#include "support/error.h"

void mmc_team_break_down(struct mmc_team *team, const struct mmc_event *event)
{
	struct mmc_poison poison = {
		.error = event->error < 0 && event->error >= -MMC_ERROR_MAX
				 ? (enum mmc_error) - event->error
				 : MMC_EIO,
		.culprit = event->source == MMC_PEER_NONE ? team->options.rank
							  : event->source,
	};

	if (team->poison.error != MMC_OK)
		return;
	team->poison = poison;
	snprintf(team->reason, sizeof(team->reason), "%s", mmc_last_error());
	if (mmc_team_is_remote(team)) {
		mmc_remote_fail_all(team);
		return;
	}
	for (uint32_t i = 0; i < team->nstreams; i++) {
		struct mmc_stream *stream = team->streams[i];

		if (stream == NULL)
			continue;
		poison.epoch = mmc_epochs_last(&stream->epochs);
		mmc_epochs_poison(&stream->epochs, poison, true);
		stream->needs_poll = true;
	}
}

void mmc_team_set_last_error(const struct mmc_team *team)
{
	mmc_error_set("%s", team->reason);
}
