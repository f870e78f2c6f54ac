/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/attachment.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/progress.h"
#include "engine/threads/callers.h"
#include "offload/meeting.h"
#include "server/server.h"
#include "support/descriptor.h"
#include "support/error.h"
#include "support/thread.h"

struct served_rank {
	struct mmc_attachment attachment;
	pthread_t thread;
	bool runs;     /* the thread has been started */
	bool stopping; /* read by the thread: use atomics */
	int bell_fd;   /* the rank's bell */
	struct mmc_offload_bridge *bridge;
	size_t bridge_bytes;
	struct mmc_engine *engine;
	struct mmc_server *server;
};

/* ---- what the server needs ----------------------------------------------- */

static void ring(void *context)
{
	const struct served_rank *rank = context;

	mmc_descriptor_wake(rank->bell_fd);
}

/* Receives the file that the rank has passed before it made the call. */
static int map(void *context, uint32_t number, uint64_t nbytes, void **memory)
{
	const struct served_rank *rank = context;
	uint64_t passed[2];
	int fds[MMC_MEETING_FDS_MAX];
	int nfds = mmc_meeting_receive(rank->attachment.socket, passed,
				       sizeof(passed), fds);
	int rv = -MMC_EINVAL;

	if (nfds < 1 || passed[0] != number || passed[1] != nbytes)
		mmc_error_set("no file has come for region %u", number);
	else if (mmc_meeting_is_sealed(fds[0], nbytes))
		rv = mmc_memory_map(rank->engine, fds[0], nbytes, memory);
	while (nfds > 0)
		close(fds[--nfds]);
	return rv;
}

static void unmap(void *context, void *memory)
{
	const struct served_rank *rank = context;

	mmc_memory_free(rank->engine, memory);
}

static const struct mmc_server_host host = {
	.ring = ring,
	.map = map,
	.unmap = unmap,
};

/* ---- the thread ---------------------------------------------------------- */

static bool is_stopping(const struct served_rank *rank)
{
	return __atomic_load_n(&rank->stopping, __ATOMIC_ACQUIRE);
}

/* Serves the rank until the proxy ends that; sleeps if the rank breaks the ABI. */
static void *serve(void *argument)
{
	struct served_rank *rank = argument;

	while (!is_stopping(rank)) {
		bool busy = mmc_server_progress(rank->server);

		if (mmc_engine_enter(rank->engine) != 0)
			return NULL;
		busy |= mmc_engine_progress(rank->engine);
		if (mmc_server_is_broken(rank->server))
			shutdown(rank->attachment.socket, SHUT_RDWR);
		else if (!busy)
			busy = mmc_server_arm(rank->server);
		if (!busy && !is_stopping(rank))
			mmc_engine_doze(rank->engine);
		mmc_engine_leave(rank->engine);
	}
	mmc_server_destroy(rank->server);
	return NULL;
}

static int start(struct served_rank *rank)
{
	int error = mmc_thread_start(&rank->thread, serve, rank);

	rank->runs = error == 0;
	if (error == 0)
		return 0;
	mmc_error_set("cannot start a thread: %s", strerror(error));
	return -MMC_EIO;
}

/* ---- beginning and end --------------------------------------------------- */

/* Maps the rank's bridge, and makes what serves it. */
static int prepare(struct served_rank *rank, int bridge_fd, uint64_t nbytes)
{
	int rv;

	if (nbytes < sizeof(*rank->bridge)) {
		mmc_error_set("a bridge of %llu bytes is too short",
			      (unsigned long long)nbytes);
		return -MMC_EINVAL;
	}
	rank->bridge = mmc_meeting_map(bridge_fd, nbytes);
	if (rank->bridge == NULL)
		return -MMC_EINVAL;
	rank->bridge_bytes = nbytes;
	rank->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rank->bell_fd < 0) {
		mmc_error_set("eventfd: %s", strerror(errno));
		return -MMC_EIO;
	}
	rv = mmc_engine_create_driven(&rank->engine, &rank->attachment.wake_fd);
	if (rv == 0)
		rv = mmc_server_create(rank->engine, rank->bridge, nbytes,
				       &host, rank, &rank->server);
	return rv;
}

/* Tells a rank that it is attached, and gives it both bells. */
static int answer(int socket, const struct served_rank *rank)
{
	const struct mmc_attached attached = { .memory_bytes = 0 };
	const int fds[] = { rank->attachment.wake_fd, rank->bell_fd };

	if (mmc_meeting_send(socket, &attached, sizeof(attached), fds, 2))
		return 0;
	mmc_error_set("cannot answer a rank: %s", strerror(errno));
	return -MMC_EIO;
}

static int attach(int socket, int bridge_fd, uint64_t nbytes,
		  struct mmc_attachment **attachment)
{
	struct served_rank *rank = calloc(1, sizeof(*rank));
	int rv;

	if (rank == NULL)
		return -MMC_ENOMEM;
	rank->bell_fd = -1;
	rv = prepare(rank, bridge_fd, nbytes);
	rank->attachment.socket = socket;
	if (rv == 0)
		rv = answer(socket, rank);
	if (rv == 0)
		rv = start(rank);
	if (rv != 0) {
		rank->attachment.socket = -1;
		mmc_attachment_close(&rank->attachment);
		return rv;
	}
	*attachment = &rank->attachment;
	return 0;
}

int mmc_attachment_open(int socket, struct mmc_attachment **attachment)
{
	struct mmc_attach attach_me;
	int fds[MMC_MEETING_FDS_MAX];
	int nfds =
		mmc_meeting_receive(socket, &attach_me, sizeof(attach_me), fds);
	int rv = -MMC_EINVAL;

	if (nfds == 1)
		rv = attach(socket, fds[0], attach_me.bridge_bytes, attachment);
	while (nfds > 0)
		close(fds[--nfds]);
	return rv;
}

void mmc_attachment_close(struct mmc_attachment *attachment)
{
	struct served_rank *rank = (struct served_rank *)attachment;

	if (rank->runs) {
		__atomic_store_n(&rank->stopping, true, __ATOMIC_RELEASE);
		mmc_descriptor_wake(attachment->wake_fd);
		pthread_join(rank->thread, NULL);
	} else if (rank->server != NULL) {
		mmc_server_destroy(rank->server);
	}
	mmc_engine_destroy(rank->engine);
	if (rank->bridge != NULL)
		munmap(rank->bridge, rank->bridge_bytes);
	if (rank->bell_fd >= 0)
		close(rank->bell_fd);
	if (attachment->socket >= 0)
		close(attachment->socket);
	free(rank);
}
