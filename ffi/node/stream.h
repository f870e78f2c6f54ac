/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node stream. Its memory in the segment is a head, a line for each member, and the
 * slots; piece number k takes slot k modulo their number. A member *fills* a piece when
 * it puts its part into the slot, or says that it has none; the leader of its rail
 * *forwards* it, which puts the other nodes' parts there; a member *reads* it when it
 * copies out what it needs. A slot is free for a later piece once all members have read
 * it.
 *
 * What this process holds of the stream belongs to the holder of its mutex.
 */
#ifndef MMC_NODE_STREAM_H
#define MMC_NODE_STREAM_H

#include <pthread.h>

#include "node/cursor.h"
#include "node/pieces.h"
#include "node/segment.h"

/* What members say of the operation that they fill pieces of. */
struct mmc_node_words {
	uint32_t kind;
	uint32_t root;
	uint64_t block_bytes;
};

/* One member's line, which this member alone writes. */
struct mmc_node_line {
	alignas(64) struct mmc_cursor filled; /* pieces filled */
	_Atomic uint32_t left; /* whether it starts no more operations */
	uint32_t digests[MMC_NODE_SLOTS_MAX]; /* of the operation, by slot */
	struct mmc_node_words
		words[MMC_NODE_SLOTS_MAX];    /* the same, for messages */
	uint64_t adverts[MMC_NODE_SLOTS_MAX]; /* see node/cross.h */
	alignas(64) struct mmc_cursor read;   /* pieces read */
};

/* One rail's line, which its leader on this node alone writes. */
struct mmc_node_rail {
	/*
	 * All pieces below it that the rail carries are whole here. Those of other
	 * rails count as well, so that a piece has the same number on all of them.
	 */
	alignas(64) struct mmc_cursor arrived;
};

/* Whether a stream's head holds a failure. */
enum mmc_node_failing {
	MMC_NODE_WELL,
	MMC_NODE_FAILING, /* a member is writing it */
	MMC_NODE_FAILED,
};

/* The head of a stream's memory. */
struct mmc_node_stream_head {
	struct mmc_node_rail rails[MMC_NODE_RAILS_MAX];
	alignas(64) _Atomic uint32_t nattended; /* members with `notifies` */
	_Atomic uint32_t failing;		/* enum mmc_node_failing */
	struct mmc_failure
		failure; /* the first member's to fail; read once FAILED */
};

/* Which rank is where. */
struct mmc_node_map {
	uint32_t nranks;
	uint32_t nnodes;
	uint32_t *nodes;   /* [nranks]: each rank's node */
	uint32_t *order;   /* [nranks]: all ranks, node by node */
	uint32_t *firsts;  /* [nnodes + 1]: where each node begins in `order` */
	uint32_t *leaders; /* [nrails][nnodes]: ranks */
};

struct mmc_node_tracing;

#define MMC_NODE_REASON_SIZE 512

struct mmc_node_stream {
	struct mmc_node *node;
	pthread_mutex_t mutex;
	struct mmc_node_stream_head *head;
	struct mmc_node_line *lines; /* [nmembers] */
	uint8_t *slots;
	struct mmc_node_stream_options options; /* its tables are in `map` */
	struct mmc_node_map map;
	uint64_t *places; /* [nranks]: scratch for where a piece's parts lie */
	uint64_t *
		nodes_bytes; /* [nnodes]: scratch for the length of its parts */
	uint64_t *nodes_offsets; /* [nnodes]: scratch for where they begin */
	uint32_t member;	 /* this rank's number on its node */
	uint32_t leaders[MMC_NODE_RAILS_MAX]; /* each rail's, by member */
	uint32_t rail;	     /* on node leaders: which they lead */
	uint32_t next_piece; /* the first that belongs to no operation yet */
	uint32_t next_rail;  /* which carries the next operation's first */
	uint32_t nfilled;    /* this member's cursors, as in shared memory */
	/* On node leaders: pieces that are being forwarded, or are others' matter. */
	uint32_t nforwarded;
	uint32_t narrived; /* on node leaders: those of them that are whole */
	uint32_t nread;
	uint32_t nfree; /* pieces below this may be filled */
	uint32_t epoch; /* the number of the latest operation */
	/* What a caller slept for last: to look for it again without sleep is vain. */
	struct mmc_cursor *slept_for;
	uint32_t slept_at;
	uint64_t cross_bytes_min; /* 0: no operation uses cross reads */
	bool left;
	bool waits_between; /* a thread waits for the oldest of `forwarded` */
	struct mmc_request
		*forwarded[MMC_NODE_SLOTS_MAX]; /* by slot; or NULL */
	struct mmc_node_request *first;		/* in flight, in order */
	struct mmc_node_request *last; /* valid while `first` is not NULL */
	struct mmc_node_request *spares;
	struct mmc_failure failure; /* adopted from the head; 0: none */
	/* The engine's sentence about a failure that this leader has seen; else "". */
	char reason[MMC_NODE_REASON_SIZE];
	struct mmc_node_counts counts;
	struct mmc_node_tracing *tracing; /* NULL: the stream is not traced */
};

/* Returns the slot of a piece. */
static inline uint8_t *mmc_node_slot(const struct mmc_node_stream *stream,
				     uint32_t piece)
{
	return stream->slots +
	       piece % stream->options.nslots * stream->options.slot_bytes;
}

/* Returns whether this rank exchanges its node's pieces with other nodes. */
static inline bool mmc_node_leads(const struct mmc_node_stream *stream)
{
	return stream->options.between != NULL;
}

/* Returns the leaders of all nodes on this node leader's rail. */
static inline const uint32_t *
mmc_node_peers(const struct mmc_node_stream *stream)
{
	return stream->map.leaders + (size_t)stream->rail * stream->map.nnodes;
}

/* Returns the ranks of this node, by member. */
static inline const uint32_t *
mmc_node_members(const struct mmc_node_stream *stream)
{
	uint32_t node = stream->map.nodes[stream->options.rank];

	return stream->map.order + stream->map.firsts[node];
}

/* Rings for the members that have requests which no caller waits for. */
void mmc_node_ring_attended(struct mmc_node_stream *stream);

#endif
