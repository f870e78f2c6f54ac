/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole engines with their threads run Allgathers; see loopback.h. */
#include <sys/wait.h>
#include <time.h>

#include "loopback.h"

static int allgather(struct mmc_stream *stream, const void *send, void *recv,
		     uint64_t block_bytes, uint64_t slice_ns,
		     struct mmc_request **request)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = block_bytes,
		.send = send,
		.recv = recv,
	};

	return mmc_start(stream, &operation, slice_ns, request);
}

/* Runs one Allgather of `rank` with the given memory, and counts wrong bytes. */
static void gather_in(struct rank *rank, unsigned stream, uint64_t block_bytes,
		      uint32_t salt, uint8_t *send, uint8_t *recv)
{
	struct mmc_request *request = NULL;
	int rv;

	for (uint64_t i = 0; i < block_bytes; i++)
		send[i] = byte_of(rank->number, i, salt);
	memset(recv, 0xee, NRANKS * block_bytes);
	rv = allgather(rank->streams[stream], send, recv, block_bytes, SLICE_NS,
		       &request);
	if (rv == MMC_EAGAIN)
		rv = wait_for(request);
	mmc_request_free(request);
	rank->nwrong += rv != 0;
	for (uint64_t i = 0; i < NRANKS * block_bytes; i++)
		rank->nwrong += recv[i] != byte_of((uint32_t)(i / block_bytes),
						   i % block_bytes, salt);
}

static void gather(struct rank *rank, unsigned stream, uint64_t block_bytes,
		   uint32_t salt)
{
	uint8_t *send = malloc(block_bytes + 1);
	uint8_t *recv = malloc(NRANKS * (block_bytes + 1));

	gather_in(rank, stream, block_bytes, salt, send, recv);
	free(send);
	free(recv);
}

static void *gather_sizes(void *argument)
{
	static const uint64_t sizes[] = { 0,	1,    999,   1000,
					  1001, 4096, 50000, 2000000 };

	for (uint32_t salt = 0; salt < 5; salt++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			gather(argument, salt % 2, sizes[i], salt);
	return NULL;
}

static void right_bytes(void)
{
	open_all("");
	on_all(gather_sizes);
	close_all();
}

static void right_bytes_under_loss(void)
{
	open_all("loss=0.1,dup=0.05,reorder=0.05,seed=7,kind=all");
	on_all(gather_sizes);
	close_all();
}

/* On a transport that cannot read memory, lost chunks are requested instead. */
static void reads_become_requests(void)
{
	for (repair = 1; repair <= 2; repair++)
		right_bytes_under_loss();
	repair = 0;
}

/* Waiting callers may poll and yield instead of sleeping. */
static void spinning(void)
{
	spins = 1;
	right_bytes_under_loss();
	spins = 0;
}

static void *gather_on_first(void *argument)
{
	for (uint32_t i = 0; i < 100; i++)
		gather(argument, 0, 100 + 977 * (i % 7), i);
	return NULL;
}

/* Runs two threads on each rank, each with a stream of its own. */
static void *gather_in_two_threads(void *argument)
{
	struct rank *rank = argument;
	struct rank twin = *rank;
	pthread_t thread;

	twin.streams[0] = rank->streams[1];
	pthread_create(&thread, NULL, gather_on_first, &twin);
	gather_on_first(rank);
	pthread_join(thread, NULL);
	rank->nwrong += twin.nwrong;
	return NULL;
}

static void threads_share_an_engine(void)
{
	open_all("");
	on_all(gather_in_two_threads);
	close_all();
}

#ifdef __SANITIZE_ADDRESS__
static bool counting;
static unsigned nallocated;

/*
 * Declared here, since the sanitizer's own header is not always installed. Returns 0 on
 * failure.
 */
int __sanitizer_install_malloc_and_free_hooks(
	void (*allocated)(const volatile void *memory, size_t nbytes),
	void (*released)(const volatile void *memory));

static void count_allocation(const volatile void *memory, size_t nbytes)
{
	(void)memory;
	(void)nbytes;
	if (__atomic_load_n(&counting, __ATOMIC_RELAXED))
		__atomic_add_fetch(&nallocated, 1, __ATOMIC_RELAXED);
}

static void ignore_release(const volatile void *memory)
{
	(void)memory;
}

static void count_allocations(bool count)
{
	pthread_barrier_wait(&barrier);
	__atomic_store_n(&counting, count, __ATOMIC_RELAXED);
	pthread_barrier_wait(&barrier);
}

/* Returns once the responder has moved an operation: a thread that begins allocates. */
static void await_responder(struct rank *rank)
{
	static uint8_t results[NRANKS][NRANKS];
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = 1,
		.notifies = 1,
		.recv = results[rank->number],
	};
	struct mmc_request *request;
	uint64_t nended = 0;

	CHECK_EQ(mmc_start(rank->streams[0], &operation, 0, &request),
		 MMC_EAGAIN);
	CHECK_EQ(mmc_engine_await(rank->engine, &nended), 0);
	CHECK_EQ(mmc_request_wait(request, 0), 0);
	mmc_request_free(request);
}

static void *gather_each_size_often(void *argument)
{
	static const uint64_t sizes[] = { 0, 1000, 50000, 2000000 };
	uint8_t *send = malloc(2000000);
	uint8_t *recv = malloc(NRANKS * 2000000);

	await_responder(argument);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		gather_in(argument, 0, sizes[i], 0, send, recv);
		count_allocations(true);
		for (uint32_t salt = 1; salt < 6; salt++)
			gather_in(argument, 0, sizes[i], salt, send, recv);
		count_allocations(false);
	}
	free(send);
	free(recv);
	return NULL;
}

/* From the second operation of a shape on, nothing in the process allocates memory. */
static void nothing_is_allocated_again(void)
{
	CHECK(__sanitizer_install_malloc_and_free_hooks(count_allocation,
							ignore_release) > 0);
	open_all("");
	on_all(gather_each_size_often);
	CHECK_EQ(nallocated, 0);
	close_all();
}
#else
/* Only AddressSanitizer reports allocations. */
static void nothing_is_allocated_again(void)
{
}
#endif

/* Gathers 20 times. After each, the rank waits outside the library for the others. */
static void *gather_and_leave(void *argument)
{
	struct rank *rank = argument;

	for (uint32_t i = 0; i < 20; i++) {
		gather(rank, 0, 3000, i);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* A rank whose caller has left the library still serves what others lost. */
static void the_responder_serves(void)
{
	open_all("loss=0.5,seed=3,rank=1,kind=multicast+repair+control");
	on_all(gather_and_leave);
	close_all();
}

/* Starts an operation, and looks now and then whether it has completed. */
static void *start_and_look(void *argument)
{
	struct rank *rank = argument;
	uint64_t block_bytes = 300000;
	uint8_t *recv = calloc(NRANKS, block_bytes);
	struct timespec pause = { .tv_nsec = 1000000 };
	struct mmc_request *request = NULL;

	memset(recv + rank->number * block_bytes, (int)rank->number + 1,
	       block_bytes);
	rank->nwrong += allgather(rank->streams[0], NULL, recv, block_bytes, 0,
				  &request) != MMC_EAGAIN;
	while (mmc_request_wait(request, 0) == MMC_EAGAIN)
		nanosleep(&pause, NULL);
	for (uint64_t i = 0; i < NRANKS * block_bytes; i++)
		rank->nwrong += recv[i] != i / block_bytes + 1;
	mmc_request_free(request);
	free(recv);
	return NULL;
}

/* An operation completes although no caller waits in the library. */
static void operations_without_a_caller(void)
{
	open_all("loss=0.05,seed=4");
	on_all(start_and_look);
	close_all();
}

#define NQUEUED 6

/* Leaves while some operations are under way and others are queued. */
static void *start_and_leave(void *argument)
{
	struct rank *rank = argument;
	struct mmc_request *requests[NQUEUED] = { NULL };
	uint8_t *recv = calloc(NRANKS, NQUEUED * 5000);

	for (uint64_t i = 0; i < NQUEUED; i++)
		rank->nwrong += allgather(rank->streams[0], NULL,
					  recv + i * NRANKS * 5000, 5000, 0,
					  &requests[i]) < 0;
	mmc_stream_leave(rank->streams[0]);
	for (unsigned i = 0; i < NQUEUED; i++) {
		/* The responder may have completed it before its start returned. */
		if (requests[i] != NULL)
			rank->nwrong += wait_for(requests[i]) != 0;
		mmc_request_free(requests[i]);
	}
	pthread_barrier_wait(&barrier);
	free(recv);
	return NULL;
}

/* A rank that leaves still completes the operations that it has started. */
static void leaving_waits_for_the_queue(void)
{
	for (unsigned i = 0; i < 50; i++) {
		open_all("");
		on_all(start_and_leave);
		close_all();
	}
}

/* A forked child has none of its parent's threads, so its calls are refused. */
static void forked_children_refuse(void)
{
	struct mmc_request *request = NULL;
	uint8_t recv[NRANKS * 8];
	int status = 1;
	pid_t child;

	open_all("");
	child = fork();
	if (child == 0) {
		int rv = allgather(ranks[0].streams[0], NULL, recv, 8, SLICE_NS,
				   &request);

		mmc_stream_close(ranks[0].streams[0]);
		mmc_team_close(ranks[0].team);
		mmc_engine_destroy(ranks[0].engine);
		_exit(rv == -MMC_EFORKED && request == NULL ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	on_all(gather_and_leave);
	close_all();
}

/* Rank 0 cancels an operation that rank 2 never starts; rank 1 waits for it. */
static void *give_up_or_hear(void *argument)
{
	struct rank *rank = argument;
	uint8_t recv[NRANKS * 5000];
	struct mmc_request *request = NULL;
	struct mmc_failure failure;
	int rv;

	if (rank->number == 2) {
		pthread_barrier_wait(&barrier);
		return NULL;
	}
	rv = allgather(rank->streams[0], NULL, recv, 5000, 0, &request);
	rank->nwrong += rv != MMC_EAGAIN;
	pthread_barrier_wait(&barrier);
	if (rank->number == 0)
		mmc_request_cancel(request);
	rank->nwrong += wait_for(request) != -MMC_ECANCELED;
	mmc_request_failure(request, &failure);
	rank->nwrong += failure.culprit != 0;
	mmc_request_free(request);
	rv = allgather(rank->streams[0], NULL, recv, 5000, SLICE_NS, &request);
	rank->nwrong += rv != -MMC_EPOISONED;
	mmc_request_free(request);
	return NULL;
}

static void *gather_on_second(void *argument)
{
	for (uint32_t i = 0; i < 10; i++)
		gather(argument, 1, 3000, i);
	return NULL;
}

/*
 * A cancelled operation fails on all ranks that await it, and later starts are refused.
 * Another stream of the same team still works.
 */
static void giving_up(void)
{
	open_all("");
	on_all(give_up_or_hear);
	on_all(gather_on_second);
	close_all();
}

CHECK_MAIN(CHECK_TEST(right_bytes), CHECK_TEST(right_bytes_under_loss),
	   CHECK_TEST(reads_become_requests), CHECK_TEST(spinning),
	   CHECK_TEST(threads_share_an_engine),
	   CHECK_TEST(nothing_is_allocated_again),
	   CHECK_TEST(the_responder_serves),
	   CHECK_TEST(operations_without_a_caller),
	   CHECK_TEST(leaving_waits_for_the_queue),
	   CHECK_TEST(forked_children_refuse), CHECK_TEST(giving_up))
