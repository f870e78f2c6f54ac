/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of one node, all in this process: each has mapped the same segment, and
 * has a node stream in it. A test moves them one by one, or by a thread for each.
 */
#ifndef MMC_TESTS_NODE_MEMBERS_H
#define MMC_TESTS_NODE_MEMBERS_H

#include <fcntl.h>
#include <mpimcast/errors.h>
#include <mpimcast/node.h>
#include <sys/mman.h>

#include "check.h"
#include "node/stream.h"
#include "support/time.h"

enum { MEMBERS_MAX = 8, SEGMENT_BYTES = 8 << 20 };

struct members {
	uint32_t n;
	struct mmc_node *nodes[MEMBERS_MAX];
	struct mmc_node_stream *streams[MEMBERS_MAX];
	struct mmc_node_head *heads[MEMBERS_MAX]; /* as each has mapped it */
};

/* Returns the descriptor of a new segment, sealed as a node demands it. */
static inline int segment_fd(uint64_t nbytes)
{
	int fd = memfd_create("members", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MMC_ASSERT(fd >= 0 && ftruncate(fd, (off_t)nbytes) == 0);
	MMC_ASSERT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	return fd;
}

/* Returns the options of a stream whose ranks all are members of one node. */
static inline struct mmc_node_stream_options members_options(uint32_t n)
{
	static const uint32_t nodes[MEMBERS_MAX];
	static const uint32_t leaders[1];

	return (struct mmc_node_stream_options){
		.offset_bytes = MMC_NODE_HEAD_BYTES,
		.slot_bytes = 4096,
		.nslots = 2,
		.nranks = n,
		.nnodes = 1,
		.nrails = 1,
		.nodes = nodes,
		.leaders = leaders,
	};
}

/*
 * Opens `n` members, each with a stream that has these options but for the rank. All use
 * the mapping of the first, so that ThreadSanitizer knows their memory to be the same.
 */
static inline void members_open(struct members *members, uint32_t n,
				struct mmc_node_stream_options options)
{
	int fd = segment_fd(SEGMENT_BYTES);

	*members = (struct members){ .n = n };
	for (uint32_t i = 0; i < n; i++) {
		int own = i == 0 ? fd : dup(fd);

		options.rank = i;
		MMC_ASSERT(mmc_node_open(own, SEGMENT_BYTES, i, n,
					 &members->nodes[i]) == 0);
		members->heads[i] = members->nodes[i]->head;
		members->nodes[i]->head = members->heads[0];
		MMC_ASSERT(mmc_node_stream_create(members->nodes[i], &options,
						  &members->streams[i]) == 0);
	}
}

/* Closes the nodes of members whose streams have been closed. */
static inline void members_close_nodes(struct members *members)
{
	for (uint32_t i = members->n; i > 0; i--) {
		members->nodes[i - 1]->head = members->heads[i - 1];
		mmc_node_close(members->nodes[i - 1]);
	}
}

static inline void members_close(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		mmc_node_stream_close(members->streams[i]);
	members_close_nodes(members);
}

/* Fills `block` with bytes that differ by operation, rank and place. */
static inline void fill_block(uint8_t *block, uint64_t nbytes,
			      uint32_t operation, uint32_t rank)
{
	for (uint64_t i = 0; i < nbytes; i++)
		block[i] = (uint8_t)(i * 131 + i / 256 + operation * 29 +
				     rank * 57 + 1);
}

#endif
