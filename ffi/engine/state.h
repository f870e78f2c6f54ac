/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's state. All of it belongs to the holder of its progress lock: the one thread
 * between mmc_engine_enter() and mmc_engine_leave() (callers.h).
 */
#ifndef MMC_ENGINE_STATE_H
#define MMC_ENGINE_STATE_H

#include <mpimcast/mmc.h>
#include <pthread.h>
#include <sys/types.h>

#include "core/operation/epochs.h"
#include "drivers/driver.h"
#include "engine/copies.h"
#include "engine/fetch.h"
#include "engine/parking.h"
#include "engine/registration.h"

/* Bytes of a sentence about a broken connection, with its final 0. */
#define MMC_REASON_SIZE 512

/* Datagrams taken in at a time. */
#define MMC_EVENTS_MAX 64

struct mmc_survey;

struct mmc_request {
	struct mmc_request
		*next; /* in the stream's list of spares or of queued */
	struct mmc_stream *stream;
	struct mmc_op *op;		/* NULL while queued and when closed */
	struct mmc_operation operation; /* with tables in `memory` */
	uint8_t *base;			/* the user's, of all blocks */
	struct mmc_copy *copy; /* of the own block, after the user's is back */
	void *memory;	       /* the operation's */
	size_t memory_bytes;
	uint64_t start_ns;
	struct mmc_failure failure;
	struct mmc_region map;	/* the operation's memory, if `mapped` */
	struct mmc_region data; /* the user's, if `registered` for this alone */
	bool mapped;
	bool registered;
	bool uncoverable; /* chunks go through staging memory */
	bool notifies;	  /* of its end: see notify.h */
	bool held;	  /* by the user, until mmc_request_free() */
	bool over;	  /* read without ownership: use atomics */
};

struct mmc_stream {
	struct mmc_team *team;
	struct mmc_stream_options options;
	struct mmc_epochs epochs;
	void *epochs_memory;
	struct mmc_counters counters;
	struct mmc_parking parking;
	struct mmc_request *requests[MMC_EPOCHS_OPEN_MAX]; /* by epoch */
	struct mmc_request *queue; /* started, in order, and not yet active */
	struct mmc_request *queue_last; /* valid while there is any */
	struct mmc_request *spares;	/* memory to use again */
	struct mmc_copies copies; /* of the own blocks of ended operations */
	uint32_t index;		  /* in the team's table */
	bool stirred;		  /* something has come since the last poll */
	uint64_t deadline_ns;
};

struct mmc_team {
	struct mmc_team *next;
	struct mmc_engine *engine;
	struct mmc_endpoint *endpoint;
	struct mmc_team_options options;
	uint32_t buffer_bytes;
	bool connected;
	struct mmc_path path; /* what its streams have measured last */
	uint64_t *heard;      /* [nranks] subgroups whose probes have come */
	uint64_t *heard_full; /* [nranks] likewise at full size */
	struct mmc_survey *survey;   /* the latest, or NULL */
	struct mmc_stream **streams; /* NULL where one was closed */
	uint32_t nstreams;
	struct mmc_stream **by_channel; /* those that are open, in order */
	uint32_t nopen;
	struct mmc_stream *last;      /* that a datagram was for */
	struct mmc_counters counters; /* of datagrams that are of no stream */
	uint64_t generation; /* of memory that was registered last; never 0 */
	struct mmc_fetches fetches;
	struct mmc_deferred *deferred;
	struct mmc_request *coverer; /* whose chunks come to their places */
	bool failed; /* memory may still be read, or written, that should not */
	struct mmc_poison poison; /* the first broken connection */
	char reason[MMC_REASON_SIZE];
};

struct mmc_engine {
	pid_t pid;
	bool stepped;
	struct mmc_team *teams;
	struct mmc_memory *memories;
	struct mmc_event events[MMC_EVENTS_MAX];
	struct mmc_actions actions;
	pthread_mutex_t mutex; /* of what follows */
	pthread_cond_t handover;
	uint64_t
		next_ticket; /* of the progress lock, which is given in this order */
	uint64_t serving;
	bool moved;	     /* by a caller, until it has what it waits for */
	pthread_cond_t news; /* requests are over, or it is moved no more */
	unsigned nfollowers; /* callers that wait for news */
	uint32_t nfinished;  /* requests, so far; the lock holder's */
	uint32_t
		nexpected; /* requests in flight that notify; the lock holder's */
	uint64_t nended;   /* those that have ended */
	bool roused;	   /* and nobody has taken note yet */
	pthread_cond_t ended; /* a notification, or `roused` */
	bool stopping;	      /* read without the lock: use atomics */
	pthread_t thread;
	int epoll_fd;
	int wake_fd;
	int timer_fd;
	int armed; /* enum mmc_armed */
};

/* The place of the first open stream whose channel is not below `channel`. */
static inline uint32_t mmc_team_channel_place(const struct mmc_team *team,
					      uint64_t channel)
{
	uint32_t low = 0;
	uint32_t high = team->nopen;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (team->by_channel[middle]->epochs.channel < channel)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether the responder looks after a team. */
static inline bool mmc_team_is_attended(const struct mmc_team *team)
{
	return team->connected && !team->options.unattended;
}

static inline uint64_t mmc_team_now_ns(const struct mmc_team *team)
{
	return team->endpoint->driver->now_ns(team->endpoint);
}

/* The open request of an operation. */
static inline struct mmc_request *
mmc_stream_request(const struct mmc_stream *stream, const struct mmc_op *op)
{
	return stream->requests[op->config.epoch % MMC_EPOCHS_OPEN_MAX];
}

/* Where the bytes of `chunk` belong in the user's memory. */
static inline uint8_t *mmc_request_address(const struct mmc_request *request,
					   uint32_t chunk)
{
	const struct mmc_layout *layout = &request->op->layout;
	const uint64_t *offsets_bytes = request->operation.offsets_bytes;
	uint8_t *at = request->base + mmc_layout_offset(layout, chunk);
	uint32_t owner;

	if (offsets_bytes == NULL)
		return at;
	owner = mmc_layout_owner(layout, chunk);
	return at + (offsets_bytes[owner] -
		     mmc_layout_block(layout, owner).offset_bytes);
}

static inline bool mmc_request_over(const struct mmc_request *request)
{
	return __atomic_load_n(&request->over, __ATOMIC_ACQUIRE);
}

#endif
