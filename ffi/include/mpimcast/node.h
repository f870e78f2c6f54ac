/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of one node, which share memory. A segment is memory without a name that one
 * of them has created, and whose descriptor it has passed to the others. Ranks are
 * numbered as members within their node. A node stream is a sequence of operations that
 * all ranks of a communicator start in the same order. Where the communicator has other
 * nodes, each node's leaders exchange the nodes' data: one for each rail, by a stream of
 * the rail's own team, whose ranks are the nodes.
 *
 * Operations are cut into pieces. A piece's result takes one slot of the segment, which
 * each member fills with its part, and from which each member copies the rest. The rails
 * carry the pieces in turn.
 *
 * Any thread may call, but calls on one request must not overlap. In a child of fork()
 * calls return -MMC_EFORKED and change nothing.
 */
#ifndef MPIMCAST_NODE_H
#define MPIMCAST_NODE_H

#include <mpimcast/request.h>
#include <stddef.h>
#include <stdint.h>

struct mmc_node;
struct mmc_node_stream;
struct mmc_node_request;

/* The beginning of a segment, which is the library's own; streams lie behind it. */
#define MMC_NODE_HEAD_BYTES 65536
#define MMC_NODE_MEMBERS_MAX 1023

/* The most slots that a stream may have. Their number is a power of two. */
#define MMC_NODE_SLOTS_MAX 8

/* The most rails that a stream may have. */
#define MMC_NODE_RAILS_MAX 8

/*
 * Maps the segment behind the descriptor `fd`, `nbytes` long, for this rank, which is
 * `member` of `nmembers`. All members must have called this before any creates a
 * stream. From then on the kernel tells the members when this process ends, so no
 * descriptor of the segment but `fd` may ever be closed in this process; `fd` itself
 * is the node's until mmc_node_close(). On failure it is the caller's again. Returns 0;
 * -MMC_EINVAL if an argument is invalid, or the segment is shorter than `nbytes` or not
 * sealed against being cut; -MMC_ENOMEM; or -MMC_EIO.
 */
int mmc_node_open(int fd, uint64_t nbytes, uint32_t member, uint32_t nmembers,
		  struct mmc_node **node);

/* Unmaps the segment and closes its descriptor. Its streams must have been closed. */
void mmc_node_close(struct mmc_node *node);

/*
 * Sleeps until another member has moved a stream that has requests with `notifies`, or
 * until mmc_node_rouse(). `*nrings` is 0 at the first call, and kept between calls: a
 * call returns at once if anything has happened since the last one. Whoever returns
 * must call mmc_node_request_wait() for those requests. Returns 0 or a negative error.
 */
int mmc_node_await(struct mmc_node *node, uint32_t *nrings);

/* Makes a call of mmc_node_await() return: one in progress or, if none is, the next. */
void mmc_node_rouse(struct mmc_node *node);

/* The options of a node stream. All are equal on all members but where it says so. */
struct mmc_node_stream_options {
	uint64_t
		offset_bytes; /* where it begins in the segment; a multiple of 64 */
	uint64_t
		slot_bytes; /* of a slot; equal on all nodes; a multiple of 64 */
	uint32_t
		nslots; /* the pieces that may be under way; equal on all nodes */
	uint32_t rank;	 /* this rank; differs */
	uint32_t nranks; /* of the communicator */
	uint32_t nnodes;
	uint32_t nrails; /* 1 if there are no other nodes */
	/*
	 * [nranks]: the node of each rank, numbered by their first ranks. The members
	 * of a node are numbered in rank order. Not read after the call.
	 */
	const uint32_t *nodes;
	/*
	 * [nrails][nnodes]: the rank that leads each node on each rail. No rank leads
	 * on two rails. Not read after the call.
	 */
	const uint32_t *leaders;
	/*
	 * On node leaders, if there are other nodes, the stream of their rail; NULL on
	 * all other ranks.
	 */
	struct mmc_stream *between;
	/* How long a waiting member looks for news before it sleeps. */
	uint64_t spin_ns;
	/* How long mmc_node_allgather() and mmc_node_bcast() wait; may differ. */
	uint64_t slice_ns;
	/* How long an awaited rank may take to enter; 0: as long as it likes. */
	uint64_t entry_timeout_ns;
	/* How long a rank that has entered may stand still; 0: for ever. */
	uint64_t late_timeout_ns;
};

/* Returns the bytes of a segment that a stream with these options takes. */
uint64_t mmc_node_stream_bytes(uint32_t nmembers, uint32_t nslots,
			       uint64_t slot_bytes);

/*
 * Creates a stream, and writes it to `*stream`. Its memory in the segment must be all
 * zero, and no other stream's. Of a small stream's slots, this member's share comes to lie
 * near the calling thread. Returns 0, -MMC_EINVAL or -MMC_ENOMEM.
 */
int mmc_node_stream_create(struct mmc_node *node,
			   const struct mmc_node_stream_options *options,
			   struct mmc_node_stream **stream);

/*
 * Maps the pages of a small stream; its first operations would otherwise stop at each,
 * and seem slower than they are. All members have created the stream before.
 */
void mmc_node_stream_populate(struct mmc_node_stream *stream);

/*
 * Tries to read a word in the own memory of each member, all of which have opened the
 * node, and thus in any of it. Returns 0; or -MMC_EIO with the first `*member` for which
 * the kernel refuses it, and why in mmc_last_error().
 */
int mmc_node_try_attach(const struct mmc_node *node, uint32_t *member);

/*
 * From now on, if the communicator is of two ranks of one node, they read each other's
 * blocks of at least `nbytes`, and those of a Bcast of twice as much, from the sender's
 * own memory. An operation in which that fails takes slots. With 0, all operations do.
 * All members set the same before their first operation.
 */
void mmc_node_stream_set_cross(struct mmc_node_stream *stream, uint64_t nbytes);

/*
 * Announces that this rank starts no more operations on the stream: mmc_node_start()
 * fails with -MMC_EINVAL from now on. If another rank waits for this one in a later
 * operation, that operation fails with -MMC_ELEFT. `between` is not touched.
 */
void mmc_node_stream_leave(struct mmc_node_stream *stream);

/*
 * Frees a stream. Operations in flight are given up: on return their buffers are the
 * program's again, and their requests are freed.
 */
void mmc_node_stream_close(struct mmc_node_stream *stream);

/* Writes the first failure of a stream, which poisoned it; its error is 0 if none. */
void mmc_node_stream_failure(struct mmc_node_stream *stream,
			     struct mmc_failure *failure);

/* What a node stream has counted on this rank. */
struct mmc_node_counts {
	uint64_t operations;  /* started */
	uint64_t pieces;      /* completed */
	uint64_t tx_bytes;    /* copied into the segment */
	uint64_t rx_bytes;    /* copied out of it */
	uint64_t cross_bytes; /* copied out of other members' own memory */
	uint64_t sleeps;      /* in waits for other members */
};

/* Writes the counts of a stream. */
void mmc_node_stream_counts(struct mmc_node_stream *stream,
			    struct mmc_node_counts *counts);

/*
 * The kind of an operation without data, which ends once all members of this node have
 * started it. Other nodes need not start it.
 */
#define MMC_NODE_BARRIER 4

/*
 * As mmc_start(), mmc_request_wait(), mmc_request_ready(), mmc_request_cancel(),
 * mmc_request_free(), mmc_request_failure() and mmc_request_waiting(), for a node stream.
 * In the results ranks are the communicator's, and chunks are parts of pieces.
 */
int mmc_node_start(struct mmc_node_stream *stream,
		   const struct mmc_operation *operation, uint64_t slice_ns,
		   struct mmc_node_request **request);
int mmc_node_request_wait(struct mmc_node_request *request, uint64_t slice_ns);

/*
 * mmc_node_start() for an Allgather of equal blocks, for at most the stream's
 * `slice_ns`; `send` and `shared` as in mmc_operation.
 */
int mmc_node_allgather(struct mmc_node_stream *stream, const void *send,
		       void *recv, uint64_t block_bytes, uint64_t shared,
		       struct mmc_node_request **request);

/* Likewise for a Bcast. */
int mmc_node_bcast(struct mmc_node_stream *stream, void *data, uint64_t nbytes,
		   uint32_t root, uint64_t shared,
		   struct mmc_node_request **request);

void mmc_node_request_ready(struct mmc_node_request *request);
void mmc_node_request_cancel(struct mmc_node_request *request);
void mmc_node_request_free(struct mmc_node_request *request);
void mmc_node_request_failure(struct mmc_node_request *request,
			      struct mmc_failure *failure);
void mmc_node_request_waiting(struct mmc_node_request *request,
			      struct mmc_waiting *waiting);

#endif
