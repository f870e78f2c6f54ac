/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the streams of mpimcast/node.h. */
#include "node/stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "node/failing.h"
#include "node/request.h"
#include "node/tracing.h"

/* The smallest page of any machine. */
#define PAGE_BYTES 4096

/* Streams with larger slots wait for networks, and may never use all of them. */
#define POPULATED_BYTES_MAX (UINT64_C(4) << 20)

/* Debian 12's kernel has it, and its libc does not name it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

uint64_t mmc_node_stream_bytes(uint32_t nmembers, uint32_t nslots,
			       uint64_t slot_bytes)
{
	return sizeof(struct mmc_node_stream_head) +
	       nmembers * sizeof(struct mmc_node_line) + nslots * slot_bytes;
}

/* Returns whether the stream has a stream between nodes just where one is needed. */
static bool has_between(const struct mmc_node_stream *stream)
{
	bool leads = stream->leaders[stream->rail] == stream->member;

	return (stream->options.between != NULL) ==
	       (leads && stream->map.nnodes > 1);
}

static bool is_valid(const struct mmc_node *node,
		     const struct mmc_node_stream_options *options)
{
	uint64_t least_bytes = (uint64_t)options->nranks * MMC_PART_ALIGN_BYTES;
	uint64_t nbytes;

	if (options->nranks == 0 || options->rank >= options->nranks ||
	    options->nnodes == 0 || options->nnodes > options->nranks ||
	    options->nrails == 0 || options->nrails > MMC_NODE_RAILS_MAX ||
	    (options->nrails > 1 && options->nnodes == 1) ||
	    options->nslots == 0 || options->nslots > MMC_NODE_SLOTS_MAX ||
	    /* The numbers of pieces wrap round, and must not leave out a slot. */
	    (options->nslots & (options->nslots - 1)) != 0 ||
	    options->slot_bytes % MMC_PART_ALIGN_BYTES != 0 ||
	    options->slot_bytes < least_bytes ||
	    options->slot_bytes > node->nbytes ||
	    options->offset_bytes % MMC_PART_ALIGN_BYTES != 0 ||
	    options->offset_bytes < MMC_NODE_HEAD_BYTES ||
	    options->offset_bytes > node->nbytes)
		return false;
	nbytes = mmc_node_stream_bytes(node->nmembers, options->nslots,
				       options->slot_bytes);
	return nbytes <= node->nbytes - options->offset_bytes;
}

/* Allocates the tables of a stream in one block, which `places` begins. */
static bool allocate(struct mmc_node_stream *stream)
{
	uint32_t nranks = stream->map.nranks;
	uint32_t nnodes = stream->map.nnodes;
	size_t nleaders = (size_t)stream->options.nrails * nnodes;
	uint64_t *wide = calloc(nranks + 2 * (size_t)nnodes, sizeof(*wide));
	uint32_t *narrow = calloc(2 * (size_t)nranks + nleaders + nnodes + 1,
				  sizeof(*narrow));

	stream->places = wide;
	stream->map.nodes = narrow;
	if (wide == NULL || narrow == NULL)
		return false;
	stream->nodes_bytes = wide + nranks;
	stream->nodes_offsets = wide + nranks + nnodes;
	stream->map.order = narrow + nranks;
	stream->map.leaders = narrow + 2 * (size_t)nranks;
	stream->map.firsts = stream->map.leaders + nleaders;
	return true;
}

static void release(struct mmc_node_stream *stream)
{
	mmc_node_tracing_end(stream);
	free(stream->places);
	free(stream->map.nodes);
	free(stream);
}

/* Returns the number of a rank among the members of this node. */
static uint32_t member_of(const struct mmc_node_stream *stream, uint32_t rank)
{
	uint32_t member = 0;

	while (mmc_node_members(stream)[member] != rank)
		member++;
	return member;
}

/*
 * Fills in who leads which node on which rail. Returns false if a node is led from
 * elsewhere, or by the same rank on two rails.
 */
static bool appoint(struct mmc_node_stream *stream,
		    const struct mmc_node_stream_options *options)
{
	struct mmc_node_map *map = &stream->map;
	uint32_t nleaders = options->nrails * map->nnodes;

	memcpy(map->leaders, options->leaders,
	       nleaders * sizeof(*map->leaders));
	for (uint32_t i = 0; i < nleaders; i++) {
		uint32_t node = i % map->nnodes;
		uint32_t rail = i / map->nnodes;
		uint32_t rank = map->leaders[i];

		if (rank >= map->nranks || map->nodes[rank] != node)
			return false;
		for (uint32_t k = node; k < i; k += map->nnodes)
			if (map->leaders[k] == rank)
				return false;
		if (node == map->nodes[options->rank])
			stream->leaders[rail] = member_of(stream, rank);
		if (rank == options->rank)
			stream->rail = rail;
	}
	return true;
}

/*
 * Fills in which rank is where. Returns false if a node is empty, or does not have as
 * many members as the segment.
 */
static bool draw_map(struct mmc_node_stream *stream,
		     const struct mmc_node_stream_options *options)
{
	struct mmc_node_map *map = &stream->map;
	uint32_t own = options->nodes[options->rank];
	uint32_t n = 0;

	memcpy(map->nodes, options->nodes, map->nranks * sizeof(*map->nodes));
	for (uint32_t node = 0; node < map->nnodes; node++) {
		map->firsts[node] = n;
		for (uint32_t rank = 0; rank < map->nranks; rank++) {
			if (map->nodes[rank] != node)
				continue;
			if (rank == options->rank)
				stream->member = n - map->firsts[node];
			map->order[n++] = rank;
		}
		if (n == map->firsts[node])
			return false;
	}
	map->firsts[map->nnodes] = n;
	return n == map->nranks && own < map->nnodes &&
	       map->firsts[own + 1] - map->firsts[own] ==
		       stream->node->nmembers &&
	       stream->member == stream->node->member;
}

static bool is_small(const struct mmc_node_stream *stream)
{
	return mmc_node_stream_bytes(
		       stream->node->nmembers, stream->options.nslots,
		       stream->options.slot_bytes) <= POPULATED_BYTES_MAX;
}

/*
 * Maps the pages of some bytes of the segment. Those that nobody has touched come to lie
 * near this process. Kernels before Linux 5.14 cannot do it.
 */
static void populate(uint8_t *bytes, uint64_t nbytes)
{
	uintptr_t begin = (uintptr_t)bytes & ~(uintptr_t)(PAGE_BYTES - 1);

	madvise((void *)begin, nbytes + ((uintptr_t)bytes - begin),
		MADV_POPULATE_WRITE);
}

/*
 * All members read all of a slot, so each gets an equal share of it near itself: no
 * memory controller has to serve them all. In an Allgather that is also where it writes.
 */
static void touch_share(const struct mmc_node_stream *stream)
{
	const struct mmc_node_stream_options *options = &stream->options;
	uint64_t nmembers = stream->node->nmembers, member = stream->member;
	uint64_t begin = options->slot_bytes * member / nmembers;
	uint64_t end = options->slot_bytes * (member + 1) / nmembers;

	for (uint32_t i = 0; i < options->nslots; i++)
		populate(stream->slots + i * options->slot_bytes + begin,
			 end - begin);
}

void mmc_node_stream_populate(struct mmc_node_stream *stream)
{
	if (is_small(stream))
		populate((uint8_t *)stream->head,
			 mmc_node_stream_bytes(stream->node->nmembers,
					       stream->options.nslots,
					       stream->options.slot_bytes));
}

int mmc_node_stream_create(struct mmc_node *node,
			   const struct mmc_node_stream_options *options,
			   struct mmc_node_stream **stream)
{
	struct mmc_node_stream *made;

	*stream = NULL;
	if (mmc_node_is_forked(node))
		return -MMC_EFORKED;
	if (!is_valid(node, options))
		return -MMC_EINVAL;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return -MMC_ENOMEM;
	made->node = node;
	made->options = *options;
	made->map.nranks = options->nranks;
	made->map.nnodes = options->nnodes;
	made->head = mmc_node_at(node, options->offset_bytes);
	made->lines = (struct mmc_node_line *)(made->head + 1);
	made->slots = (uint8_t *)(made->lines + node->nmembers);
	made->nfree = options->nslots;
	if (!allocate(made)) {
		release(made);
		return -MMC_ENOMEM;
	}
	if (!draw_map(made, options) || !appoint(made, options) ||
	    !has_between(made)) {
		release(made);
		return -MMC_EINVAL;
	}
	if (is_small(made))
		touch_share(made);
	made->options.nodes = NULL;
	made->options.leaders = NULL;
	pthread_mutex_init(&made->mutex, NULL);
	*stream = made;
	return 0;
}

int mmc_node_stream_set_trace(struct mmc_node_stream *stream,
			      struct mmc_trace *trace, uint32_t track)
{
	int rv;

	if (mmc_node_is_forked(stream->node))
		return -MMC_EFORKED;
	pthread_mutex_lock(&stream->mutex);
	rv = mmc_node_tracing_begin(stream, trace, track);
	pthread_mutex_unlock(&stream->mutex);
	return rv;
}

void mmc_node_stream_set_cross(struct mmc_node_stream *stream, uint64_t nbytes)
{
	pthread_mutex_lock(&stream->mutex);
	stream->cross_bytes_min = nbytes;
	pthread_mutex_unlock(&stream->mutex);
}

void mmc_node_stream_leave(struct mmc_node_stream *stream)
{
	if (mmc_node_is_forked(stream->node))
		return;
	pthread_mutex_lock(&stream->mutex);
	stream->left = true;
	atomic_store(&stream->lines[stream->member].left, 1);
	pthread_mutex_unlock(&stream->mutex);
}

void mmc_node_stream_close(struct mmc_node_stream *stream)
{
	struct mmc_failure failure;

	if (mmc_node_is_forked(stream->node))
		return;
	pthread_mutex_lock(&stream->mutex);
	if (stream->first != NULL) {
		struct mmc_node_request *request = stream->first;

		failure = mmc_node_failure(request, -MMC_ECANCELED,
					   stream->options.rank);
		do {
			mmc_node_request_take_first(stream);
			mmc_node_request_keep(request);
		} while ((request = stream->first) != NULL);
		mmc_node_give_up(stream, &failure);
	}
	pthread_mutex_unlock(&stream->mutex);
	pthread_mutex_destroy(&stream->mutex);
	mmc_node_requests_free(stream);
	release(stream);
}

void mmc_node_stream_failure(struct mmc_node_stream *stream,
			     struct mmc_failure *failure)
{
	*failure = (struct mmc_failure){ .error = 0 };
	if (mmc_node_is_forked(stream->node))
		return;
	pthread_mutex_lock(&stream->mutex);
	mmc_node_adopt_failure(stream);
	mmc_node_set_last_error(stream);
	*failure = stream->failure;
	pthread_mutex_unlock(&stream->mutex);
}

void mmc_node_stream_counts(struct mmc_node_stream *stream,
			    struct mmc_node_counts *counts)
{
	*counts = (struct mmc_node_counts){ .operations = 0 };
	if (mmc_node_is_forked(stream->node))
		return;
	pthread_mutex_lock(&stream->mutex);
	*counts = stream->counts;
	pthread_mutex_unlock(&stream->mutex);
}
