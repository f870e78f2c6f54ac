/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory windows of a connection, each of which belongs to a grant (grants.h). */
#ifndef MMC_DRIVERS_VERBS_WINDOWS_H
#define MMC_DRIVERS_VERBS_WINDOWS_H

#include "drivers/verbs/connections.h"

/* What a grant consists of. */
struct mmc_verbs_window {
	struct mmc_verbs_window *next; /* of the connection */
	struct mmc_verbs_connection *connection;
	struct ibv_mw *mw;     /* NULL: ended, or the device has no windows */
	struct ibv_mr *region; /* the grant's own registration, or NULL */
	bool abandoned;	       /* it is to be freed once it is bound */
};

/* Returns a new window, which has no `mw` yet, or NULL. */
struct mmc_verbs_window *
mmc_verbs_window_new(struct mmc_verbs_connection *connection);

/* Frees a window, if no request to bind it is under way, or else once it is bound. */
void mmc_verbs_window_free(struct mmc_verbs_window *window);

/* Notes that the request to bind a window of the connection has ended. */
void mmc_verbs_window_bound(struct mmc_verbs_connection *connection);

/*
 * Ends the peer's right to read by any window of the connection, whose queue pair then
 * must not be used before it is reset.
 */
void mmc_verbs_windows_end(struct mmc_verbs_connection *connection);

#endif
