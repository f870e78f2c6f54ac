/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One operation as a state machine: the blocks of some ranks go to all of them. Events
 * go in: a chunk has arrived, has been placed or has been sent; a message has arrived;
 * time has passed. Batches of actions come out.
 *
 * MMC_OP_TABLE holds the states and the events that lead from one to the next.
 */
#ifndef MMC_CORE_OPERATION_OP_H
#define MMC_CORE_OPERATION_OP_H

#include "core/barrier/barrier.h"
#include "core/barrier/liveness.h"
#include "core/counters.h"
#include "core/flow/turn.h"
#include "core/operation/action.h"
#include "core/operation/config.h"
#include "core/operation/parts.h"
#include "core/plan/landing.h"
#include "core/repair/mender.h"
#include "core/repair/pooling.h"
#include "core/repair/repair.h"

enum mmc_op_state {
	MMC_OP_ENTRY,	/* waits until all ranks have entered */
	MMC_OP_FLOW,	/* chunks are multicast and repaired */
	MMC_OP_RELEASE, /* complete, but others may need this rank's buffers */
	/* The states from here on are the end for the user. */
	/* Others are served from a copy of this rank's block. */
	MMC_OP_COPIED,
	/* As in COPIED, but some ranks need the release barrier. */
	MMC_OP_HELPING,
	MMC_OP_DETACHED, /* no rank needs this one's block */
	MMC_OP_CLOSED,	 /* no rank needs the operation any more */
	MMC_OP_FAILED,	 /* failed after all had entered */
	MMC_OP_REFUSED,	 /* failed before all had entered */
};

/* X(state, event, next state) */
#define MMC_OP_TABLE(X)                                                        \
	X(ENTRY, ALL_ENTERED, FLOW)                                            \
	X(ENTRY, FAILURE, REFUSED)                                             \
	X(FLOW, COMPLETE, RELEASE)                                             \
	X(FLOW, COMPLETE_WITH_COPY, COPIED)                                    \
	X(FLOW, COMPLETE_AHEAD, HELPING)                                       \
	X(FLOW, FAILURE, FAILED)                                               \
	X(RELEASE, ALL_DONE, CLOSED)                                           \
	X(RELEASE, RIGHT_DONE, DETACHED)                                       \
	X(RELEASE, FAILURE, CLOSED)                                            \
	X(COPIED, ALL_DONE, CLOSED)                                            \
	X(HELPING, ALL_DONE, CLOSED)                                           \
	X(DETACHED, ALL_DONE, CLOSED)

enum mmc_op_event {
	MMC_OP_ALL_ENTERED, /* the entry barrier was passed */
	MMC_OP_COMPLETE,    /* every chunk is present, and none is in flight */
	/* As COMPLETE; this rank copies its small block, and so do all others. */
	MMC_OP_COMPLETE_WITH_COPY,
	/* As COMPLETE; this rank copies its small block, but some are too large. */
	MMC_OP_COMPLETE_AHEAD,
	MMC_OP_RIGHT_DONE, /* the right neighbour needs this rank no more */
	MMC_OP_ALL_DONE,   /* all are done, as this or a later barrier says */
	MMC_OP_FAILURE,	   /* this or another rank has failed */
};

/* How this rank's block reaches the others. */
enum mmc_op_mode {
	MMC_OP_STAGED,	/* by multicast, in turns */
	MMC_OP_EAGER,	/* by multicast, before all have entered */
	MMC_OP_UNICAST, /* from neighbour to neighbour: some rank is deaf */
	MMC_OP_CARRIED, /* in the entry barrier's messages (carried.h) */
};

/* The memory that an operation still uses. */
enum mmc_op_holding {
	MMC_OP_BUFFERS, /* the user's buffers, and its own memory */
	MMC_OP_MEMORY,	/* its own memory: DONE or FAILED was handed out */
	MMC_OP_NOTHING, /* none: CLOSED was handed out */
};

/*
 * Keeps the results of the look-ups for a chunk. The next chunk often has the same
 * sender, and then needs no look-up.
 */
struct mmc_heard {
	uint32_t source; /* the sender heard last; MMC_PEER_NONE: none */
	uint32_t chain;	 /* its chain; valid once the operation has begun */
	uint32_t turn;	 /* its turn; valid once the operation has begun */
	/* Valid unless it is NULL or has another turn by now. */
	struct mmc_sequence *sequence;
	struct mmc_block block; /* its block */
};

/* The most NAKs kept before all have entered; of others the sender asks again. */
#define MMC_OP_EARLY_MAX 4

/* A question of a child in the tree of reports: how much some ranks have sent. */
struct mmc_op_question {
	uint32_t child;
	uint32_t nmissed;
	uint32_t missed[MMC_SENT_MAX]; /* the ranks that it asks about */
};

struct mmc_op {
	struct mmc_op_config config;
	struct mmc_layout layout;
	struct mmc_block own;
	struct mmc_heard heard;
	enum mmc_op_state state;
	struct mmc_record record;
	struct mmc_barrier entry;
	struct mmc_barrier release;
	struct mmc_parts parts;
	struct mmc_bitmap claimed;  /* chunks that were accepted */
	struct mmc_bitmap present;  /* chunks whose payload is in place */
	struct mmc_landing landing; /* valid if the operation is `partial` */
	struct mmc_schedule schedule;
	struct mmc_repair_state repair;
	struct mmc_watermark watermark;
	struct mmc_turn turn;
	struct mmc_mender *mender;   /* NULL: no code was asked for */
	struct mmc_pooling *pooling; /* likewise */
	uint32_t ncoded; /* groups of this rank's block whose parity was sent */
	uint8_t *schedule_memory;
	uint8_t *watermark_memory;
	uint8_t *landing_memory;
	uint32_t npresent;   /* how many chunks are present */
	uint32_t nplacing;   /* chunks claimed and not yet present */
	uint32_t nsending;   /* chunks handed out and not yet sent */
	bool follows_placed; /* mmc_op_follows_placed() */
	enum mmc_op_mode mode;
	enum mmc_op_holding holding;
	bool left_told;	 /* the left neighbour knows that this rank is done */
	bool right_done; /* the right neighbour has said that it is done */
	uint8_t alarms;	 /* how often a failure is still to be multicast */
	struct mmc_backoff asking; /* when to ask the awaited rank next */
	/* A rank for which the awaited one waits, as it says; MMC_PEER_NONE: none. */
	uint32_t unentered;
	uint64_t advanced_ns; /* when the operation last advanced (due.h) */
	uint64_t due_ns;      /* when something is due (due.h) */
	bool sends;	      /* the turn goes on at the next poll */
	/* NAKs of ranks that knew before this one that all had entered. */
	struct mmc_nak early[MMC_OP_EARLY_MAX];
	uint32_t nearly; /* how many of `early` are in use */
	struct mmc_op_question questions[MMC_WATERMARK_FAN_IN];
	uint32_t nquestions;
	/* The root asks for all ranks how much this one has sent. */
	bool summoned;
	struct mmc_liveness liveness;
	uint64_t stage_ns;   /* when the stage began that the counters time */
	uint64_t entered_ns; /* when this rank entered; known with a code */
	/* When the first chunk of another rank arrived, known with a code; 0: not yet. */
	uint64_t first_ns;
};

/*
 * Returns the bytes of memory that an operation takes; 0 if its ranks, blocks and
 * chunks are not possible.
 */
size_t mmc_op_footprint(const struct mmc_op_config *config);

/* Returns the most bytes that a copy takes which serves others (MMC_ACTION_DONE). */
uint64_t mmc_op_copy_bytes(const struct mmc_op_config *config);

/*
 * Enters an operation, and returns it. It takes `memory`, mmc_op_footprint() long and
 * aligned to MMC_ALIGN_BYTES. This rank's block counts as present from the start.
 */
struct mmc_op *mmc_op_init(void *memory, const struct mmc_op_config *config,
			   uint64_t now_ns);

enum mmc_verdict {
	/* Place the payload, then call mmc_op_on_placed(). */
	MMC_VERDICT_PLACE,
	MMC_VERDICT_DUPLICATE, /* drop it: the chunk is claimed already */
	MMC_VERDICT_FOREIGN,   /* drop it: the sender must not send this */
};

/*
 * Takes a datagram of `source` that carries `payload_bytes` of the chunk which its
 * header's `index` names. Returns what to do with it. If that is to place it, the chunk
 * is claimed.
 */
enum mmc_verdict mmc_op_on_chunk(struct mmc_op *op, uint32_t source,
				 uint32_t index, size_t payload_bytes,
				 uint64_t now_ns);

/* Records that the payload of `chunk` is in its place, as a verdict asked for. */
void mmc_op_on_placed(struct mmc_op *op, uint32_t chunk);

/*
 * Takes datagrams of `source` that carry the chunks of `run`, at least one, all sent for
 * the first time. Each is full, except that the last carries `last_bytes`. Returns true
 * if all are to be placed, and are claimed. Otherwise claims none: each is to be passed
 * to mmc_op_on_chunk().
 */
bool mmc_op_on_run(struct mmc_op *op, uint32_t source, struct mmc_run run,
		   size_t last_bytes, uint64_t now_ns);

/* Records that the payloads of a run, as mmc_op_on_run() took it, are in their places. */
void mmc_op_on_run_placed(struct mmc_op *op, struct mmc_run run);

/* Records that `nchunks` chunks of SEND and PARITY actions are no longer read. */
void mmc_op_on_sent(struct mmc_op *op, uint32_t nchunks);

/*
 * Records that the action READ_MAP of `words` has ended. `bytes` holds the words, then
 * the generation, in the neighbour's byte order, which must be that of this rank; NULL
 * if the read has failed.
 */
void mmc_op_on_map(struct mmc_op *op, struct mmc_run words,
		   const uint8_t *bytes, uint64_t now_ns);

/*
 * Records that the action READ of `run` has ended. `generation` is the one that was
 * read last, or 0 if the read has failed. Returns whether the chunks may be used; each
 * must then be passed to mmc_op_on_fetched().
 */
bool mmc_op_on_read(struct mmc_op *op, struct mmc_run run, uint64_t generation);

/*
 * Takes `chunk`, which a read has brought. Returns what to do with it, as
 * mmc_op_on_chunk() does.
 */
enum mmc_verdict mmc_op_on_fetched(struct mmc_op *op, uint32_t chunk,
				   uint64_t now_ns);

/*
 * Records that the action REGISTER has ended. `readable` is NULL if the neighbour cannot
 * be let read.
 */
void mmc_op_registered(struct mmc_op *op, const struct mmc_readable *readable);

/*
 * Takes a control message of `source` about this epoch. If it has a stamp, the caller
 * must see that it is answered.
 */
void mmc_op_on_message(struct mmc_op *op, uint32_t source,
		       const struct mmc_message *message, uint64_t now_ns);

/*
 * Fails the operation, unless it has ended for the user. One that has all its data
 * completes all the same. With `tell`, the other ranks are told of the failure.
 */
void mmc_op_fail(struct mmc_op *op, enum mmc_error error, uint32_t culprit,
		 bool tell);

/* Records that the transport has found that the process of `peer` exists. */
void mmc_op_on_alive(struct mmc_op *op, uint32_t peer);

/*
 * Records that the transport has found that the process of `peer` has ended. If the
 * operation awaits `peer` and hears nothing of it, it fails.
 */
void mmc_op_on_gone(struct mmc_op *op, uint32_t peer);

/* Returns whether the awaited rank exists, but has not answered for some seconds. */
bool mmc_op_awaits_late(const struct mmc_op *op);

/*
 * Clears the generation: reads of this rank's memory that have not ended yet bring
 * nothing of use.
 */
void mmc_op_close_advert(struct mmc_op *op);

/* Records that all ranks are done, as the barrier of a later operation has told. */
void mmc_op_all_done(struct mmc_op *op);

/* Adds to `actions` what is due now, as far as there is room. */
void mmc_op_poll(struct mmc_op *op, uint64_t now_ns,
		 struct mmc_actions *actions);

/*
 * Goes on with this rank's turn, as mmc_op_poll() does. Returns whether that added a
 * batch of chunks.
 */
bool mmc_op_poll_turn(struct mmc_op *op, uint64_t now_ns,
		      struct mmc_actions *actions);

/* Returns when to poll again although nothing arrives. */
uint64_t mmc_op_deadline(const struct mmc_op *op);

/*
 * Returns whether all ranks are known to have entered. The fields schedule, repair,
 * watermark and turn are valid only then.
 */
static inline bool mmc_op_has_begun(const struct mmc_op *op)
{
	return op->state != MMC_OP_ENTRY && op->state != MMC_OP_REFUSED;
}

/* Returns whether DONE or FAILED was handed out: the buffers are the user's again. */
static inline bool mmc_op_is_reported(const struct mmc_op *op)
{
	return op->holding != MMC_OP_BUFFERS;
}

/* Returns whether others are served from a copy of this rank's block. */
static inline bool mmc_op_has_copy(const struct mmc_op *op)
{
	return op->state == MMC_OP_COPIED || op->state == MMC_OP_HELPING;
}

/* Returns whether all ranks heard of so far have started the same operation. */
static inline bool mmc_op_is_agreed(const struct mmc_op *op)
{
	return op->record.terms.signature_min == op->record.terms.signature_max;
}

/* Returns the rank that is awaited first, or MMC_PEER_NONE for none in particular. */
uint32_t mmc_op_awaited(const struct mmc_op *op);

/* Return the left and the right neighbour of this rank in the ring. */
static inline uint32_t mmc_op_left(const struct mmc_op *op)
{
	return (op->config.rank + op->config.nranks - 1) % op->config.nranks;
}

static inline uint32_t mmc_op_right(const struct mmc_op *op)
{
	return (op->config.rank + 1) % op->config.nranks;
}

/*
 * Returns a rank that has not entered and holds this one up, or MMC_PEER_NONE: the
 * awaited rank or, if that has entered, the one that it names.
 */
uint32_t mmc_op_unentered(const struct mmc_op *op);

/* Serves the NAKs that arrived before the operation had begun here. */
void mmc_op_serve_early(struct mmc_op *op, uint64_t now_ns);

/* Takes `event`, which the table must allow in the current state. */
void mmc_op_step(struct mmc_op *op, enum mmc_op_event event);

/* Sets when to ask the awaited rank: soon, then ever more rarely. */
void mmc_op_ask_soon(struct mmc_op *op, uint64_t now_ns);

/* Returns the name of a state, for logs and tests. */
const char *mmc_op_state_name(enum mmc_op_state state);

/*
 * Looks up where `event` leads from `state`. Returns true with that state in `*next`,
 * or false with `state` in it if the table has no such row.
 */
bool mmc_op_next_state(enum mmc_op_state state, enum mmc_op_event event,
		       enum mmc_op_state *next);

#endif
