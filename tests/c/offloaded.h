/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job over UDP on loopback, whose ranks all live in this process, each with an engine of
 * its own. A proxy, which is a thread or a process, carries out the operations of some.
 */
#ifndef MMC_TESTS_OFFLOADED_H
#define MMC_TESTS_OFFLOADED_H

#include "proxies.h"
#include "support/time.h"

#define RANKS_MAX 5
#define SLICE_NS (20 * MMC_MS_NS)

struct rank {
	struct mmc_engine *engine;
	struct mmc_team *team;
	struct mmc_stream *stream;
	struct mmc_request *request;
};

struct job {
	uint32_t nranks;
	uint32_t proxied; /* bit r: the proxy carries out rank r's operations */
	uint32_t chunk_bytes;
	uint64_t timeout_ns;
	const char *fault;
	struct rank ranks[RANKS_MAX];
};

static uint32_t njobs; /* opened: each has a group and a port of its own */

static inline struct mmc_team_options options_of(const struct job *job,
						 uint32_t rank)
{
	struct mmc_team_options options = {
		.rank = rank,
		.nranks = job->nranks,
		.group = 0xefc20100 +
			 (((uint32_t)getpid() * 16 + njobs) & 0xffff),
		.port = 20000 + ((uint32_t)getpid() * 7 + njobs) % 12000,
		.subgroups = 1,
		.chunk_bytes = job->chunk_bytes,
		.checksum = 1,
		.channel = (UINT64_C(77) << 32) + ((uint64_t)njobs << 16),
		.timeout_ns = job->timeout_ns,
	};

	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	if (job->fault != NULL)
		snprintf(options.fault, sizeof(options.fault), "%s",
			 job->fault);
	if (job->proxied >> rank & 1)
		snprintf(options.proxy, sizeof(options.proxy), "%s",
			 proxy_name);
	return options;
}

static inline void open_team(struct job *job, uint32_t r)
{
	const struct mmc_team_options options = options_of(job, r);

	CHECK_EQ(mmc_engine_create(&job->ranks[r].engine), 0);
	if (CHECK_EQ(mmc_team_create(job->ranks[r].engine, &options,
				     &job->ranks[r].team),
		     0))
		return;
	fprintf(stderr, "%s\n", mmc_last_error());
	exit(1);
}

static inline void open_stream(struct job *job, uint32_t r)
{
	const struct mmc_stream_options options = {
		.channel = (UINT64_C(78) << 32) + ((uint64_t)njobs << 16),
		.eager_bytes = 4096,
		.timeout_ns = job->timeout_ns,
	};

	CHECK_EQ(mmc_stream_create(job->ranks[r].team, &options,
				   &job->ranks[r].stream),
		 0);
}

/* Opens a job; of its fields all but `ranks` are set. */
static inline void open_job(struct job *job)
{
	uint8_t addresses[RANKS_MAX * 1024];

	if (job->chunk_bytes == 0)
		job->chunk_bytes = 1000;
	if (job->timeout_ns == 0)
		job->timeout_ns = 20 * MMC_S_NS;
	njobs++;
	for (uint32_t r = 0; r < job->nranks; r++) {
		open_team(job, r);
		mmc_team_address(job->ranks[r].team,
				 addresses + r * mmc_team_address_bytes(
							 job->ranks[r].team));
	}
	for (uint32_t r = 0; r < job->nranks; r++)
		CHECK_EQ(mmc_team_connect(job->ranks[r].team, addresses), 0);
	for (uint32_t r = 0; r < job->nranks; r++)
		open_stream(job, r);
}

static inline void close_job(struct job *job)
{
	for (uint32_t r = 0; r < job->nranks; r++)
		mmc_stream_close(job->ranks[r].stream);
	for (uint32_t r = 0; r < job->nranks; r++) {
		mmc_team_close(job->ranks[r].team);
		mmc_engine_destroy(job->ranks[r].engine);
	}
}

/* Starts an operation on one rank, without waiting. Returns what mmc_start() does. */
static inline int begin(struct rank *rank,
			const struct mmc_operation *operation)
{
	return mmc_start(rank->stream, operation, 0, &rank->request);
}

/* Waits for the operation of one rank, and frees it. Returns its error. */
static inline int finish(struct rank *rank)
{
	int rv = rank->request == NULL ? 0 : MMC_EAGAIN;

	while (rv == MMC_EAGAIN)
		rv = mmc_request_wait(rank->request, SLICE_NS);
	mmc_request_free(rank->request);
	rank->request = NULL;
	return rv;
}

#endif
