/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the network delivers what is multicast, before it is relied on. */
#ifndef MMC_ENGINE_PROBE_H
#define MMC_ENGINE_PROBE_H

#include "engine/state.h"

/* A probe has come, with this header and so much behind it. */
void mmc_team_probed(struct mmc_team *team, uint32_t source,
		     const struct mmc_header *header, uint32_t nbytes);

/*
 * How long after all have begun `rank` sends its probes for the `copy`th time: ranks go
 * in groups of MMC_PROBE_RANKS, one after the other.
 */
uint64_t mmc_probe_offset_ns(uint32_t rank, uint32_t nranks, uint32_t copy);

/*
 * Writes the head of a datagram of the team's own channel to `head`, which has
 * room for header and CRC: `kind` is in place of a control message's. Returns its
 * length.
 */
uint32_t mmc_team_own_head(const struct mmc_team *team, uint8_t *head,
			   uint32_t epoch, uint32_t kind, const uint8_t *body,
			   uint32_t nbytes);

#endif
