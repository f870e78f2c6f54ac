/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines gather over Soft-RoCE, and read what multicast loses. Once an operation has
 * ended or failed on a rank, its right neighbour can read there no longer, and nobody
 * else ever could.
 */
#include "drivers/fault/fault.h"
#include "engine/engine.h"
#include "engine/state.h"
#include "verbs_refusal.h"

enum { NRANKS = 3, NCHUNKS = 60, BLOCK_BYTES = NCHUNKS * CHUNK_BYTES };

struct rank {
	struct mmc_engine *engine;
	struct mmc_team *team;
	struct mmc_stream *stream;
	struct mmc_request *request;
	uint8_t *recv;
};

static struct team team; /* the driver's endpoints */
static struct rank ranks[NRANKS];
/* The latest advert that rank 2 has had of rank 1, if it has data. */
static struct mmc_advert advert;

static void open_engine(uint32_t r, const struct mmc_team_options *options)
{
	struct mmc_team_options own = *options;
	struct mmc_endpoint *lossy;

	own.rank = r;
	succeed(mmc_fault_wrap("loss=0.3,kind=multicast,seed=5", r,
			       team.endpoints[r], MMC_CHECKSUM_HEADER, false,
			       &lossy));
	succeed(mmc_engine_create_stepped(&ranks[r].engine));
	succeed(mmc_team_create_on(ranks[r].engine, lossy, &own,
				   team.buffer_bytes, &ranks[r].team));
}

static void open_all(bool owned)
{
	struct mmc_team_options options = team_options(NRANKS);
	const struct mmc_stream_options stream = {
		.channel = UINT64_C(7) << 16,
		.repair = MMC_REPAIR_READ,
		.timeout_ns = TIMEOUT_NS,
	};

	options.timeout_ns = TIMEOUT_NS;
	memset(ranks, 0, sizeof(ranks));
	advert = (struct mmc_advert){ 0 };
	team_open(&team, &options);
	for (uint32_t r = 0; r < NRANKS; r++)
		open_engine(r, &options);
	for (uint32_t r = 0; r < NRANKS; r++) {
		size_t nbytes = NRANKS * BLOCK_BYTES;

		succeed(mmc_team_connect(ranks[r].team, team.addresses));
		succeed(mmc_stream_create(ranks[r].team, &stream,
					  &ranks[r].stream));
		if (owned)
			succeed(mmc_memory_allocate(ranks[r].engine, nbytes,
						    (void **)&ranks[r].recv));
		else
			ranks[r].recv = malloc(nbytes);
	}
}

static void close_all(bool owned)
{
	for (uint32_t r = 0; r < NRANKS; r++) {
		mmc_request_free(ranks[r].request);
		if (owned)
			mmc_memory_free(ranks[r].engine, ranks[r].recv);
		else
			free(ranks[r].recv);
		mmc_stream_close(ranks[r].stream);
		mmc_team_close(ranks[r].team);
		mmc_engine_destroy(ranks[r].engine);
	}
}

static void start_all(void)
{
	for (uint32_t r = 0; r < NRANKS; r++) {
		const struct mmc_operation operation = {
			.kind = MMC_ALLGATHER,
			.block_bytes = BLOCK_BYTES,
			.recv = ranks[r].recv,
		};

		memset(ranks[r].recv, 0xee, NRANKS * BLOCK_BYTES);
		memset(ranks[r].recv + r * BLOCK_BYTES, (int)r + 1,
		       BLOCK_BYTES);
		CHECK_EQ(mmc_start(ranks[r].stream, &operation, 0,
				   &ranks[r].request),
			 MMC_EAGAIN);
	}
}

/*
 * Steps the engines of `first` and higher ranks once, and notes the advert. Returns how
 * many of these ranks have ended.
 */
static uint32_t step_from(uint32_t first)
{
	uint32_t nended = 0;

	usleep(100); /* the guest's only processor also sends */
	for (uint32_t r = first; r < NRANKS; r++) {
		mmc_engine_step(ranks[r].engine);
		nended += mmc_request_is_complete(ranks[r].request);
	}
	if (ranks[2].request->op != NULL &&
	    ranks[2].request->op->repair.fetcher.advert.has_data)
		advert = ranks[2].request->op->repair.fetcher.advert;
	return nended;
}

static void end_all(void)
{
	uint64_t until_ns = patience_ns();

	while (step_from(0) < NRANKS && CHECK(mmc_verbs_clock_ns() < until_ns))
		;
}

/* Checks that neither neighbour of rank 1 can read by the keys of the advert. */
static void check_refused(void)
{
	const struct mmc_stretch stretches[] = {
		{ advert.data_address, advert.data_key, 100 },
		{ advert.map_address, advert.map_key, 8 },
	};

	CHECK(advert.has_data);
	for (uint32_t i = 0; i < 2; i++) {
		await_up(&team, 2);
		CHECK_EQ(read_as(&team, 2, stretches[i]), 0);
		await_up(&team, 0);
		CHECK_EQ(read_as(&team, 0, stretches[i]), 0);
	}
}

/* All data is right, much of it was read, and no key works any more. */
static void after_an_operation(void)
{
	for (int owned = 0; owned <= 1; owned++) {
		struct mmc_counters counters;

		open_all(owned);
		start_all();
		end_all();
		for (uint32_t r = 0; r < NRANKS; r++) {
			CHECK_EQ(mmc_request_wait(ranks[r].request, 0), 0);
			for (uint32_t i = 0; i < NRANKS * BLOCK_BYTES; i++)
				if (!CHECK_EQ(ranks[r].recv[i],
					      i / BLOCK_BYTES + 1))
					break;
		}
		mmc_stream_counters(ranks[2].stream, counters.value);
		CHECK(counters.value[MMC_COUNT_READ_CHUNKS] > 0);
		CHECK_EQ(team.endpoints[1]->reconnects, 0);
		check_refused();
		close_all(owned);
	}
}

/* Rank 1 gives up while it is read: its memory is its own at once. */
static void after_a_failure(void)
{
	for (int owned = 0; owned <= 1; owned++) {
		open_all(owned);
		start_all();
		while (ranks[0].request->op->state != MMC_OP_FLOW ||
		       ranks[1].request->op->state != MMC_OP_FLOW)
			step_from(0);
		/* Rank 1 cannot end without rank 0, of whose chunks it has lost some. */
		while (!advert.has_data)
			CHECK_EQ(step_from(1), 0);
		mmc_request_cancel(ranks[1].request);
		CHECK_EQ(mmc_request_wait(ranks[1].request, 0), -MMC_ECANCELED);
		CHECK(!ranks[1].request->granted);
		end_all();
		CHECK(mmc_request_wait(ranks[2].request, 0) < 0);
		check_refused();
		close_all(owned);
	}
}

CHECK_MAIN(CHECK_TEST(after_an_operation), CHECK_TEST(after_a_failure))
