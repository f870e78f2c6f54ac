/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's state. All of it belongs to the holder of the progress lock: the one
 * thread between mmc_engine_enter() and mmc_engine_leave() (callers.h).
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

/* Bytes of the sentence about a broken connection, with its final 0. */
#define MMC_REASON_SIZE 512

/* Events taken in at a time. */
#define MMC_EVENTS_MAX 64

struct mmc_survey;

struct mmc_request {
	struct mmc_request *next; /* in the stream's queue or list of spares */
	struct mmc_stream *stream;
	struct mmc_op *op;		/* NULL while queued and when closed */
	struct mmc_operation operation; /* its tables lie in `memory` */
	uint8_t *base;	       /* the user's memory, where all blocks begin */
	struct mmc_copy *copy; /* of this rank's block, for repairs */
	void *memory;	       /* the operation's, with its tables */
	size_t memory_bytes;
	uint64_t start_ns;
	struct mmc_failure failure;
	struct mmc_region map;	/* `memory` as registered, if `mapped` */
	struct mmc_region data; /* user memory as registered, if `registered` */
	bool mapped;
	bool registered;
	bool staged;   /* chunks go through staging memory */
	bool notifies; /* its end is notified: see notify.h */
	bool held;     /* the user has not freed it yet */
	bool over;     /* read without the lock: use atomics */
};

struct mmc_stream {
	struct mmc_team *team;
	struct mmc_stream_options options;
	struct mmc_epochs epochs;
	void *epochs_memory;
	struct mmc_counters counters;
	struct mmc_parking parking;
	struct mmc_request *requests[MMC_EPOCHS_OPEN_MAX]; /* open, by epoch */
	struct mmc_request *queue; /* started but not active yet, in order */
	struct mmc_request *queue_last; /* valid while the queue is not empty */
	struct mmc_request *spares;	/* requests to use again */
	struct mmc_copies copies;	/* of this rank's blocks, for repairs */
	uint32_t index;			/* in the team's `streams` */
	bool stirred; /* there were events since the last poll */
	uint64_t deadline_ns;
};

struct mmc_team {
	struct mmc_team *next;
	struct mmc_engine *engine;
	struct mmc_endpoint *endpoint;
	struct mmc_team_options options;
	uint32_t buffer_bytes;
	bool connected;
	struct mmc_path path; /* the latest measurements of its streams */
	uint64_t *heard;      /* [nranks] subgroups that were heard, as bits */
	uint64_t *heard_full; /* [nranks] subgroups heard at full size */
	struct mmc_survey *survey;   /* the latest survey, or NULL */
	struct mmc_stream **streams; /* NULL at places of closed streams */
	uint32_t nstreams;
	struct mmc_stream **by_channel; /* open streams, in order of channel */
	uint32_t nopen;
	struct mmc_stream *last; /* the stream that a datagram was for last */
	struct mmc_counters counters; /* of datagrams of no stream */
	uint64_t generation;	      /* the latest generation; never 0 */
	struct mmc_fetches fetches;
	struct mmc_deferred *deferred;
	struct mmc_request
		*direct; /* its payloads are placed directly now; or NULL */
	bool failed;	 /* ended operations' memory may still be accessed */
	struct mmc_poison poison; /* of the first broken connection */
	char reason[MMC_REASON_SIZE];
};

struct mmc_engine {
	pid_t pid;
	bool stepped;
	struct mmc_team *teams;
	struct mmc_memory *memories;
	struct mmc_event events[MMC_EVENTS_MAX];
	struct mmc_actions actions;
	pthread_mutex_t mutex; /* guards the fields below, up to `ended` */
	pthread_cond_t handover;
	uint64_t next_ticket; /* the lock is given in order of tickets */
	uint64_t serving;
	bool moved;	     /* a caller leads: it makes all progress */
	pthread_cond_t news; /* a request has completed, or `moved` has ended */
	unsigned nfollowers; /* callers that wait for `news` */
	uint32_t nfinished; /* completed requests; belongs to the lock holder */
	uint32_t nexpected; /* requests that notify; the lock holder's */
	uint64_t nended;    /* requests that notified and have ended */
	bool roused;	    /* mmc_engine_rouse() has yet to wake a thread */
	pthread_cond_t ended; /* `nended` or `roused` has changed */
	bool stopping;	      /* read without the lock: use atomics */
	pthread_t thread;
	int epoll_fd;
	int wake_fd;
	int timer_fd;
	int armed; /* enum mmc_armed */
};

/* Returns the place of the first open stream whose channel is not below `channel`. */
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

/* Returns whether the responder attends to a team. */
static inline bool mmc_team_is_attended(const struct mmc_team *team)
{
	return team->connected && !team->options.unattended;
}

static inline uint64_t mmc_team_now_ns(const struct mmc_team *team)
{
	return team->endpoint->driver->now_ns(team->endpoint);
}

/* Returns the open request of an operation. */
static inline struct mmc_request *
mmc_stream_request(const struct mmc_stream *stream, const struct mmc_op *op)
{
	return stream->requests[op->config.epoch % MMC_EPOCHS_OPEN_MAX];
}

/* Returns where the bytes of `chunk` belong in the user's memory. */
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
