/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole engines run Bcast and Allgatherv; see loopback.h. */
#include "loopback.h"

#define LONGEST 1200000 /* too long for a retained copy */
#define GAP 7
#define UNTOUCHED 0xee
#define NSTREAMS 200

/* The arguments of one rank's call, and the memory for them. */
struct buffers {
	uint64_t blocks_bytes[NRANKS];
	uint64_t offsets_bytes[NRANKS];
	uint8_t send[LONGEST];
	uint8_t recv[NRANKS * (LONGEST + GAP)];
};

static struct buffers memory[NRANKS];

static int start(struct rank *rank, const struct mmc_operation *operation,
		 struct mmc_failure *failure)
{
	struct mmc_request *request = NULL;
	int rv = mmc_start(rank->streams[0], operation, SLICE_NS, &request);

	if (rv == MMC_EAGAIN)
		rv = wait_for(request);
	if (failure != NULL && request != NULL)
		mmc_request_failure(request, failure);
	mmc_request_free(request);
	return rv;
}

/* ---- Bcast --------------------------------------------------------------- */

static void bcast(struct rank *rank, uint32_t root, uint64_t nbytes,
		  uint32_t salt)
{
	struct buffers *buffers = &memory[rank->number];
	bool in_place = salt % 2;
	const struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.root = root,
		.block_bytes = nbytes,
		.send = in_place ? NULL : buffers->send,
		.recv = buffers->recv,
	};
	uint8_t *own = in_place ? buffers->recv : buffers->send;

	memset(buffers->recv, UNTOUCHED, nbytes + 1);
	for (uint64_t i = 0; i < nbytes && rank->number == root; i++)
		own[i] = byte_of(root, i, salt);
	rank->nwrong += start(rank, &operation, NULL) != 0;
	for (uint64_t i = 0; i < nbytes; i++)
		rank->nwrong += buffers->recv[i] != byte_of(root, i, salt);
	rank->nwrong += buffers->recv[nbytes] != UNTOUCHED;
}

static const uint64_t sizes[] = { 0, 1, 999, 1000, 1001, 5000, LONGEST };

static void *bcast_sizes(void *argument)
{
	for (uint32_t salt = 0; salt < 4; salt++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			for (uint32_t root = 0; root < NRANKS; root++)
				bcast(argument, root, sizes[i], salt);
	return NULL;
}

/* ---- Allgatherv ---------------------------------------------------------- */

/* Lays out uneven blocks by `salt`, some of them empty; the ranks' orders differ. */
static void lay_out(struct buffers *buffers, uint32_t rank, uint32_t salt)
{
	uint64_t at = salt % 3 == 2 ? GAP : 0;

	for (uint32_t i = 0; i < NRANKS; i++) {
		uint32_t owner = (rank + salt) % 2 ? NRANKS - 1 - i : i;
		size_t size = (owner * 5 + salt) % 7;

		buffers->blocks_bytes[owner] = sizes[size] / NRANKS * owner;
		buffers->offsets_bytes[owner] = at;
		at += buffers->blocks_bytes[owner];
		at += salt % 3 == 0 ? GAP : 0;
	}
}

/* Compares the whole of `recv`, the gaps included, with what must lie there. */
static void check_result(struct rank *rank, const struct buffers *buffers,
			 uint32_t salt, bool adjoining)
{
	static uint8_t images[NRANKS][sizeof(memory[0].recv)];
	uint8_t *image = images[rank->number];
	uint64_t at = 0;

	memset(image, UNTOUCHED, sizeof(buffers->recv));
	for (uint32_t r = 0; r < NRANKS; r++) {
		if (!adjoining)
			at = buffers->offsets_bytes[r];
		for (uint64_t i = 0; i < buffers->blocks_bytes[r]; i++)
			image[at++] = byte_of(r, i, salt);
	}
	rank->nwrong += memcmp(buffers->recv, image, sizeof(buffers->recv)) !=
			0;
}

static void allgatherv(struct rank *rank, uint32_t salt)
{
	struct buffers *buffers = &memory[rank->number];
	struct mmc_operation operation = {
		.kind = MMC_ALLGATHERV,
		.blocks_bytes = buffers->blocks_bytes,
		.send = buffers->send,
		.recv = buffers->recv,
	};
	bool adjoining = salt % 4 == 0;
	bool in_place = salt % 2;
	uint8_t *own = buffers->send;
	uint64_t nbytes;

	lay_out(buffers, rank->number, salt);
	memset(buffers->recv, UNTOUCHED, sizeof(buffers->recv));
	if (!adjoining)
		operation.offsets_bytes = buffers->offsets_bytes;
	if (in_place) {
		operation.send = NULL;
		own = buffers->recv + buffers->offsets_bytes[rank->number];
	}
	nbytes = buffers->blocks_bytes[rank->number];
	for (uint64_t i = 0; i < nbytes; i++)
		own[i] = byte_of(rank->number, i, salt);
	rank->nwrong += start(rank, &operation, NULL) != 0;
	check_result(rank, buffers, salt, adjoining);
}

static void *allgatherv_sizes(void *argument)
{
	for (uint32_t salt = 0; salt < 42; salt++)
		allgatherv(argument, salt);
	return NULL;
}

static void *alternate(void *argument)
{
	for (uint32_t salt = 0; salt < 42; salt++) {
		allgatherv(argument, salt);
		bcast(argument, salt % NRANKS, sizes[salt % 7], salt);
	}
	return NULL;
}

static void on_healthy(void *(*run)(void *))
{
	open_all("");
	on_all(run);
	close_all();
}

static void on_lossy(void *(*run)(void *))
{
	for (repair = 0; repair <= 2; repair++) {
		open_all("loss=0.1,dup=0.05,reorder=0.05,seed=7,kind=all");
		on_all(run);
		close_all();
	}
	repair = 0;
}

/* Bcasts of any size and root bring the right bytes, with and without loss. */
static void bcasts(void)
{
	on_healthy(bcast_sizes);
	on_lossy(bcast_sizes);
}

/* Allgathervs of any layout bring the right bytes, with and without loss. */
static void allgathervs(void)
{
	on_healthy(allgatherv_sizes);
	on_lossy(allgatherv_sizes);
}

/* Operations of both kinds may alternate on one stream. */
static void in_turns(void)
{
	on_healthy(alternate);
	on_lossy(alternate);
}

/* ---- memory and channels ------------------------------------------------- */

static uint64_t allocations_of(const struct rank *rank)
{
	uint64_t values[200];

	if (!CHECK(mmc_counter_count() <= 200))
		return 0;
	mmc_stream_counters(rank->streams[0], values);
	for (uint32_t i = 0; i < mmc_counter_count(); i++)
		if (strcmp(mmc_counter_name(i), "allocations") == 0)
			return values[i];
	return UINT64_MAX;
}

static void *repeat(void *argument)
{
	struct rank *rank = argument;
	uint64_t before;

	/* The root of a Bcast retains a copy, so every rank must have allocated one. */
	for (uint32_t i = 0; i < 6; i++) {
		allgatherv(rank, 6);
		bcast(rank, i % NRANKS, 100000, i);
	}
	before = allocations_of(rank);
	for (uint32_t i = 0; i < 12; i++) {
		allgatherv(rank, 6);
		bcast(rank, i % NRANKS, 100000, i);
	}
	rank->nwrong += allocations_of(rank) != before;
	return NULL;
}

static void nothing_is_allocated_again(void)
{
	on_healthy(repeat);
}

static void *use_many_streams(void *argument)
{
	struct rank *rank = argument;
	struct mmc_stream *first = rank->streams[0];
	struct mmc_stream *streams[NSTREAMS];

	for (uint64_t i = 0; i < NSTREAMS; i++) {
		const struct mmc_stream_options options = {
			.channel = (i * 77 % NSTREAMS + 5) << 20,
			.eager_bytes = 65536,
			.timeout_ns = 10 * MMC_S_NS,
		};

		rank->nwrong += mmc_stream_create(rank->team, &options,
						  &streams[i]) != 0;
	}
	pthread_barrier_wait(&barrier);
	for (uint32_t i = 0; i < NSTREAMS; i++) {
		rank->streams[0] = streams[i * 3 % NSTREAMS];
		bcast(rank, i % NRANKS, 100 + i, i);
	}
	pthread_barrier_wait(&barrier);
	for (uint32_t i = 0; i < NSTREAMS; i += 2)
		mmc_stream_close(streams[i]);
	pthread_barrier_wait(&barrier);
	for (uint32_t i = 1; i < NSTREAMS; i += 2) {
		rank->streams[0] = streams[i];
		bcast(rank, i % NRANKS, 100 + i, i);
	}
	pthread_barrier_wait(&barrier);
	for (uint32_t i = 1; i < NSTREAMS; i += 2)
		mmc_stream_close(streams[i]);
	rank->streams[0] = first;
	return NULL;
}

/* Datagrams find their stream among many, even after some have been closed. */
static void many_streams(void)
{
	on_healthy(use_many_streams);
}

/* ---- what does not fit --------------------------------------------------- */

/* Two operations that disagree, and the failure that is reported. */
struct mismatch {
	struct mmc_operation operations[2];
	struct mmc_failure said;
};

static const uint64_t ones[] = { 1, 1, 1 };
static const uint64_t others[] = { 1, 2, 0 };

static const struct mismatch mismatches[] = {
	{ { { .kind = MMC_BCAST, .root = 2, .block_bytes = 9 },
	    { .kind = MMC_ALLGATHER, .block_bytes = 9 } },
	  { .kind_min = MMC_ALLGATHER,
	    .kind_max = MMC_BCAST,
	    .block_bytes_min = 9,
	    .block_bytes_max = 9 } },
	{ { { .kind = MMC_BCAST, .root = 2, .block_bytes = 9 },
	    { .kind = MMC_BCAST, .root = 1, .block_bytes = 9 } },
	  { .kind_min = MMC_BCAST,
	    .kind_max = MMC_BCAST,
	    .root_min = 1,
	    .root_max = 2,
	    .block_bytes_min = 9,
	    .block_bytes_max = 9 } },
	{ { { .kind = MMC_BCAST, .root = 1, .block_bytes = 20 },
	    { .kind = MMC_BCAST, .root = 1, .block_bytes = 9 } },
	  { .kind_min = MMC_BCAST,
	    .kind_max = MMC_BCAST,
	    .root_min = 1,
	    .root_max = 1,
	    .block_bytes_min = 9,
	    .block_bytes_max = 20 } },
	{ { { .kind = MMC_ALLGATHERV, .blocks_bytes = ones },
	    { .kind = MMC_ALLGATHERV, .blocks_bytes = others } },
	  { .kind_min = MMC_ALLGATHERV, .kind_max = MMC_ALLGATHERV } },
};

static const struct mismatch *mismatch;

static void *start_another(void *argument)
{
	struct rank *rank = argument;
	struct mmc_operation operation =
		mismatch->operations[rank->number == 1];
	const struct mmc_failure *said = &mismatch->said;
	struct mmc_failure failure;

	operation.recv = memory[rank->number].recv;
	rank->nwrong += start(rank, &operation, &failure) != -MMC_EMISMATCH;
	rank->nwrong += failure.kind_min != said->kind_min;
	rank->nwrong += failure.kind_max != said->kind_max;
	if (said->kind_min == said->kind_max) {
		rank->nwrong += failure.root_min != said->root_min;
		rank->nwrong += failure.root_max != said->root_max;
	}
	rank->nwrong += failure.block_bytes_min != said->block_bytes_min;
	rank->nwrong += failure.block_bytes_max != said->block_bytes_max;
	return NULL;
}

static void mismatches_are_told(void)
{
	for (size_t i = 0; i < sizeof(mismatches) / sizeof(*mismatches); i++) {
		mismatch = &mismatches[i];
		on_healthy(start_another);
	}
}

static void nonsense_is_refused(void)
{
	static const uint64_t huge[] = { 1, UINT64_MAX, UINT64_MAX };
	const struct mmc_operation bad[] = {
		{ .kind = 0 },
		{ .kind = 4 },
		{ .kind = MMC_BCAST, .root = NRANKS },
		{ .kind = MMC_BCAST, .block_bytes = UINT64_MAX },
		{ .kind = MMC_ALLGATHERV },
		{ .kind = MMC_ALLGATHERV, .blocks_bytes = huge },
	};

	open_all("");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(start(&ranks[0], &bad[i], NULL), -MMC_EINVAL);
		CHECK(strlen(mmc_last_error()) > 10);
	}
	on_all(alternate);
	close_all();
}

CHECK_MAIN(CHECK_TEST(bcasts), CHECK_TEST(allgathervs), CHECK_TEST(in_turns),
	   CHECK_TEST(nothing_is_allocated_again), CHECK_TEST(many_streams),
	   CHECK_TEST(mismatches_are_told), CHECK_TEST(nonsense_is_refused))
