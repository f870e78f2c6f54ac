/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runner's end of a bridge of the offload ABI: carries out a host's commands and calls
 * by the functions of mpimcast/mmc.h on an engine, which has no other user. What the
 * host has written is checked before it is used: a host that breaks the ABI loses its
 * team, and harms nobody else.
 */
#ifndef MMC_SERVER_SERVER_H
#define MMC_SERVER_SERVER_H

#include <mpimcast/abi/offload.h>
#include <stdbool.h>
#include <stddef.h>

struct mmc_server;

/* What a server needs of its surroundings; `context` is that of mmc_server_create(). */
struct mmc_server_host {
	/* Rings the host's bell. */
	void (*ring)(void *context);

	/*
	 * Makes region `number` of the host, `nbytes` long, memory of the engine. Returns
	 * 0 with its address written to `*memory`, or a negative error.
	 */
	int (*map)(void *context, uint32_t number, uint64_t nbytes,
		   void **memory);

	/* Ends the use of what `map` has returned. */
	void (*unmap)(void *context, void *memory);
};

/*
 * Creates a server on `bridge`, which is `bridge_bytes` long and whose head the host has
 * filled in. The bridge and the engine belong to the caller, and outlive the server.
 * Returns 0, -MMC_ENOMEM, or -MMC_EINVAL if the bridge is not one of this version.
 */
int mmc_server_create(struct mmc_engine *engine,
		      struct mmc_offload_bridge *bridge, size_t bridge_bytes,
		      const struct mmc_server_host *host, void *context,
		      struct mmc_server **server);

/*
 * Carries out what the host has asked for, reports the operations that have ended, and
 * shows which chunks of others are present, if it has asked for that.
 * Returns whether there was anything to do: then there may be more.
 */
bool mmc_server_progress(struct mmc_server *server);

/*
 * Prepares for a sleep. Returns whether the host has asked for something meanwhile, so
 * that the caller must not sleep.
 */
bool mmc_server_arm(struct mmc_server *server);

/* Returns whether the host has broken the ABI; the server then does nothing more. */
bool mmc_server_is_broken(const struct mmc_server *server);

/* Closes the team, if there is one, and frees the server. */
void mmc_server_destroy(struct mmc_server *server);

#endif
