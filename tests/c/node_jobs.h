/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs of several nodes in one process: each node has a segment of its own, and each of
 * its leaders an engine and a rank of a team over UDP on loopback, as in a job of
 * processes.
 */
#ifndef MMC_TESTS_NODE_JOBS_H
#define MMC_TESTS_NODE_JOBS_H

#include <mpimcast/mmc.h>

#include "drivers/udp/peers.h"
#include "node_members.h"

enum { NODES_MAX = 3, RAILS_MAX = 3, LEADERS_MAX = NODES_MAX * RAILS_MAX };

/* The leaders of nodes, rail by rail, whose teams serve job after job. */
struct leaders {
	uint32_t nnodes;
	uint32_t nrails;
	struct mmc_engine *engines[LEADERS_MAX];
	struct mmc_team *teams[LEADERS_MAX];
	uint64_t njobs;
};

struct job {
	uint32_t nranks;
	uint32_t nnodes;
	uint32_t nodes[MEMBERS_MAX];
	uint32_t leaders[LEADERS_MAX];
	struct mmc_stream *between[LEADERS_MAX];
	struct mmc_node *members[MEMBERS_MAX];
	struct mmc_node_head *heads[MEMBERS_MAX]; /* as each has mapped it */
	struct mmc_node_stream *streams[MEMBERS_MAX];
};

static inline void leaders_open_one(struct leaders *leaders, uint32_t i,
				    uint8_t *addresses)
{
	struct mmc_team_options options = {
		.rank = i % leaders->nnodes,
		.nranks = leaders->nnodes,
		.group = 0xefc10100 + ((uint32_t)getpid() & 0xffff),
		.port = 20000 + (uint32_t)getpid() % 20000 +
			i / leaders->nnodes,
		.subgroups = 1,
		.chunk_bytes = 1000,
		.checksum = 1,
		.channel = UINT64_C(99) << 32,
		.timeout_ns = 10 * MMC_S_NS,
	};

	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	CHECK_EQ(mmc_engine_create(&leaders->engines[i]), 0);
	if (!CHECK_EQ(mmc_team_create(leaders->engines[i], &options,
				      &leaders->teams[i]),
		      0)) {
		fprintf(stderr, "%s\n", mmc_last_error());
		exit(1);
	}
	mmc_team_address(leaders->teams[i],
			 addresses + i * MMC_UDP_ADDRESS_BYTES);
}

/* Returns how many leaders there are on all rails together. */
static inline uint32_t leaders_number(const struct leaders *leaders)
{
	return leaders->nrails * leaders->nnodes;
}

static inline void leaders_open(struct leaders *leaders, uint32_t nnodes,
				uint32_t nrails)
{
	uint8_t addresses[LEADERS_MAX * MMC_UDP_ADDRESS_BYTES];

	*leaders = (struct leaders){ .nnodes = nnodes, .nrails = nrails };
	for (uint32_t i = 0; i < leaders_number(leaders); i++)
		leaders_open_one(leaders, i, addresses);
	for (uint32_t i = 0; i < leaders_number(leaders); i++) {
		uint32_t first = i / nnodes * nnodes;

		CHECK_EQ(mmc_team_connect(
				 leaders->teams[i],
				 addresses + first * MMC_UDP_ADDRESS_BYTES),
			 0);
	}
}

static inline void leaders_close(struct leaders *leaders)
{
	for (uint32_t i = 0; i < leaders_number(leaders); i++) {
		mmc_team_close(leaders->teams[i]);
		mmc_engine_destroy(leaders->engines[i]);
	}
}

/* Returns the number of a rank within its node. */
static inline uint32_t job_member(const struct job *job, uint32_t rank)
{
	uint32_t member = 0;

	for (uint32_t r = 0; r < rank; r++)
		member += job->nodes[r] == job->nodes[rank];
	return member;
}

/* Returns the stream between nodes of a rank; NULL if it leads its node on no rail. */
static inline struct mmc_stream *
job_between(const struct job *job, const struct leaders *leaders, uint32_t rank)
{
	for (uint32_t i = 0; i < leaders_number(leaders); i++)
		if (job->leaders[i] == rank)
			return job->between[i];
	return NULL;
}

/* Opens the streams between nodes, for each leader. */
static inline void job_open_between(struct job *job, struct leaders *leaders)
{
	const struct mmc_stream_options options = {
		.channel = ++leaders->njobs << 16,
		.eager_bytes = 65536,
		.timeout_ns = 10 * MMC_S_NS,
	};

	for (uint32_t i = 0; i < leaders_number(leaders); i++)
		CHECK_EQ(mmc_stream_create(leaders->teams[i], &options,
					   &job->between[i]),
			 0);
}

/*
 * Opens all ranks of a job, whose `nranks`, `nnodes`, `nodes` and `leaders` are set,
 * with these options but for the map and the rank. All ranks of a node use the mapping
 * of the first, as members do.
 */
static inline void job_open(struct job *job, struct leaders *leaders,
			    struct mmc_node_stream_options options)
{
	int fds[NODES_MAX];
	uint32_t nmembers[NODES_MAX] = { 0 };
	struct mmc_node_head *first[NODES_MAX];

	MMC_ASSERT(leaders->nnodes == job->nnodes);
	job_open_between(job, leaders);
	for (uint32_t r = 0; r < job->nranks; r++)
		nmembers[job->nodes[r]]++;
	options.nranks = job->nranks;
	options.nnodes = job->nnodes;
	options.nrails = leaders->nrails;
	options.nodes = job->nodes;
	options.leaders = job->leaders;
	for (uint32_t r = 0; r < job->nranks; r++) {
		uint32_t node = job->nodes[r];
		uint32_t member = job_member(job, r);
		int fd = member == 0 ? segment_fd(SEGMENT_BYTES)
				     : dup(fds[node]);

		if (member == 0)
			fds[node] = fd;
		options.rank = r;
		options.between = job_between(job, leaders, r);
		MMC_ASSERT(mmc_node_open(fd, SEGMENT_BYTES, member,
					 nmembers[node],
					 &job->members[r]) == 0);
		job->heads[r] = job->members[r]->head;
		if (member == 0)
			first[node] = job->heads[r];
		job->members[r]->head = first[node];
		MMC_ASSERT(mmc_node_stream_create(job->members[r], &options,
						  &job->streams[r]) == 0);
	}
}

static inline void job_close(struct job *job)
{
	for (uint32_t r = 0; r < job->nranks; r++)
		mmc_node_stream_close(job->streams[r]);
	for (uint32_t r = 0; r < job->nranks; r++) {
		job->members[r]->head = job->heads[r];
		mmc_node_close(job->members[r]);
	}
	for (uint32_t i = 0; i < LEADERS_MAX; i++)
		if (job->between[i] != NULL)
			mmc_stream_close(job->between[i]);
	memset(job->between, 0, sizeof(job->between));
}

#endif
