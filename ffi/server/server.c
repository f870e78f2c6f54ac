/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/server.h"

#include <stdlib.h>
#include <string.h>

#include "offload/ring.h"
#include "server/state.h"

/* ---- memory of the host -------------------------------------------------- */

uint8_t *mmc_server_find(const struct mmc_server *server,
			 const struct mmc_offload_place *place, uint64_t nbytes)
{
	const struct mmc_mapped *mapped;

	if (place->region >= MMC_OFFLOAD_REGIONS)
		return NULL;
	mapped = &server->mapped[place->region];
	if (mapped->bytes == NULL || place->offset_bytes > mapped->nbytes ||
	    nbytes > mapped->nbytes - place->offset_bytes)
		return NULL;
	return mapped->bytes + place->offset_bytes;
}

/*
 * Writes how many bytes from `recv` the last block of an operation ends. Returns whether
 * that is a number.
 */
static bool measure(const struct mmc_operation *operation, uint32_t nranks,
		    uint64_t *nbytes)
{
	*nbytes = operation->block_bytes;
	if (operation->kind == MMC_ALLGATHER)
		return !__builtin_mul_overflow(operation->block_bytes, nranks,
					       nbytes);
	if (operation->kind != MMC_ALLGATHERV)
		return true;
	*nbytes = 0;
	for (uint32_t r = 0; r < nranks; r++) {
		uint64_t end;

		if (operation->blocks_bytes[r] == 0)
			continue;
		if (__builtin_add_overflow(operation->blocks_bytes[r],
					   operation->offsets_bytes[r], &end))
			return false;
		if (end > *nbytes)
			*nbytes = end;
	}
	return true;
}

/* ---- operations ---------------------------------------------------------- */

/* The tables are copied, lest the host change them once they have been checked. */
static bool copy_tables(const struct mmc_server *server,
			const struct mmc_offload_place *place)
{
	size_t nbytes = 2 * server->nranks * sizeof(*server->tables);
	const uint8_t *from = mmc_server_find(server, place, nbytes);

	if (from != NULL)
		memcpy(server->tables, from, nbytes);
	return from != NULL;
}

/*
 * Writes the operation that a command describes. Returns whether all of it lies in memory
 * of the host.
 */
static bool read_operation(const struct mmc_server *server,
			   const struct mmc_offload_command *command,
			   struct mmc_operation *operation)
{
	uint64_t nbytes;

	*operation = (struct mmc_operation){
		.kind = command->operation,
		.root = command->root,
		.block_bytes = command->block_bytes,
		.partial = mmc_server_has_displays() && command->partial,
	};
	if (operation->kind == MMC_ALLGATHERV) {
		if (!copy_tables(server, &command->tables))
			return false;
		operation->blocks_bytes = server->tables;
		operation->offsets_bytes = server->tables + server->nranks;
	}
	if (!measure(operation, server->nranks, &nbytes))
		return false;
	operation->recv = mmc_server_find(server, &command->recv, nbytes);
	return operation->recv != NULL || nbytes == 0;
}

/* Starts an operation. One that cannot start fails, and so do the other ranks' then. */
static void start(struct mmc_server *server,
		  const struct mmc_offload_command *command,
		  const struct mmc_operation *operation)
{
	struct mmc_served *served = &server->served[command->request];
	struct mmc_stream *stream = server->streams[command->stream];
	struct mmc_failure failure = { .culprit = UINT32_MAX };
	int rv = mmc_start(stream, operation, 0, &served->request);

	served->stream = command->stream;
	served->region = operation->recv == NULL ? MMC_OFFLOAD_NOWHERE
						 : command->recv.region;
	if (served->region != MMC_OFFLOAD_NOWHERE)
		server->mapped[served->region].nused++;
	server->nserved++;
	if (served->request != NULL)
		return;
	if (rv < 0) {
		failure.error = rv;
		mmc_stream_fail(stream, rv);
	}
	mmc_server_complete(server, command->request, &failure);
}

/* Carries out a command that begins an operation. Returns whether it was a good one. */
static bool take_start(struct mmc_server *server,
		       const struct mmc_offload_command *command)
{
	struct mmc_operation operation;

	if (command->stream >= MMC_OFFLOAD_STREAMS ||
	    server->streams[command->stream] == NULL ||
	    command->request >= MMC_OFFLOAD_REQUESTS ||
	    server->served[command->request].request != NULL)
		return false;
	if (!read_operation(server, command, &operation))
		return false;
	start(server, command, &operation);
	return true;
}

void mmc_server_forget(struct mmc_server *server, uint32_t number)
{
	struct mmc_served *served = &server->served[number];

	if (mmc_server_has_displays())
		mmc_server_end_display(server, number);
	if (served->region != MMC_OFFLOAD_NOWHERE)
		server->mapped[served->region].nused--;
	served->request = NULL;
	server->nserved--;
}

void mmc_server_complete(struct mmc_server *server, uint32_t number,
			 const struct mmc_failure *failure)
{
	struct mmc_offload_bridge *bridge = server->bridge;
	struct mmc_offload_ring *ring = &bridge->completions;
	struct mmc_served *served = &server->served[number];

	/* No number is in flight twice, so the ring has room unless the host lies. */
	bridge->completion[ring->nproduced % MMC_OFFLOAD_REQUESTS] =
		(struct mmc_offload_completion){
			.request = number,
			.stream = served->stream,
			.unicast_epoch = mmc_stream_unicast_epoch(
				server->streams[served->stream]),
			.failure = *failure,
		};
	mmc_request_free(served->request);
	mmc_server_forget(server, number);
	mmc_ring_produce(ring);
	if (mmc_ring_must_ring(ring))
		server->host->ring(server->context);
}

bool mmc_server_report(struct mmc_server *server)
{
	uint32_t nreported = 0;
	uint32_t nserved = server->nserved;

	for (uint32_t i = 0, seen = 0; seen < nserved; i++) {
		struct mmc_request *request = server->served[i].request;
		struct mmc_failure failure;

		if (request == NULL)
			continue;
		seen++;
		if (mmc_request_wait(request, 0) == MMC_EAGAIN)
			continue;
		mmc_request_failure(request, &failure);
		mmc_server_complete(server, i, &failure);
		nreported++;
	}
	return nreported > 0;
}

/* ---- commands ------------------------------------------------------------ */

/* Takes the next command. Returns whether there was one. */
static bool take_command(struct mmc_server *server)
{
	struct mmc_offload_bridge *bridge = server->bridge;
	struct mmc_offload_ring *ring = &bridge->commands;
	uint32_t ncommands = mmc_ring_count(ring);
	struct mmc_offload_command command;

	if (ncommands == 0)
		return false;
	/* What has been copied is checked: the host may change the ring meanwhile. */
	command = bridge->command[ring->nconsumed % MMC_OFFLOAD_COMMANDS];
	mmc_ring_consume(ring);
	if (ncommands > MMC_OFFLOAD_COMMANDS)
		server->broken = true;
	else if (command.kind == MMC_OFFLOAD_START)
		server->broken = !take_start(server, &command);
	else if (command.kind == MMC_OFFLOAD_CALL)
		mmc_server_answer(server, command.call);
	else if (mmc_server_has_displays() && command.kind == MMC_OFFLOAD_SHOW)
		server->broken = !mmc_server_begin_display(server, &command);
	else
		server->broken = true;
	return true;
}

bool mmc_server_progress(struct mmc_server *server)
{
	bool busy = false;

	while (!server->broken && take_command(server))
		busy = true;
	mmc_ring_show(&server->bridge->runner_beat,
		      mmc_ring_see(&server->bridge->host_beat));
	if (!server->broken && server->nserved > 0)
		busy |= mmc_server_report(server);
	if (mmc_server_has_displays() && !server->broken)
		mmc_server_update_displays(server);
	return busy;
}

bool mmc_server_arm(struct mmc_server *server)
{
	struct mmc_offload_bridge *bridge = server->bridge;

	mmc_ring_arm(&bridge->commands);
	return mmc_ring_count(&bridge->commands) != 0 ||
	       mmc_ring_see(&bridge->host_beat) != bridge->runner_beat;
}

bool mmc_server_is_broken(const struct mmc_server *server)
{
	return server->broken;
}

/* ---- beginning and end --------------------------------------------------- */

int mmc_server_create(struct mmc_engine *engine,
		      struct mmc_offload_bridge *bridge, size_t bridge_bytes,
		      const struct mmc_server_host *host, void *context,
		      struct mmc_server **server)
{
	struct mmc_server *new;

	if (bridge_bytes < sizeof(*bridge) ||
	    bridge->magic != MMC_OFFLOAD_MAGIC ||
	    bridge->version != MMC_OFFLOAD_VERSION)
		return -MMC_EINVAL;
	new = calloc(1, sizeof(*new));
	if (new == NULL)
		return -MMC_ENOMEM;
	new->engine = engine;
	new->bridge = bridge;
	new->mailbox_bytes = bridge_bytes - sizeof(*bridge);
	new->host = host;
	new->context = context;
	*server = new;
	return 0;
}

void mmc_server_close_stream(struct mmc_server *server, uint32_t number)
{
	for (uint32_t i = 0; i < MMC_OFFLOAD_REQUESTS; i++) {
		const struct mmc_served *served = &server->served[i];

		if (served->request == NULL || served->stream != number)
			continue;
		/* Closing the stream frees those alone that have not ended. */
		if (mmc_request_wait(served->request, 0) != MMC_EAGAIN)
			mmc_request_free(served->request);
		mmc_server_forget(server, i);
	}
	mmc_stream_close(server->streams[number]);
	server->streams[number] = NULL;
}

void mmc_server_destroy(struct mmc_server *server)
{
	for (uint32_t i = 0; i < MMC_OFFLOAD_STREAMS; i++)
		if (server->streams[i] != NULL)
			mmc_server_close_stream(server, i);
	if (server->team != NULL)
		mmc_team_close(server->team);
	for (uint32_t i = 0; i < MMC_OFFLOAD_REGIONS; i++)
		if (server->mapped[i].bytes != NULL)
			server->host->unmap(server->context,
					    server->mapped[i].bytes);
	free(server->tables);
	free(server);
}
