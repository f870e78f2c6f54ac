/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole engines lose chunks, and coders mend them; see loopback.h. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "core/counters.h"
#include "loopback.h"

#define BLOCK_BYTES UINT64_C(400001)

static uint64_t counted(const struct rank *rank, enum mmc_counter counter)
{
	uint64_t values[MMC_COUNTER_COUNT];

	mmc_stream_counters(rank->streams[0], values);
	return values[counter];
}

static uint64_t counted_by_all(enum mmc_counter counter)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; r < NRANKS; r++)
		sum += counted(&ranks[r], counter);
	return sum;
}

/* Opens all ranks, with a coder or without, on a network that loses chunks. */
static void open_coded(uint16_t data, uint16_t parity, uint16_t with_coder)
{
	code_data = data;
	code_parity = parity;
	coder = with_coder;
	open_all("loss=0.05,seed=11,kind=multicast");
}

/* Whoever touches what was freed of this memory ends the program. */
static uint8_t *allocate(void)
{
	void *memory = mmap(NULL, NRANKS * BLOCK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!CHECK(memory != MAP_FAILED))
		exit(1);
	return memory;
}

static void release(uint8_t *memory)
{
	munmap(memory, NRANKS * BLOCK_BYTES);
}

/* Begins an Allgather into memory that it allocates, and returns that. */
static uint8_t *begin(struct rank *rank, uint32_t salt, uint32_t notifies,
		      struct mmc_request **request)
{
	uint8_t *recv = allocate();
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = BLOCK_BYTES,
		.notifies = notifies,
		.recv = recv,
	};

	for (uint64_t i = 0; i < BLOCK_BYTES; i++)
		recv[rank->number * BLOCK_BYTES + i] =
			byte_of(rank->number, i, salt);
	rank->nwrong += mmc_start(rank->streams[0], &operation, 0, request) !=
			MMC_EAGAIN;
	return recv;
}

static void check_gathered(struct rank *rank, uint32_t salt,
			   const uint8_t *recv)
{
	for (uint32_t r = 0; r < NRANKS; r++)
		for (uint64_t i = 0; i < BLOCK_BYTES; i++)
			rank->nwrong += *recv++ != byte_of(r, i, salt);
}

static void *gather_often(void *argument)
{
	for (uint32_t salt = 0; salt < 6; salt++) {
		struct rank *rank = argument;
		struct mmc_request *request = NULL;
		uint8_t *recv = begin(rank, salt, 0, &request);

		rank->nwrong += wait_for(request) != 0;
		check_gathered(rank, salt, recv);
		mmc_request_free(request);
		release(recv);
	}
	return NULL;
}

/* All bytes are right, and coders have mended; without them nobody's thread has. */
static void right_bytes(void)
{
	open_coded(8, 3, 1);
	on_all(gather_often);
	CHECK(counted_by_all(MMC_COUNT_CODER_MENDED) > 0);
	CHECK(counted_by_all(MMC_COUNT_CODER_MENDED) <=
	      counted_by_all(MMC_COUNT_GROUPS_MENDED));
	/* A busy machine may have the coders late, but not for ever. */
	while (counted_by_all(MMC_COUNT_CODER_ENCODED) == 0)
		on_all(gather_often);
	close_all();
	open_coded(8, 3, 0);
	on_all(gather_often);
	CHECK(counted_by_all(MMC_COUNT_GROUPS_MENDED) > 0);
	CHECK_EQ(counted_by_all(MMC_COUNT_CODER_MENDED), 0);
	CHECK_EQ(counted_by_all(MMC_COUNT_CODER_ENCODED), 0);
	close_all();
}

/* Callers may poll and yield instead of sleeping. */
static void spinning(void)
{
	spins = 1;
	open_coded(8, 3, 1);
	on_all(gather_often);
	CHECK(counted_by_all(MMC_COUNT_CODER_MENDED) > 0);
	close_all();
	spins = 0;
}

/* No caller is inside: the coder has to wake the responder. */
static void *await_notifications(void *argument)
{
	struct rank *rank = argument;
	uint64_t nended = 0;

	for (uint32_t salt = 0; salt < 6; salt++) {
		struct mmc_request *request = NULL;
		uint8_t *recv = begin(rank, salt, 1, &request);

		while (mmc_request_wait(request, 0) == MMC_EAGAIN)
			mmc_engine_await(rank->engine, &nended);
		rank->nwrong += mmc_request_wait(request, 0) != 0;
		check_gathered(rank, salt, recv);
		mmc_request_free(request);
		release(recv);
	}
	return NULL;
}

static void the_responder_is_woken(void)
{
	open_coded(8, 3, 1);
	on_all(await_notifications);
	CHECK(counted_by_all(MMC_COUNT_CODER_MENDED) > 0);
	close_all();
}

/* How much of the operation the tests below see before they end it. */
static unsigned nslices;

/* Rank 0 cancels in the middle; the memory is its own again at once. */
static void *give_up(void *argument)
{
	struct rank *rank = argument;
	struct mmc_request *request = NULL;
	uint8_t *recv = begin(rank, 0, 0, &request);
	int rv = MMC_EAGAIN;

	pthread_barrier_wait(&barrier);
	if (rank->number == 0) {
		for (unsigned i = 0; i < nslices && rv == MMC_EAGAIN; i++)
			rv = mmc_request_wait(request, SLICE_NS / 16);
		mmc_request_cancel(request);
		rv = mmc_request_wait(request, 0);
	} else {
		rv = wait_for(request);
	}
	rank->nwrong += rv != 0 && rv != -MMC_ECANCELED;
	release(recv);
	mmc_request_free(request);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void cancelled_while_it_mends(void)
{
	for (nslices = 0; nslices < 80; nslices++) {
		open_coded(100, 30, 1);
		on_all(give_up);
		close_all();
	}
}

static uint8_t *given_up[NRANKS];

static void *leave_in_flight(void *argument)
{
	struct rank *rank = argument;
	struct mmc_request *request = NULL;
	int rv = MMC_EAGAIN;

	given_up[rank->number] = begin(rank, 0, 0, &request);
	for (unsigned i = 0; i < nslices && rv == MMC_EAGAIN; i++)
		rv = mmc_request_wait(request, SLICE_NS / 16);
	rank->nwrong += rv != 0 && rv != MMC_EAGAIN;
	return NULL;
}

/* Streams are closed in the middle of their operations. */
static void closed_while_it_mends(void)
{
	for (nslices = 0; nslices < 80; nslices++) {
		open_coded(100, 30, 1);
		on_all(leave_in_flight);
		close_all();
		for (uint32_t r = 0; r < NRANKS; r++)
			release(given_up[r]);
	}
}

/* A forked child has no coder, and ends nothing of its parent's. */
static void forked(void)
{
	int status = 1;
	pid_t child;

	open_coded(8, 3, 1);
	on_all(gather_often);
	child = fork();
	if (child == 0) {
		mmc_stream_close(ranks[0].streams[0]);
		mmc_team_close(ranks[0].team);
		mmc_engine_destroy(ranks[0].engine);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	on_all(gather_often);
	close_all();
}

CHECK_MAIN(CHECK_TEST(right_bytes), CHECK_TEST(spinning),
	   CHECK_TEST(the_responder_is_woken),
	   CHECK_TEST(cancelled_while_it_mends),
	   CHECK_TEST(closed_while_it_mends), CHECK_TEST(forked))
