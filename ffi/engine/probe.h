/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes: they show whether the network delivers multicast, before it is relied on. */
#ifndef MMC_ENGINE_PROBE_H
#define MMC_ENGINE_PROBE_H

#include "engine/state.h"

/* Records a probe with this header and `nbytes` behind it. */
void mmc_team_probed(struct mmc_team *team, uint32_t source,
		     const struct mmc_header *header, uint32_t nbytes);

/*
 * Returns how long after the beginning `rank` sends its probes for the `copy`th time.
 * Groups of MMC_PROBE_RANKS ranks send one after the other.
 */
uint64_t mmc_probe_offset_ns(uint32_t rank, uint32_t nranks, uint32_t copy);

/*
 * Writes the head of a datagram of the team's own channel to `head`, which has room for
 * header and CRC; `kind` takes the place of a control message's kind. Returns the
 * length of the head.
 */
uint32_t mmc_team_own_head(const struct mmc_team *team, uint8_t *head,
			   uint32_t epoch, uint32_t kind, const uint8_t *body,
			   uint32_t nbytes);

#endif
