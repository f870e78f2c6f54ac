/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a server. */
#ifndef MMC_SERVER_STATE_H
#define MMC_SERVER_STATE_H

#include <mpimcast/mmc.h>

#include "server/display.h"
#include "server/server.h"

/* An operation in flight, by the number that the host has given it. */
struct mmc_served {
	struct mmc_request *request; /* NULL: the number is free */
	uint32_t stream;
	uint32_t region; /* where its result is, or MMC_OFFLOAD_NOWHERE */
};

/* Memory of the host. */
struct mmc_mapped {
	uint8_t *bytes; /* NULL: there is no such region */
	uint64_t nbytes;
	uint32_t nused; /* results and displays of operations in flight */
};

struct mmc_server {
	struct mmc_engine *engine;
	struct mmc_offload_bridge *bridge;
	uint64_t mailbox_bytes; /* of the mailbox's body */
	const struct mmc_server_host *host;
	void *context;
	bool broken;	       /* the host has broken the ABI */
	struct mmc_team *team; /* NULL until the host has opened it */
	uint32_t nranks;
	uint64_t *tables; /* [2][nranks] of the Allgatherv that starts */
	uint32_t nserved; /* operations in flight */
	struct mmc_served served[MMC_OFFLOAD_REQUESTS];
	struct mmc_stream *streams[MMC_OFFLOAD_STREAMS]; /* or NULL */
	struct mmc_mapped mapped[MMC_OFFLOAD_REGIONS];
	uint32_t ndisplays;
	struct mmc_display displays[MMC_OFFLOAD_REQUESTS]; /* as `served` */
};

/* Returns the `nbytes` at a place, or NULL if they do not lie in one region. */
uint8_t *mmc_server_find(const struct mmc_server *server,
			 const struct mmc_offload_place *place,
			 uint64_t nbytes);

/* Frees the number of an operation that has ended, or that nobody wants to know of. */
void mmc_server_forget(struct mmc_server *server, uint32_t number);

/* Puts the end of an operation in the ring, and forgets it. */
void mmc_server_complete(struct mmc_server *server, uint32_t number,
			 const struct mmc_failure *failure);

/* Reports all operations that have ended. Returns whether there were any. */
bool mmc_server_report(struct mmc_server *server);

/* Answers the call in the mailbox. */
void mmc_server_answer(struct mmc_server *server, uint32_t kind);

/* Closes a stream, and forgets its operations in flight. */
void mmc_server_close_stream(struct mmc_server *server, uint32_t number);

#endif
