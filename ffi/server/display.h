/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Displays: a host has bits of its memory show which chunks of an operation in flight are
 * present (MMC_OFFLOAD_SHOW).
 */
#ifndef MMC_SERVER_DISPLAY_H
#define MMC_SERVER_DISPLAY_H

#include <mpimcast/abi/offload.h>
#include <mpimcast/partial.h>
#include <stdbool.h>

struct mmc_server;

/* The bits of one operation. */
struct mmc_display {
	uint64_t *shown; /* in the host's memory; NULL: it has asked for none */
	uint32_t nchunks;
	uint32_t region;
	struct mmc_present *present; /* the engine's; NULL until it begins */
};

/*
 * Returns whether this program knows displays. Who has a processor without an operating
 * system for runner sees only the end.
 */
static inline bool mmc_server_has_displays(void)
{
#ifdef MMC_BARE
	return false;
#else
	return true;
#endif
}

/* Carries out MMC_OFFLOAD_SHOW. Returns whether the command was a good one. */
bool mmc_server_begin_display(struct mmc_server *server,
			      const struct mmc_offload_command *command);

/* Brings all displays up to date, and rings for the host if any has changed. */
void mmc_server_update_displays(struct mmc_server *server);

/* Ends the display of an operation that has ended, if it has one. */
void mmc_server_end_display(struct mmc_server *server, uint32_t number);

#endif
