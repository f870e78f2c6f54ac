/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the headers of received datagrams. Most carry a full chunk of the operation that
 * was heard last, and are recognized by what such a header must look like; consecutive
 * chunks of one sender are found as a run.
 */
#ifndef MMC_ENGINE_DATAGRAM_H
#define MMC_ENGINE_DATAGRAM_H

#include "engine/state.h"

/* Returns the bytes of a datagram's header and CRC. */
static inline uint32_t mmc_team_head_bytes(const struct mmc_team *team)
{
	return team->options.checksum == MMC_CHECKSUM_FULL
		       ? MMC_HEADER_BYTES + MMC_CRC_BYTES
		       : MMC_HEADER_BYTES;
}

/*
 * Reads the header of a datagram. Returns 0, or what mmc_header_decode() does if that, or
 * its CRC if any, is wrong.
 */
int mmc_team_decode(const struct mmc_team *team, const struct mmc_event *event,
		    struct mmc_header *header);

/* Expects more chunks of the operation that has a chunk with this header. */
void mmc_team_expect(struct mmc_team *team, const struct mmc_header *header);

/*
 * Returns how many events, from the first on, are datagrams of a run: consecutive chunks
 * of one operation, which is the one that is expected, sent by one rank for the first
 * time, of which all but the last are full. `first` is the header of the first.
 */
unsigned mmc_team_find_run(const struct mmc_team *team,
			   const struct mmc_event *events, unsigned nevents,
			   const struct mmc_header *first);

#endif
