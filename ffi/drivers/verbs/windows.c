/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/windows.h"

#include <stdlib.h>

/* Ends the right to read by a window. */
static void end_window(struct mmc_verbs_window *window)
{
	if (window->mw != NULL)
		ibv_dealloc_mw(window->mw);
	window->mw = NULL;
}

struct mmc_verbs_window *
mmc_verbs_window_new(struct mmc_verbs_connection *connection)
{
	struct mmc_verbs_window *window = calloc(1, sizeof(*window));

	if (window == NULL)
		return NULL;
	window->connection = connection;
	window->next = connection->windows;
	connection->windows = window;
	return window;
}

void mmc_verbs_window_free(struct mmc_verbs_window *window)
{
	struct mmc_verbs_window **at = &window->connection->windows;

	window->abandoned = window->connection->binding == window;
	if (window->abandoned)
		return;
	while (*at != window)
		at = &(*at)->next;
	*at = window->next;
	end_window(window);
	if (window->region != NULL)
		mmc_ibv.dereg_mr(window->region);
	free(window);
}

void mmc_verbs_window_bound(struct mmc_verbs_connection *connection)
{
	struct mmc_verbs_window *window = connection->binding;

	connection->binding = NULL;
	if (window != NULL && window->abandoned)
		mmc_verbs_window_free(window);
}

void mmc_verbs_windows_end(struct mmc_verbs_connection *connection)
{
	for (struct mmc_verbs_window *window = connection->windows;
	     window != NULL; window = window->next)
		end_window(window);
	mmc_verbs_window_bound(connection);
}
