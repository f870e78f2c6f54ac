/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One operation as a state machine: the blocks of some ranks go to all of them. Events
 * go in (a chunk has arrived, has been placed, or has been sent; a message has arrived;
 * time has passed) and batches of actions come out. It never sees payload, sockets, a
 * clock or an allocator.
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
#include "core/repair/repair.h"

enum mmc_op_state {
	MMC_OP_ENTRY,	/* waits until all ranks have entered */
	MMC_OP_FLOW,	/* chunks are multicast and repaired */
	MMC_OP_RELEASE, /* complete; others may need this rank's buffers */
	/* Complete for the user, as all states below but the failures. */
	MMC_OP_COPIED,	 /* a copy of this rank's block serves others */
	MMC_OP_HELPING,	 /* the same; some rank waits in the release barrier */
	MMC_OP_DETACHED, /* no rank needs this one's block */
	MMC_OP_CLOSED,	 /* no rank needs the operation any more */
	MMC_OP_FAILED,
	MMC_OP_REFUSED, /* failed before all had entered */
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
	MMC_OP_ALL_ENTERED,
	MMC_OP_COMPLETE, /* every chunk is present, none in flight */
	/* COMPLETE, with a copy of a small block, as on all ranks. */
	MMC_OP_COMPLETE_WITH_COPY,
	/* COMPLETE, with a copy of a small block; larger blocks have none. */
	MMC_OP_COMPLETE_AHEAD,
	MMC_OP_RIGHT_DONE, /* no rank depends on this one's buffers */
	MMC_OP_ALL_DONE,   /* all ranks are done, by this or a later barrier */
	MMC_OP_FAILURE,	   /* this or another rank has failed */
};

/* How this rank's block reaches the others. */
enum mmc_op_mode {
	MMC_OP_STAGED,	/* by multicast, in turns */
	MMC_OP_EAGER,	/* by multicast, before all have entered */
	MMC_OP_UNICAST, /* from neighbour to neighbour: some rank is deaf */
};

/* What an operation still holds, from all to nothing. */
enum mmc_op_holding {
	MMC_OP_BUFFERS, /* the user's buffers and its own memory */
	MMC_OP_MEMORY,	/* its end was reported: only its own memory */
	MMC_OP_NOTHING, /* CLOSED was handed out */
};

struct mmc_op_config {
	uint64_t channel;
	uint32_t epoch;
	uint32_t rank;
	uint32_t nranks;
	uint64_t signature; /* kind and sizes; equal on all ranks */
	/*
	 * The size of each rank's block; with `sole`, of `root`'s, while the other
	 * ranks have none. If `blocks_bytes` is not NULL, it holds the size of each
	 * rank's block instead: only mmc_op_footprint() and mmc_op_init() read it.
	 */
	uint64_t block_bytes;
	const uint64_t *blocks_bytes; /* [nranks] sizes */
	bool sole;
	uint32_t root;
	uint32_t chunk_bytes;
	uint32_t nchains;      /* or MMC_CHAINS_AUTO */
	uint32_t window_bytes; /* capacity of this rank's buffers */
	uint32_t source_bytes; /* their capacity for a single sender */
	/* Up to this total, chunks are sent before the entry barrier. */
	uint64_t eager_bytes;
	/* Up to this block size, a copy serves repairs. */
	uint64_t retain_bytes;
	/* Epochs back to the last one that is done on this rank. */
	uint32_t lag_epochs;
	enum mmc_repair repair;
	bool reliable; /* messages are rarely lost: a silent partner is late */
	uint32_t batch_chunks; /* chunks sent in one go, if more than usual */
	/* The most that one read of others' memory brings. */
	uint32_t read_bytes;
	/*
	 * The memory that others may read here. Its map address is the address of the
	 * operation's memory; the place of the bitmap in it is added by mmc_op_init().
	 */
	struct mmc_advert advert;
	uint64_t timeout_ns;
	uint64_t entry_timeout_ns; /* 0: none */
	uint64_t late_timeout_ns;  /* for a rank that exists; 0: none */
	bool inquires;	 /* the transport can tell whether a rank exists */
	bool unattended; /* ranks answer in their own calls only */
	uint64_t seed;
	struct mmc_path *path;	       /* outlives the operation */
	struct mmc_counters *counters; /* outlive the operation */
};

/* The block of the rank heard last, cached since the next chunk is often of it too. */
struct mmc_heard {
	uint32_t source; /* MMC_PEER_ALL: none */
	uint32_t chain;	 /* valid once the operation has begun */
	uint32_t turn;	 /* in its chain, once the operation has begun */
	/* NULL, or reused for another turn: check it. */
	struct mmc_sequence *sequence;
	struct mmc_block block;
};

/* The requests kept until this rank can serve them; a further one is sent again. */
#define MMC_OP_EARLY_MAX 4

/* The senders that a child in the tree of reports misses. */
struct mmc_op_question {
	uint32_t child;
	uint32_t nmissed;
	uint32_t missed[MMC_SENT_MAX];
};

struct mmc_op {
	struct mmc_op_config config;
	struct mmc_layout layout;
	struct mmc_block own; /* this rank's block */
	struct mmc_heard heard;
	enum mmc_op_state state;
	struct mmc_record record;
	struct mmc_barrier entry;
	struct mmc_barrier release;
	struct mmc_bitmap claimed;
	struct mmc_bitmap present;
	struct mmc_schedule schedule;
	struct mmc_repair_state repair;
	struct mmc_watermark watermark;
	struct mmc_turn turn;
	uint8_t *schedule_memory;
	uint8_t *watermark_memory;
	uint32_t npresent;
	uint32_t nplacing; /* placements in flight */
	uint32_t nsending; /* chunks handed out and not yet sent */
	enum mmc_op_mode mode;
	enum mmc_op_holding holding;
	bool left_told; /* this rank told its left neighbour that it is done */
	bool right_done;
	uint8_t alarms; /* multicasts of a failure that are still due */
	struct mmc_backoff asking; /* questions to the awaited rank */
	/* The rank that the awaited rank says it waits for, or MMC_PEER_ALL. */
	uint32_t late;
	bool renewed; /* news arrived: waits begin anew at the next poll */
	/* NAKs of ranks that knew before this one that all have entered. */
	struct mmc_nak early[MMC_OP_EARLY_MAX];
	uint32_t nearly;
	struct mmc_op_question questions[MMC_WATERMARK_FAN_IN];
	uint32_t nquestions;
	/* The root asks, for all ranks, how much this rank has sent. */
	bool summoned;
	struct mmc_liveness liveness;
	uint64_t stage_ns; /* when this stage of the counters began */
};

/*
 * Returns the bytes of memory that an operation of this shape takes; 0 if it is
 * invalid.
 */
size_t mmc_op_footprint(const struct mmc_op_config *config);

/*
 * Enters an operation in `memory`, mmc_op_footprint() long and aligned to 16. This
 * rank's block counts as present.
 */
struct mmc_op *mmc_op_init(void *memory, const struct mmc_op_config *config,
			   uint64_t now_ns);

enum mmc_verdict {
	MMC_VERDICT_PLACE, /* place the payload, then call mmc_op_on_placed() */
	MMC_VERDICT_DUPLICATE, /* the chunk is here already: drop it */
	MMC_VERDICT_FOREIGN,   /* the sender may not send this: drop it */
};

/*
 * Takes a datagram of `source` with `payload_bytes` of the chunk that the header's
 * `index` names. The chunk is claimed if the verdict is to place it.
 */
enum mmc_verdict mmc_op_on_chunk(struct mmc_op *op, uint32_t source,
				 uint32_t index, size_t payload_bytes,
				 uint64_t now_ns);

/* Records that the payload of `chunk`, which a verdict had placed, is in its place. */
void mmc_op_on_placed(struct mmc_op *op, uint32_t chunk);

/* Records that the network no longer reads `nchunks` of the SEND actions. */
void mmc_op_on_sent(struct mmc_op *op, uint32_t nchunks);

/*
 * Takes the end of the READ_MAP of `words`: `bytes` holds the words, then the
 * generation, in the neighbour's byte order, which is the same as this rank's; NULL if
 * the read has failed.
 */
void mmc_op_on_map(struct mmc_op *op, struct mmc_run words,
		   const uint8_t *bytes, uint64_t now_ns);

/*
 * Takes the end of the READ of `run`: `generation` is the value read last; 0 if the
 * read has failed. Returns whether its chunks may be used; each is then passed to
 * mmc_op_on_fetched().
 */
bool mmc_op_on_read(struct mmc_op *op, struct mmc_run run, uint64_t generation);

/*
 * Takes `chunk`, which a read has brought. The chunk is claimed if the verdict is to
 * place it, as in mmc_op_on_chunk().
 */
enum mmc_verdict mmc_op_on_fetched(struct mmc_op *op, uint32_t chunk,
				   uint64_t now_ns);

/*
 * Takes the end of the REGISTER: others may read all blocks at `address` with `key`;
 * with `ok` false, the memory cannot be registered.
 */
void mmc_op_registered(struct mmc_op *op, bool ok, uint64_t address,
		       uint32_t key);

/*
 * Takes a control message of `source` about this epoch. The caller answers its stamp,
 * if it has one.
 */
void mmc_op_on_message(struct mmc_op *op, uint32_t source,
		       const struct mmc_message *message, uint64_t now_ns);

/*
 * Fails the operation; with `tell`, on all other ranks too. A rank that has all its
 * data already finishes it all the same.
 */
void mmc_op_fail(struct mmc_op *op, enum mmc_error error, uint32_t culprit,
		 bool tell);

/* Records that the transport found the process of `peer` to exist. */
void mmc_op_on_alive(struct mmc_op *op, uint32_t peer);

/*
 * Records that the transport found the process of `peer` to have ended: an operation
 * that awaits `peer` fails.
 */
void mmc_op_on_gone(struct mmc_op *op, uint32_t peer);

/* Returns whether the awaited rank exists and has not answered for some seconds. */
bool mmc_op_awaits_late(const struct mmc_op *op);

/*
 * Clears the generation: reads of this rank's memory that have not ended will be of no
 * use.
 */
void mmc_op_close_advert(struct mmc_op *op);

/* Records that all ranks are done, as a later operation's barrier has said. */
void mmc_op_all_done(struct mmc_op *op);

/* Adds the actions that are due to `actions`, as far as there is room. */
void mmc_op_poll(struct mmc_op *op, uint64_t now_ns,
		 struct mmc_actions *actions);

/* Returns when to poll again although nothing arrives. */
uint64_t mmc_op_deadline(const struct mmc_op *op);

/*
 * Returns whether all ranks are known to have entered: schedule, repair, watermark and
 * turn are valid.
 */
static inline bool mmc_op_has_begun(const struct mmc_op *op)
{
	return op->state != MMC_OP_ENTRY && op->state != MMC_OP_REFUSED;
}

/* Returns whether its end was reported: the buffers are the user's again. */
static inline bool mmc_op_is_reported(const struct mmc_op *op)
{
	return op->holding != MMC_OP_BUFFERS;
}

/* Returns whether a copy of this rank's block serves others. */
static inline bool mmc_op_has_copy(const struct mmc_op *op)
{
	return op->state == MMC_OP_COPIED || op->state == MMC_OP_HELPING;
}

/* Returns the rank that is waited for first, or MMC_PEER_ALL for none in particular. */
uint32_t mmc_op_awaited(const struct mmc_op *op);

static inline uint32_t mmc_op_left(const struct mmc_op *op)
{
	return (op->config.rank + op->config.nranks - 1) % op->config.nranks;
}

static inline uint32_t mmc_op_right(const struct mmc_op *op)
{
	return (op->config.rank + 1) % op->config.nranks;
}

/*
 * Returns a rank that has not entered and keeps this one waiting, or MMC_PEER_ALL.
 * Where this rank does not await it directly, it is the rank that others have named.
 */
uint32_t mmc_op_late(const struct mmc_op *op);

/* Serves the requests that arrived before the operation had begun here. */
void mmc_op_serve_early(struct mmc_op *op, uint64_t now_ns);

/* Takes `event`, which the table must allow in the present state. */
void mmc_op_step(struct mmc_op *op, enum mmc_op_event event);

/* Asks the awaited rank soon, then ever more rarely. */
void mmc_op_ask_soon(struct mmc_op *op, uint64_t now_ns);

/* Records that something new has arrived, which makes all waits begin anew. */
static inline void mmc_op_renew(struct mmc_op *op)
{
	op->renewed = true;
}

/* Returns the name of a state. */
const char *mmc_op_state_name(enum mmc_op_state state);

/* Returns whether `event` leads anywhere from `state`; if so, writes where. */
bool mmc_op_next_state(enum mmc_op_state state, enum mmc_op_event event,
		       enum mmc_op_state *next);

#endif
