/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the network delivers what is multicast, before it is relied on. */
#ifndef MMC_ENGINE_PROBE_H
#define MMC_ENGINE_PROBE_H

#include "engine/state.h"

/* A datagram of the team's own channel has come, with this header. */
void mmc_team_probed(struct mmc_team *team, const struct mmc_event *event,
		     const struct mmc_header *header);

#endif
