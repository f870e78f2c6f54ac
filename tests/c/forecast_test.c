/* SPDX-License-Identifier: BSD-3-Clause */
/* Forecasts are those of the loss process itself, drawn many times. */
#include "core/flow/forecast.h"

#include "check.h"
#include "support/bits.h"
#include "support/prng.h"

#define NTRIALS 4000

static uint32_t share(double chance)
{
	return (uint32_t)(chance * 4294967296.0);
}

static bool is_lost(struct mmc_prng *prng, uint32_t loss)
{
	return (uint32_t)mmc_prng_next(prng) < loss;
}

/* What was drawn of an operation beyond its data and parity. */
struct drawn {
	unsigned trips;
	uint32_t repairs; /* chunks that are sent again, to all */
};

/* Draws how many trips it takes until a chunk is here that needs one. */
static unsigned draw_trips(struct mmc_prng *prng, uint32_t loss)
{
	unsigned trips = 1;

	/* The request may be lost, or the repair. */
	while (is_lost(prng, loss) || is_lost(prng, loss))
		trips++;
	return trips;
}

/*
 * Draws an operation. A group has `ndata` chunks and `nparity`, of which as many repairs are
 * sent as the receiver lacks that has lost most. Without parity each chunk is a group, and
 * is repeated until all receivers have it.
 */
static struct drawn draw(struct mmc_prng *prng,
			 const struct mmc_forecast *forecast, uint32_t ndata,
			 uint32_t nparity)
{
	uint32_t loss = forecast->loss;
	struct drawn drawn = { 0 };

	for (uint32_t g = 0; g < forecast->tail_chunks / ndata; g++) {
		uint32_t repairs = 0;

		for (uint32_t r = 0; r < forecast->nreceivers; r++) {
			uint32_t nlost = 0;

			for (uint32_t c = 0; c < ndata + nparity; c++)
				nlost += is_lost(prng, loss);
			if (nlost <= nparity)
				continue;
			drawn.trips = mmc_max_u32(drawn.trips,
						  draw_trips(prng, loss));
			while (nparity == 0 && is_lost(prng, loss))
				nlost++;
			repairs = mmc_max_u32(repairs, nlost - nparity);
		}
		drawn.repairs += repairs;
	}
	return drawn;
}

static int by_number(const void *one, const void *other)
{
	return *(const int *)one - *(const int *)other;
}

/*
 * Checks half of the mean time plus half of its 99th percentile. Of draws that is known
 * but for the noise of some of them, and it goes up in steps.
 */
static void check_cost(uint64_t forecast_ns,
		       const struct mmc_forecast *forecast, uint32_t ndata,
		       uint32_t nparity)
{
	struct mmc_prng prng = { .state = check_seed() };
	static int trips[NTRIALS];
	double trip_ns = (double)forecast->trip_ns / 2;
	double data_ns = (double)forecast->data_ns;
	double least_ns = data_ns * (ndata + nparity) / ndata;
	double sum = 0;
	double repairs = 0;

	for (unsigned i = 0; i < NTRIALS; i++) {
		struct drawn drawn = draw(&prng, forecast, ndata, nparity);

		trips[i] = (int)drawn.trips;
		sum += trips[i];
		repairs += drawn.repairs;
	}
	qsort(trips, NTRIALS, sizeof(trips[0]), by_number);
	least_ns += trip_ns * sum / NTRIALS;
	least_ns += data_ns * repairs / forecast->tail_chunks / NTRIALS;
	CHECK((double)forecast_ns >
	      0.995 * (least_ns + trip_ns * trips[NTRIALS * 985 / 1000]));
	CHECK((double)forecast_ns <
	      1.005 * (least_ns + trip_ns * trips[NTRIALS * 995 / 1000]));
}

static void agrees_with_draws(void)
{
	static const double losses[] = { 0.0004, 0.003, 0.02, 0.06 };
	static const struct {
		uint32_t data;
		uint32_t parity;
	} codes[] = { { 4, 1 }, { 8, 2 }, { 16, 1 }, { 32, 4 } };
	struct mmc_forecast forecast = {
		.data_ns = 10 * MMC_MS_NS,
		.trip_ns = 3 * MMC_MS_NS,
		.block_chunks = 64,
		.tail_chunks = 64,
		.run_chunks = 1,
	};

	for (uint32_t nreceivers = 1; nreceivers <= 5; nreceivers += 4)
		for (unsigned l = 0; l < sizeof(losses) / sizeof(losses[0]);
		     l++) {
			forecast.nreceivers = nreceivers;
			forecast.loss = share(losses[l]);
			check_cost(mmc_forecast_repeat_ns(&forecast), &forecast,
				   1, 0);
			for (unsigned c = 0;
			     c < sizeof(codes) / sizeof(codes[0]); c++)
				check_cost(mmc_forecast_code_ns(
						   &forecast, codes[c].data,
						   codes[c].parity),
					   &forecast, codes[c].data,
					   codes[c].parity);
		}
}

/* What is chosen costs least among what is considered. */
static void chooses_the_least(void)
{
	struct mmc_prng prng = { .state = check_seed() };

	for (unsigned i = 0; i < 2000; i++) {
		const struct mmc_forecast forecast = {
			.data_ns = UINT64_C(1) << (10 + prng.state % 24),
			.trip_ns = mmc_prng_below(&prng, 400 * MMC_MS_NS),
			.block_chunks = 1 + i,
			.tail_chunks =
				1 + (uint32_t)mmc_prng_below(&prng, 5000),
			.nreceivers = 1 + (uint32_t)mmc_prng_below(&prng, 200),
			.loss = (uint32_t)mmc_prng_next(&prng) >>
				mmc_prng_below(&prng, 32),
			.run_chunks = 1 + (uint32_t)mmc_prng_below(&prng, 20),
		};
		uint32_t data = 1 + (uint32_t)mmc_prng_below(&prng, 128);
		uint32_t most = (uint32_t)mmc_prng_below(&prng, 33);
		uint32_t best = mmc_forecast_parity(&forecast, data, most);
		uint64_t best_ns =
			best == 0 ? mmc_forecast_repeat_ns(&forecast)
				  : mmc_forecast_code_ns(&forecast, data, best);

		CHECK(best <= most);
		CHECK(best_ns <= mmc_forecast_repeat_ns(&forecast));
		for (uint32_t parity = 1; parity <= most; parity *= 2)
			CHECK(best_ns <=
			      mmc_forecast_code_ns(&forecast, data, parity));
	}
}

/* Returns a message of `nchunks`, all of which arrive within the time of a repair. */
static struct mmc_forecast message_of(uint32_t nchunks, uint64_t data_ns,
				      uint64_t trip_ns, double loss)
{
	return (struct mmc_forecast){
		.data_ns = data_ns,
		.trip_ns = trip_ns,
		.block_chunks = nchunks,
		.tail_chunks = nchunks,
		.nreceivers = 1,
		.loss = share(loss),
		.run_chunks = 1,
	};
}

/* Over a long link parity pays, over a short one or without losses it does not. */
static void parity_pays_over_long_links(void)
{
	struct mmc_forecast forecast =
		message_of(2083, 24 * MMC_MS_NS, 25 * MMC_MS_NS, 0.001);

	CHECK_EQ(mmc_forecast_parity(&forecast, 32, 4), 2);
	CHECK_EQ(mmc_forecast_parity(&forecast, 32, 0), 0);
	/* A run of losses that groups share takes more of each than single ones do. */
	forecast.run_chunks = 3 * 8;
	CHECK_EQ(mmc_forecast_parity(&forecast, 32, 4), 4);
	forecast.run_chunks = 1;
	forecast.trip_ns = 100 * MMC_US_NS;
	forecast.tail_chunks = 9;
	CHECK_EQ(mmc_forecast_parity(&forecast, 32, 4), 0);
	forecast.trip_ns = 400 * MMC_MS_NS;
	forecast.loss = 0;
	CHECK_EQ(mmc_forecast_parity(&forecast, 32, 4), 0);
}

/* Repairs that cost less than a microsecond count, too: the parity here costs less still. */
static void short_times_count(void)
{
	const struct mmc_forecast forecast =
		message_of(16, 5 * MMC_US_NS, 180 * MMC_US_NS, 0.0005);
	uint64_t repeat_ns = mmc_forecast_repeat_ns(&forecast);

	/* The mean repair time of each chunk is 90 ns, of which half counts. */
	CHECK(repeat_ns > 5 * MMC_US_NS + 700);
	CHECK(repeat_ns < 5 * MMC_US_NS + 740);
	CHECK_EQ(mmc_forecast_parity(&forecast, 16, 1), 1);
}

CHECK_MAIN(CHECK_TEST(short_times_count), CHECK_TEST(agrees_with_draws),
	   CHECK_TEST(chooses_the_least),
	   CHECK_TEST(parity_pays_over_long_links))
