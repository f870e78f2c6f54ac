/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes: datagrams by which ranks find out, before a team is used, whether multicast
 * arrives. Like surveys, probes use the team's own channel, which is no stream's.
 */
#ifndef MMC_ENGINE_PROBE_H
#define MMC_ENGINE_PROBE_H

#include "engine/state.h"

/*
 * Records that a probe with this header, and `nbytes` of payload, came from `source`.
 * Returns false if it can be none of this team's.
 */
bool mmc_team_on_probe(struct mmc_team *team, uint32_t source,
		       const struct mmc_header *header, uint32_t nbytes);

/*
 * Returns how long after the beginning `rank` sends copy number `copy`, from 0 on, of
 * its probes. So that receive buffers do not overflow, only MMC_PROBE_RANKS ranks send
 * at a time.
 */
uint64_t mmc_probe_offset_ns(uint32_t rank, uint32_t nranks, uint32_t copy);

/*
 * Writes the head (header and, if the team uses one, CRC) of a datagram of the team's
 * own channel to `head`. `epoch` and `kind` mean what a probe or survey makes of them:
 * they take the fields of a control message's epoch and kind. The CRC covers the
 * `nbytes` at `body`, too. Returns the length of the head.
 */
uint32_t mmc_team_write_head(const struct mmc_team *team, uint8_t *head,
			     uint32_t epoch, uint32_t kind, const uint8_t *body,
			     uint32_t nbytes);

#endif
