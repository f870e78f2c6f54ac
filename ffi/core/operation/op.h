/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One operation as a state machine: blocks of some ranks go to all of them. Events go in (a chunk has come, has been
 * placed, has been sent; a message has come; time has passed), batches of
 * actions come out. It never sees payload, sockets, a clock or an allocator.
 *
 * The states, with what leads from one to the next, stand in MMC_OP_TABLE.
 */
#ifndef MMC_CORE_OPERATION_OP_H
#define MMC_CORE_OPERATION_OP_H

#include "core/barrier/barrier.h"
#include "core/barrier/liveness.h"
#include "core/counters.h"
#include "core/flow/turn.h"
#include "core/operation/action.h"
#include "core/repair/fetcher.h"
#include "core/repair/repairer.h"

enum mmc_op_state {
	MMC_OP_ENTRY,	/* waits until all have entered */
	MMC_OP_FLOW,	/* chunks are multicast and repaired */
	MMC_OP_RELEASE, /* complete; others may still need this rank's buffers */
	MMC_OP_RETAINED, /* over for the user; helps the others */
	MMC_OP_CLOSED,	 /* over for everybody */
	MMC_OP_FAILED,
};

/* X(state, event, next state) */
#define MMC_OP_TABLE(X)                                                        \
	X(ENTRY, ALL_ENTERED, FLOW)                                            \
	X(ENTRY, FAILURE, FAILED)                                              \
	X(FLOW, COMPLETE, RELEASE)                                             \
	X(FLOW, COMPLETE_WITH_COPY, RETAINED)                                  \
	X(FLOW, FAILURE, FAILED)                                               \
	X(RELEASE, ALL_DONE, CLOSED)                                           \
	X(RELEASE, RIGHT_DONE, RETAINED)                                       \
	X(RELEASE, FAILURE, CLOSED)                                            \
	X(RETAINED, ALL_DONE, CLOSED)

enum mmc_op_event {
	MMC_OP_ALL_ENTERED,
	MMC_OP_COMPLETE,	   /* every chunk present, none in flight */
	MMC_OP_COMPLETE_WITH_COPY, /* likewise, and the block is small */
	MMC_OP_RIGHT_DONE,	   /* nobody depends on this rank's buffers */
	MMC_OP_ALL_DONE, /* the release barrier or a later one says so */
	MMC_OP_FAILURE,	 /* of this or another rank */
};

struct mmc_op_config {
	uint64_t channel;
	uint32_t epoch;
	uint32_t rank;
	uint32_t nranks;
	uint64_t signature; /* of kind and sizes; equal on all ranks */
	/*
	 * Each rank's block; with `sole` that of `root`, while others have none.
	 * Where `blocks_bytes` is not NULL it holds each rank's instead: it is
	 * read by mmc_op_footprint() and mmc_op_init() only.
	 */
	uint64_t block_bytes;
	const uint64_t *blocks_bytes; /* [nranks] */
	bool sole;
	uint32_t root;
	uint32_t chunk_bytes;
	uint32_t nchains;      /* or MMC_CHAINS_AUTO */
	uint32_t window_bytes; /* that this rank's buffers hold */
	uint32_t source_bytes; /* that they hold of a single sender */
	uint64_t eager_bytes; /* total up to which chunks precede the barrier */
	uint64_t retain_bytes; /* block up to which a copy serves repairs */
	uint32_t lag_epochs;   /* behind the oldest that is not done here */
	enum mmc_repair repair;
	bool reliable; /* messages are rarely lost: a silent partner is late */
	uint32_t batch_chunks; /* that are sent in one go, if more than usual */
	uint32_t
		read_bytes; /* that one read of others' memory brings at most */
	/*
	 * What others may read here. The map's address is that of the
	 * operation's memory, where its bitmap is found by itself.
	 */
	struct mmc_advert advert;
	uint64_t timeout_ns;
	uint64_t entry_timeout_ns; /* 0: none */
	uint64_t late_timeout_ns;  /* for a rank that exists; 0: none */
	bool inquires;	 /* the transport can tell whether a rank exists */
	bool unattended; /* ranks answer in their own calls only */
	uint64_t seed;
	struct mmc_path *path;	       /* outlives the operation */
	struct mmc_counters *counters; /* likewise */
};

/* Where the chunks of the rank heard last belong: the next is often its too. */
struct mmc_heard {
	uint32_t source; /* MMC_PEER_ALL: none */
	uint32_t chain;	 /* of that rank, once the operation has begun */
	uint32_t turn;	 /* of that rank in its chain, once it has begun */
	struct mmc_sequence
		*sequence; /* NULL, or another's by now: look it up */
	struct mmc_block block;
};

/* Requests that are kept until this rank can serve; a further one comes again. */
#define MMC_OP_EARLY_MAX 4

/* A NAK, direct or not, of a rank that knew sooner that all have entered. */
struct mmc_early_ask {
	uint32_t source;
	bool direct;
	uint32_t nruns;
	struct mmc_run runs[MMC_RUNS_MAX];
};

/* The senders that a child in the tree of reports misses. */
struct mmc_op_question {
	uint32_t child;
	uint32_t nmissed;
	uint32_t missed[MMC_SENT_MAX];
};

struct mmc_op {
	struct mmc_op_config config;
	struct mmc_layout layout;
	struct mmc_block own; /* the block of this rank */
	struct mmc_heard heard;
	const struct mmc_repair_strategy *strategy;
	enum mmc_op_state state;
	struct mmc_record record;
	struct mmc_barrier entry;
	struct mmc_barrier release;
	struct mmc_bitmap claimed;
	struct mmc_bitmap present;
	struct mmc_schedule schedule;
	struct mmc_loss loss;
	struct mmc_repairer repairer;
	struct mmc_watermark watermark;
	struct mmc_turn turn;
	struct mmc_fetcher fetcher;
	struct mmc_advert advert;
	uint64_t *generation; /* as others read it; NULL if they do not */
	uint8_t *schedule_memory;
	uint8_t *repairer_memory;
	uint8_t *watermark_memory;
	uint32_t npresent;
	uint32_t nplacing; /* placements in flight */
	uint32_t nsending; /* chunks handed out and not yet sent */
	uint32_t nlost;	   /* chunks that had to be asked for */
	bool eager;
	bool unicast; /* nothing is multicast: neighbours are asked */
	bool begun;   /* schedule, loss, repairer, watermark, turn are valid */
	bool copied;  /* a copy of the own block serves repairs */
	bool releases_by_barrier; /* since not every rank has a copy */
	bool reported;		  /* DONE or FAILED has been handed out */
	bool closed;		  /* CLOSED has */
	bool left_told; /* the left neighbour, that this rank is done */
	bool left_done;
	bool right_done;
	bool advert_asked; /* the right neighbour wants to know what to read */
	bool registering;  /* REGISTER has been handed out and not answered */
	bool registration_ended; /* REGISTER has been answered */
	uint8_t alarms; /* multicasts of a failure that are still due */
	struct mmc_backoff asking; /* the awaited rank */
	uint32_t late; /* whom that one waits for, as it said; or all ones */
	bool renewed;  /* news came: waits begin anew at the next poll */
	struct mmc_early_ask early[MMC_OP_EARLY_MAX];
	uint32_t nearly;
	struct mmc_op_question questions[MMC_WATERMARK_FAN_IN];
	uint32_t nquestions;
	bool summoned; /* the root asks, for all, how much has been sent */
	struct mmc_liveness liveness;
	uint64_t stage_ns; /* when the present stage of the counters began */
};

/* The memory that an operation of this shape takes, in bytes; 0 if invalid. */
size_t mmc_op_footprint(const struct mmc_op_config *config);

/*
 * Enters an operation in `memory`, mmc_op_footprint() long and aligned to 16.
 * The own block counts as present.
 */
struct mmc_op *mmc_op_init(void *memory, const struct mmc_op_config *config,
			   uint64_t now_ns);

enum mmc_verdict {
	MMC_VERDICT_PLACE,     /* place the payload, then mmc_op_on_placed() */
	MMC_VERDICT_DUPLICATE, /* it is here already: drop it */
	MMC_VERDICT_FOREIGN,   /* not what this sender may send: drop it */
};

/*
 * A datagram of `source` brings `payload_bytes` of the chunk that `index`, the
 * header's, names. The place is claimed if the verdict is to place it.
 */
enum mmc_verdict mmc_op_on_chunk(struct mmc_op *op, uint32_t source,
				 uint32_t index, size_t payload_bytes,
				 uint64_t now_ns);

/* The payload of `chunk`, which a verdict had placed, is in its place. */
void mmc_op_on_placed(struct mmc_op *op, uint32_t chunk);

/* `nchunks` of the SEND actions are no longer read. */
void mmc_op_on_sent(struct mmc_op *op, uint32_t nchunks);

/*
 * The READ_MAP of `words` is over: `bytes` holds the words, then the generation,
 * in the neighbour's byte order, which is ours; NULL if it has failed.
 */
void mmc_op_on_map(struct mmc_op *op, struct mmc_run words,
		   const uint8_t *bytes, uint64_t now_ns);

/*
 * The READ of `run` is over, and `generation` was read last; 0 if it has failed.
 * Returns whether its chunks may be used, which are then fetched one by one.
 */
bool mmc_op_on_read(struct mmc_op *op, struct mmc_run run, uint64_t generation);

/*
 * A read has brought `chunk`. The place is claimed if the verdict is to place
 * it, as in mmc_op_on_chunk().
 */
enum mmc_verdict mmc_op_on_fetched(struct mmc_op *op, uint32_t chunk,
				   uint64_t now_ns);

/*
 * The REGISTER is carried out: others read all blocks at `address` with `key`; or,
 * with `ok` false, it cannot be.
 */
void mmc_op_registered(struct mmc_op *op, bool ok, uint64_t address,
		       uint32_t key);

/*
 * A control message of `source` about this epoch has come. Its stamp, if it has
 * one, is answered by the caller.
 */
void mmc_op_on_message(struct mmc_op *op, uint32_t source,
		       const struct mmc_message *message, uint64_t now_ns);

/*
 * Gives the operation up; with `tell` on all other ranks too. Who has all its
 * data already finishes it all the same.
 */
void mmc_op_fail(struct mmc_op *op, enum mmc_error error, uint32_t culprit,
		 bool tell);

/* The transport has found that the process of `peer` exists. */
void mmc_op_on_alive(struct mmc_op *op, uint32_t peer);

/* The transport has found that it has ended: who awaits it fails. */
void mmc_op_on_gone(struct mmc_op *op, uint32_t peer);

/* Whether the awaited rank exists and has not answered for some seconds. */
bool mmc_op_awaits_late(const struct mmc_op *op);

/* What was read here up to now, and is not over, will be of no use. */
void mmc_op_close_advert(struct mmc_op *op);

/* All ranks are done: a later operation's barrier has said so. */
void mmc_op_all_done(struct mmc_op *op);

/* Adds what is to be done now to `actions`, as far as there is room. */
void mmc_op_poll(struct mmc_op *op, uint64_t now_ns,
		 struct mmc_actions *actions);

/* When to poll again although nothing comes. */
uint64_t mmc_op_deadline(const struct mmc_op *op);

/* Whether all ranks are known to have entered. */
static inline bool mmc_op_entered_by_all(const struct mmc_op *op)
{
	return op->begun;
}

/* The rank that is waited for first, or MMC_PEER_ALL for none in particular. */
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
 * A rank that has not entered although this one has, and keeps it waiting; by
 * what others have told, where it is not awaited directly. MMC_PEER_ALL: none.
 */
uint32_t mmc_op_late(const struct mmc_op *op);

/* Takes the requests that came before the operation had begun here. */
void mmc_op_serve_early(struct mmc_op *op, uint64_t now_ns);

/* Takes `event`, which the table must allow in the present state. */
void mmc_op_step(struct mmc_op *op, enum mmc_op_event event);

/* Asks the rank that a barrier waits for soon, then ever more rarely. */
void mmc_op_ask_soon(struct mmc_op *op, uint64_t now_ns);

/* Takes note that something new has come, which renews all patience. */
static inline void mmc_op_renew(struct mmc_op *op)
{
	op->renewed = true;
}

/* The name of a state. */
const char *mmc_op_state_name(enum mmc_op_state state);

/* Whether `event` leads anywhere from `state`; if so writes where. */
bool mmc_op_next_state(enum mmc_op_state state, enum mmc_op_event event,
		       enum mmc_op_state *next);

#endif
