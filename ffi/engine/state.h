/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's state. All of it belongs to the holder of the progress lock: the one
 * thread between mmc_engine_enter() and mmc_engine_leave() (threads/callers.h).
 */
#ifndef MMC_ENGINE_STATE_H
#define MMC_ENGINE_STATE_H

#include <mpimcast/mmc.h>

#include "core/operation/epochs.h"
#include "core/operation/view.h"
#include "drivers/strangers.h"
#include "engine/copies.h"
#include "engine/fetch.h"
#include "engine/parking.h"
#include "engine/registration.h"
#include "support/run_delay.h"

/* Bytes of the sentence about a broken connection, with its final 0. */
#define MMC_REASON_SIZE 512

/* The most events that one poll of an endpoint takes in. */
#define MMC_EVENTS_MAX 64

/* Probes of more subgroups find no bit in the team's `heard` and `heard_full`. */
#define MMC_HEARD_SUBGROUPS_MAX 64

struct mmc_posted;
struct mmc_bounce;
struct mmc_coder;
struct mmc_stock;
struct mmc_survey;
struct mmc_threads;
struct mmc_tracing;

/* One operation, from its start until neither the user nor another rank needs it. */
struct mmc_request {
	struct mmc_request *next; /* in the stream's queue or list of spares */
	struct mmc_stream *stream;
	struct mmc_op *op;		/* NULL while queued and once closed */
	struct mmc_operation operation; /* its tables lie in `memory` */
	uint8_t *base; /* the user's memory, where the first block begins */
	struct mmc_copy *copy; /* of what others may ask for; or NULL */
	void *memory; /* the core's state, behind it those tables, and parity */
	size_t memory_bytes;
	uint8_t *parity;		/* where the slots begin (parity.h) */
	uint64_t start_ns;		/* on the endpoint's clock */
	struct mmc_run_delay run_delay; /* when it was activated, if large */
	struct mmc_failure failure;
	struct mmc_region region; /* `memory` as registered, if `registered` */
	/* What the right neighbour may read, if `granted`: `memory` and the result. */
	struct mmc_grant state;
	struct mmc_grant data;
	uint64_t reconnects; /* of the endpoint, when it was activated */
	bool registered;
	bool granted;
	bool unplaceable; /* the device has refused direct placement */
	bool notifies;	  /* its end wakes mmc_engine_await() */
	/* The next three are for requests that a runner carries out (engine/remote). */
	bool shown; /* the runner is to show what is present: use atomics */
	struct mmc_bounce *bounce; /* shared memory, or NULL */
	bool bounced;		   /* the result arrives in `bounce` */
	/*
	 * Which blocks have landed; NULL until a `partial` operation begins, and then set
	 * until the user frees the request: use atomics.
	 */
	const struct mmc_landing *landing;
	struct mmc_present *present; /* it owns `memory`; or NULL */
	uint32_t ntold;		     /* blocks that were told of */
	bool tells;		     /* blocks wake mmc_engine_await() */
	bool held;		     /* the user has not freed it yet */
	bool complete;		     /* read without the lock: use atomics */
	struct mmc_stock *stock;     /* parity computed ahead; or NULL */
};

struct mmc_stream {
	struct mmc_team *team;
	struct mmc_stream_options options;
	struct mmc_epochs epochs;
	void *epochs_memory;
	struct mmc_counters counters;
	struct mmc_parking parking;	 /* of chunks */
	struct mmc_parking parked_parts; /* of blocks that messages carry */
	/* The open requests; that of an epoch is at mmc_epochs_slot(). */
	struct mmc_request *requests[MMC_EPOCHS_OPEN_MAX];
	struct mmc_request *queue; /* started but not active yet, in order */
	struct mmc_request *queue_last; /* valid while the queue is not empty */
	struct mmc_request *spares;	/* requests to use again */
	struct mmc_copies copies;	/* of this rank's blocks, for repairs */
	struct mmc_tracing *tracing;	/* NULL: the stream is not traced */
	uint32_t index;			/* in the team's `streams` */
	bool needs_poll;      /* something has happened since the last poll */
	uint64_t deadline_ns; /* when to poll even if nothing happens */
	/* The rest is for streams whose operations a runner carries out. */
	uint32_t nposted;	/* operations so far */
	uint32_t unicast_epoch; /* as of the last completion */
	bool leaves;		/* this rank has left it */
	bool left;		/* and the runner knows it */
};

/* Refused datagrams in short, and whether they came so fast that the driver guards. */
struct mmc_flood {
	uint64_t begin_ns;   /* since when they are counted */
	uint32_t ndatagrams; /* how many came since then */
	bool guarded;
};

/* What the datagrams of full chunks look like of the operation that was heard last. */
struct mmc_expected {
	uint64_t channel;
	uint32_t epoch;
	uint32_t full_bytes; /* 0: nothing was heard yet */
	struct mmc_header_template template;
};

struct mmc_team {
	struct mmc_team *next; /* in the engine's `teams` */
	struct mmc_engine *engine;
	struct mmc_endpoint *endpoint;
	struct mmc_team_options options;
	uint32_t buffer_bytes; /* what the receive buffers hold for certain */
	bool connected;
	struct mmc_path path; /* the latest measurements of its streams */
	uint64_t *heard;      /* [nranks] bit s: a probe came in subgroup s */
	uint64_t *heard_full; /* [nranks] bit s: a full-size probe came */
	struct mmc_survey *survey;   /* the latest survey, or NULL */
	struct mmc_stream **streams; /* NULL where a stream has been closed */
	uint32_t nstreams;	     /* length of `streams`, with the NULLs */
	struct mmc_stream **by_channel; /* open streams, in order of channel */
	uint32_t nopen;			/* length of `by_channel` */
	/* The stream of the latest datagram: the next one is likely for it, too. */
	struct mmc_stream *latest_stream;
	struct mmc_expected expected; /* as the next one may look */
	struct mmc_counters counters; /* of datagrams of no stream */
	uint64_t
		nrefused; /* datagrams that were refused, as far as they came here */
	struct mmc_strangers strangers;
	struct mmc_flood flood;
	uint64_t generation; /* the latest that an advert has had; never 0 */
	struct mmc_fetches fetches;
	/* The request whose payloads the device places now, or NULL. */
	struct mmc_request *direct_request;
	/* The device does not obey: it may write where receives have aimed. */
	bool memory_may_be_written;
	/* The requests that a runner carries out; NULL: this engine carries them out. */
	struct mmc_posted *posted;
	struct mmc_poison poison; /* why the team has broken down, if it has */
	char reason[MMC_REASON_SIZE]; /* the driver's sentence about that */
};

struct mmc_engine {
	bool stepped; /* it has no responder, and is stepped from outside */
	struct mmc_team *teams;
	struct mmc_memory *memories;
	struct mmc_event events[MMC_EVENTS_MAX];
	struct mmc_actions actions;
	uint32_t ntraced;   /* streams that are traced */
	uint32_t nfinished; /* requests that have completed so far */
	uint32_t nexpected; /* requests that will notify of their ends */
	uint32_t ntelling;  /* requests whose blocks are told of */
	struct mmc_threads *threads; /* NULL without an operating system */
	struct mmc_coder *coder;     /* NULL until a stream needs it */
};

/* Returns the engine's coder, or NULL. */
static inline struct mmc_coder *
mmc_engine_coder(const struct mmc_engine *engine)
{
#ifdef MMC_BARE
	/* Without an operating system there is a single thread. */
	(void)engine;
	return NULL;
#else
	return engine->coder;
#endif
}

/*
 * Returns the index in `by_channel` of the first stream whose channel is not below
 * `channel`, or `nopen` if there is none.
 */
static inline uint32_t mmc_team_channel_index(const struct mmc_team *team,
					      uint64_t channel)
{
	uint32_t low = 0;
	uint32_t high = team->nopen;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (mmc_epochs_channel(&team->by_channel[middle]->epochs) <
		    channel)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns whether the responder makes progress for a team. */
static inline bool mmc_team_is_attended(const struct mmc_team *team)
{
	return team->connected && !team->options.unattended;
}

/* Returns whether a runner carries out a team's operations: see engine/remote. */
static inline bool mmc_team_is_remote(const struct mmc_team *team)
{
#ifdef MMC_BARE
	/* A processor without an operating system is a runner, and has none itself. */
	(void)team;
	return false;
#else
	return team->posted != NULL;
#endif
}

/* Returns the time on the clock of the team's endpoint. */
static inline uint64_t mmc_team_now_ns(const struct mmc_team *team)
{
	return team->endpoint->driver->now_ns(team->endpoint);
}

/* Returns the open request of an operation. */
static inline struct mmc_request *
mmc_stream_request(const struct mmc_stream *stream, const struct mmc_op *op)
{
	return stream->requests[mmc_epochs_slot(mmc_op_epoch(op))];
}

/* Returns where the bytes of `chunk` belong in the user's memory. */
static inline uint8_t *mmc_request_address(const struct mmc_request *request,
					   uint32_t chunk)
{
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	const uint64_t *offsets_bytes = request->operation.offsets_bytes;
	uint8_t *at = request->base + mmc_layout_offset(layout, chunk);
	uint32_t owner;

	/* `at` is right if the blocks are adjacent; else each block is moved. */
	if (offsets_bytes == NULL)
		return at;
	owner = mmc_layout_owner(layout, chunk);
	return at + (offsets_bytes[owner] -
		     mmc_layout_block(layout, owner).offset_bytes);
}

/*
 * Returns where the bytes of `chunk` are that others may be sent: in the user's memory until
 * the operation is done, then in the copy that serves others.
 */
static inline const uint8_t *mmc_request_held(const struct mmc_request *request,
					      uint32_t chunk)
{
	const struct mmc_op *op = request->op;

	if (!mmc_op_is_reported(op))
		return mmc_request_address(request, chunk);
	return request->copy->bytes +
	       (mmc_layout_offset(mmc_op_layout(op), chunk) -
		mmc_op_copied(op).offset_bytes);
}

/* Returns whether the buffers are the user's again. Any thread may ask. */
static inline bool mmc_request_is_complete(const struct mmc_request *request)
{
	return __atomic_load_n(&request->complete, __ATOMIC_ACQUIRE);
}

#endif
