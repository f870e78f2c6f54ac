/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of one node as processes, as in a job: member 0 is the test's own, the
 * others are forked, and may be stopped or killed.
 */
#ifndef MMC_TESTS_NODE_PROCESSES_H
#define MMC_TESTS_NODE_PROCESSES_H

#include <sys/wait.h>

#include "node_members.h"

/* Longer than a test may take: nothing ends after it that should end before. */
#define LONG_NS (3600 * MMC_S_NS)

/* How an operation has ended on one member. */
struct report {
	int rv;
	struct mmc_failure failure;
};

/* What processes share besides the segment. */
struct processes_shared {
	_Atomic uint32_t nopen; /* members that have opened the node */
	_Atomic uint32_t nready;
	struct report reports[MEMBERS_MAX];
};

/* What a forked member does; when it returns, its process ends. */
typedef void processes_act(struct mmc_node_stream *stream,
			   struct processes_shared *shared);

struct processes {
	uint32_t n;
	int fd;
	struct processes_shared *shared;
	pid_t pids[MEMBERS_MAX];
	struct mmc_node *node;		/* member 0's */
	struct mmc_node_stream *stream; /* member 0's */
};

/* Waits until a counter of the members has come to `n`. */
static inline void await_count(_Atomic uint32_t *counter, uint32_t n)
{
	while (atomic_load(counter) < n)
		usleep(200);
}

/* Opens the node and a stream as member `rank`, once all have opened the node. */
static inline void processes_enter(struct processes *processes, uint32_t rank,
				   struct mmc_node_stream_options options)
{
	options.rank = rank;
	MMC_ASSERT(mmc_node_open(processes->fd, SEGMENT_BYTES, rank,
				 processes->n, &processes->node) == 0);
	atomic_fetch_add(&processes->shared->nopen, 1);
	await_count(&processes->shared->nopen, processes->n);
	MMC_ASSERT(mmc_node_stream_create(processes->node, &options,
					  &processes->stream) == 0);
}

/* Forks the members of a node; member i carries out `acts[i]`, but for the first. */
static inline void processes_open(struct processes *processes, uint32_t n,
				  struct mmc_node_stream_options options,
				  processes_act *const *acts)
{
	*processes = (struct processes){
		.n = n,
		.fd = segment_fd(SEGMENT_BYTES),
		.shared = mmap(NULL, sizeof(*processes->shared),
			       PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	};
	MMC_ASSERT(processes->shared != MAP_FAILED);
	for (uint32_t i = 1; i < n; i++) {
		processes->pids[i] = fork();
		MMC_ASSERT(processes->pids[i] >= 0);
		if (processes->pids[i] != 0)
			continue;
		alarm(CHECK_TIMEOUT_S);
		processes_enter(processes, i, options);
		acts[i](processes->stream, processes->shared);
		_exit(0);
	}
	processes_enter(processes, 0, options);
}

/* Kills a member, and returns once its process has ended. */
static inline void processes_kill(struct processes *processes, uint32_t rank)
{
	kill(processes->pids[rank], SIGKILL);
	CHECK_EQ(waitpid(processes->pids[rank], NULL, 0),
		 processes->pids[rank]);
	processes->pids[rank] = 0;
}

/* Waits until a member has done what it was to do, and its process has ended. */
static inline void processes_join(struct processes *processes, uint32_t rank)
{
	int status;

	CHECK_EQ(waitpid(processes->pids[rank], &status, 0),
		 processes->pids[rank]);
	CHECK_EQ(status, 0);
	processes->pids[rank] = 0;
}

/* Closes member 0; processes that neither were killed nor ended are killed. */
static inline void processes_close(struct processes *processes)
{
	for (uint32_t i = 1; i < processes->n; i++)
		if (processes->pids[i] != 0)
			processes_kill(processes, i);
	mmc_node_stream_close(processes->stream);
	mmc_node_close(processes->node);
	munmap(processes->shared, sizeof(*processes->shared));
}

/* Starts an in-place Allgather of `nbytes` per rank. */
static inline int start_gather(struct mmc_node_stream *stream, uint8_t *recv,
			       uint64_t nbytes,
			       struct mmc_node_request **request)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = nbytes,
		.recv = recv,
	};
	uint32_t rank = stream->options.rank;

	memset(recv + rank * nbytes, (int)rank + 1, nbytes);
	return mmc_node_start(stream, &operation, 0, request);
}

/* Waits for a request, frees it, and returns how it has ended. */
static inline struct report finish_report(struct mmc_node_request *request,
					  int rv)
{
	struct report report = { .rv = rv };

	if (request == NULL)
		return report;
	while (report.rv == MMC_EAGAIN)
		report.rv = mmc_node_request_wait(request, LONG_NS);
	mmc_node_request_failure(request, &report.failure);
	mmc_node_request_free(request);
	return report;
}

/* Gathers 1000 bytes per rank, and returns how that has ended. */
static inline struct report gather(struct mmc_node_stream *stream)
{
	struct mmc_node_request *request;
	static _Thread_local uint8_t recv[MEMBERS_MAX * 1000];
	int rv = start_gather(stream, recv, 1000, &request);

	return finish_report(request, rv);
}

/* An act: gathers, and reports how that has ended. */
static inline void act_gather(struct mmc_node_stream *stream,
			      struct processes_shared *shared)
{
	shared->reports[stream->options.rank] = gather(stream);
}

/* An act: never enters an operation. */
static inline void act_idle(struct mmc_node_stream *stream,
			    struct processes_shared *shared)
{
	(void)stream;
	atomic_fetch_add(&shared->nready, 1);
	pause();
}

#endif
