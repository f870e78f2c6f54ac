/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine's files share. All of it belongs to the engine's owner: the
 * one thread between mmc_engine_enter() and mmc_engine_leave(). A caller that
 * waits for its operation moves everybody's; when nobody is inside, the
 * responder thread is.
 */
#ifndef MMC_ENGINE_STATE_H
#define MMC_ENGINE_STATE_H

#include <mpimcast/mmc.h>
#include <pthread.h>
#include <sys/types.h>

#include "core/epochs.h"
#include "drivers/driver.h"
#include "engine/engine.h"

/* A block up to this is copied, so that its sender need not wait for others. */
#define MMC_RETAIN_BYTES (UINT64_C(1) << 20)

/* Datagrams taken in at a time. */
#define MMC_EVENTS_MAX 64

struct mmc_request {
	struct mmc_request *next; /* in the stream's list of spares or of queued */
	struct mmc_stream *stream;
	struct mmc_op *op;	  /* NULL while queued and when closed */
	uint8_t *base;		  /* the user's, of all blocks */
	uint8_t *copy;		  /* of the own block, after the user's is back */
	void *memory;		  /* the operation's */
	size_t memory_bytes;
	size_t copy_bytes;
	uint64_t block_bytes;
	uint64_t start_ns;
	struct mmc_failure failure;
	bool held;		  /* by the user, until mmc_request_free() */
	bool over;		  /* read without ownership: use atomics */
};

/* Chunks of eager operations that came before their operation started. */
struct mmc_parked {
	uint32_t epoch;
	uint32_t source;
	uint32_t index;
	uint32_t nbytes;
};

#define MMC_PARKED_BYTES_MAX (128 * 1024)

struct mmc_parking {
	struct mmc_parked *slots;
	uint8_t *payloads; /* chunk_bytes each */
	uint32_t nslots;
	uint32_t nused;
};

struct mmc_stream {
	struct mmc_team *team;
	struct mmc_stream_options options;
	struct mmc_epochs epochs;
	struct mmc_counters counters;
	struct mmc_parking parking;
	struct mmc_request *requests[MMC_EPOCHS_OPEN_MAX]; /* by epoch */
	struct mmc_request *queue;  /* started, in order, and not yet active */
	struct mmc_request *spares; /* memory to use again */
	uint32_t index;		    /* in the team's table */
	bool stirred;		    /* something has come since the last poll */
	uint64_t deadline_ns;
};

struct mmc_team {
	struct mmc_team *next;
	struct mmc_engine *engine;
	struct mmc_endpoint *endpoint;
	struct mmc_team_options options;
	uint32_t buffer_bytes;
	bool connected;
	struct mmc_stream **streams; /* NULL where one was closed */
	uint32_t nstreams;
	struct mmc_stream *last;     /* that a datagram was for */
	struct mmc_counters counters; /* of datagrams that are of no stream */
};

struct mmc_engine {
	pid_t pid;
	bool stepped;
	struct mmc_team *teams;
	struct mmc_event events[MMC_EVENTS_MAX];
	struct mmc_actions actions;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t handover;
	uint64_t next_ticket; /* ownership is handed on in the order of asking */
	uint64_t serving;
	bool stopping; /* read without the lock: use atomics */
	pthread_t thread;
	int epoll_fd;
	int wake_fd;
	int timer_fd;
	int armed; /* enum mmc_armed */
};

/* ---- ownership (owner.c) ------------------------------------------------ */

/*
 * Becomes the owner, waiting for the present one to leave. Returns 0, or
 * -MMC_EFORKED in a child of the process that created the engine.
 */
int mmc_engine_enter(struct mmc_engine *engine);
void mmc_engine_leave(struct mmc_engine *engine);

/* Moves everything on until `request` is over or `until_ns` (CLOCK_MONOTONIC). */
void mmc_engine_run(struct mmc_engine *engine, struct mmc_request *request,
		    uint64_t until_ns);

/* Starts and stops the responder thread. */
int mmc_responder_start(struct mmc_engine *engine);
void mmc_responder_stop(struct mmc_engine *engine);

/* A connected team's descriptors are watched, or no longer. */
void mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team);
void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team);

/* ---- one pass (pass.c) -------------------------------------------------- */

/*
 * Takes in what is there, polls what is due, does what is wanted. Returns
 * whether anything happened: then more may be due at once.
 */
bool mmc_engine_pass(struct mmc_engine *engine);

/* When something is due if nothing comes: at once if a stream is stirred. */
uint64_t mmc_engine_deadline(const struct mmc_engine *engine);

/* Whether an operation is on its way, not only there to serve others. */
bool mmc_engine_is_moving(const struct mmc_engine *engine);

static inline uint64_t mmc_team_now_ns(const struct mmc_team *team)
{
	return team->endpoint->driver->now_ns(team->endpoint);
}

/* ---- receiving and sending (receive.c, send.c) -------------------------- */

/* A datagram has come for `team`; its payload is placed before this returns. */
void mmc_team_receive(struct mmc_team *team, const struct mmc_event *event,
		      uint64_t now_ns);

/* A placement that took its time has completed. */
void mmc_team_placed(struct mmc_team *team, uint64_t cookie);

/* Brings a chunk to an operation: shared by receiving and unparking. */
void mmc_request_chunk(struct mmc_request *request, uint32_t source,
		       uint32_t index, const uint8_t *payload, uint32_t nbytes,
		       uint64_t now_ns);

/* Sends an encoded control message to `peer`. Returns 0 or a negative error. */
int mmc_stream_send_control(struct mmc_stream *stream, uint32_t peer,
			    const uint8_t *bytes, uint32_t nbytes);

/* Sends the chunks of a SEND action. Returns 0 or a negative error. */
int mmc_request_send(struct mmc_request *request,
		     const struct mmc_action *action);

/* ---- parking (parking.c) ------------------------------------------------ */

int mmc_parking_init(struct mmc_parking *parking, uint32_t chunk_bytes);
void mmc_parking_close(struct mmc_parking *parking);

/* Keeps an early chunk; false if there is no room. */
bool mmc_parking_keep(struct mmc_parking *parking,
		      const struct mmc_parked *parked, uint32_t chunk_bytes,
		      const uint8_t *payload);

/* Brings what was kept for the operation of `request` to it. */
void mmc_parking_hand_over(struct mmc_parking *parking,
			   struct mmc_request *request, uint32_t chunk_bytes,
			   uint64_t now_ns);

/* ---- requests (request.c) ----------------------------------------------- */

/* The open request of an operation. */
static inline struct mmc_request *
mmc_stream_request(const struct mmc_stream *stream, const struct mmc_op *op)
{
	return stream->requests[op->config.epoch % MMC_EPOCHS_OPEN_MAX];
}

/* Starts queued requests as far as the stream is ready for them. */
void mmc_stream_start_queued(struct mmc_stream *stream, uint64_t now_ns);

/* The outcomes of operations: see enum mmc_action_kind. */
void mmc_request_done(struct mmc_request *request, bool retain);
void mmc_request_failed(struct mmc_request *request);
void mmc_request_closed(struct mmc_request *request);

/* Frees all requests of a stream, in flight or not. */
void mmc_stream_drop_requests(struct mmc_stream *stream);

static inline bool mmc_request_over(const struct mmc_request *request)
{
	return __atomic_load_n(&request->over, __ATOMIC_ACQUIRE);
}

#endif
