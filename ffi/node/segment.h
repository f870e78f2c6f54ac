/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment of a node, as this process maps it: its head, with a bell for each member,
 * and the locks by which the kernel tells whether a member's process has ended.
 *
 * A member locks the byte of its number in the segment's file. Such a lock belongs to
 * the process, neither to the descriptor nor to children, and ends with the process.
 */
#ifndef MMC_NODE_SEGMENT_H
#define MMC_NODE_SEGMENT_H

#include <mpimcast/errors.h>
#include <mpimcast/node.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Rung by others for a member that sleeps in mmc_node_await(). */
struct mmc_node_bell {
	alignas(64) _Atomic uint32_t nrings;
	_Atomic uint32_t armed; /* whether the member wants to hear it */
	_Atomic uint64_t
		process; /* of the member; 0: it has not opened the node */
	_Atomic uint64_t process_at; /* where that process has this number */
	_Atomic int32_t pid; /* its number in its own namespace of processes */
};

/* What a segment begins with. */
struct mmc_node_head {
	alignas(64) _Atomic uint32_t nmembers; /* 0: no member has opened it */
	struct mmc_node_bell bells[MMC_NODE_MEMBERS_MAX];
};
_Static_assert(sizeof(struct mmc_node_head) <= MMC_NODE_HEAD_BYTES,
	       "the head has room at the beginning of a segment");

struct mmc_node {
	struct mmc_node_head *head; /* where the segment is mapped */
	uint64_t nbytes;
	int fd;
	uint32_t member;
	uint32_t nmembers;
	uint32_t
		forks; /* mmc_fork_generation() of the process that opened it */
	_Atomic uint32_t nwatched; /* requests with `notifies` in flight */
};

/* Returns the address of what lies `offset_bytes` behind the segment's beginning. */
static inline void *mmc_node_at(const struct mmc_node *node,
				uint64_t offset_bytes)
{
	return (uint8_t *)node->head + offset_bytes;
}

/* Returns whether this process is a child of the one that opened the node. */
bool mmc_node_is_forked(const struct mmc_node *node);

/* Returns whether the process of `member` exists, which has opened the node. */
bool mmc_node_is_alive(const struct mmc_node *node, uint32_t member);

/* Makes mmc_node_await() hear the next ring, even one before it is called. */
void mmc_node_arm(struct mmc_node *node);

/*
 * Counts a request with `notifies`. A sleeper that watched none so far is woken, since
 * it has to look now and then whether members live.
 */
void mmc_node_watch(struct mmc_node *node);

/* Rings for `member`, if it has armed its bell. */
void mmc_node_ring(struct mmc_node *node, uint32_t member);

#endif
