/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces of simulated ranks: what each did, in virtual time. */
#include <mpimcast/sim.h>

#include "check.h"

enum { NRANKS = 5, NSTREAMS = 2, NSLOTS = 4096 };

static struct mmc_trace_event events[NSLOTS];
static uint32_t nevents;

/* Runs a spec, and reads what it has traced. */
static struct mmc_sim_result traced(const struct mmc_sim_spec *spec)
{
	struct mmc_trace *trace;
	struct mmc_sim_result result;
	uint64_t nadded;

	CHECK_EQ(mmc_trace_create(NSLOTS, &trace), 0);
	CHECK_EQ(mmc_sim_run_on(spec, NULL, NULL, trace, &result), 0);
	CHECK_EQ(result.violation[0], 0);
	nevents = mmc_trace_read(trace, events, &nadded);
	CHECK_EQ(nadded, nevents);
	mmc_trace_free(trace);
	return result;
}

/* Returns the sum of `count` over the events of a kind, of one rank. */
static uint64_t counted(uint32_t rank, uint32_t kind)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nevents; i++)
		if (events[i].kind == kind &&
		    events[i].track / NSTREAMS == rank)
			sum += events[i].count;
	return sum;
}

static struct mmc_sim_spec lossy_spec(void)
{
	struct mmc_sim_spec spec;

	mmc_sim_spec_init(&spec);
	spec.nranks = NRANKS;
	spec.nstreams = NSTREAMS;
	spec.nops = 3;
	spec.entry_spread_ns = 50 * 1000;
	spec.loss_ppm = 50000;
	return spec;
}

/* Each operation is on the track of its rank and stream, and the last one ends it. */
static void operations_have_tracks(void)
{
	struct mmc_sim_spec spec = lossy_spec();
	struct mmc_sim_result result = traced(&spec);
	uint32_t nops[NRANKS * NSTREAMS] = { 0 };
	uint64_t end_ns[NRANKS] = { 0 };

	for (uint32_t i = 0; i < nevents; i++) {
		if (events[i].kind != MMC_TRACE_OPERATION)
			continue;
		CHECK(events[i].track < NRANKS * NSTREAMS);
		CHECK_EQ(events[i].amount, spec.block_bytes);
		CHECK_EQ(events[i].epoch, ++nops[events[i].track]);
		if (events[i].end_ns > end_ns[events[i].track / NSTREAMS])
			end_ns[events[i].track / NSTREAMS] = events[i].end_ns;
	}
	for (uint32_t i = 0; i < NRANKS * NSTREAMS; i++)
		CHECK_EQ(nops[i], spec.nops);
	for (uint32_t r = 0; r < NRANKS; r++)
		CHECK_EQ(end_ns[r], result.ranks[r].end_ns);
	mmc_sim_result_clear(&result);
}

/* What was lost and repaired is traced while the operation is under way. */
static void repairs_are_traced(void)
{
	struct mmc_sim_spec spec = lossy_spec();
	struct mmc_sim_result result = traced(&spec);
	uint64_t nrepairs = 0;

	for (uint32_t r = 0; r < NRANKS; r++) {
		CHECK_EQ(counted(r, MMC_TRACE_LOST),
			 result.ranks[r].lost_chunks);
		CHECK_EQ(counted(r, MMC_TRACE_REPAIRED),
			 result.ranks[r].repaired_chunks);
	}
	for (uint32_t i = 1; i < nevents; i++)
		nrepairs += events[i].kind == MMC_TRACE_REPAIRED &&
			    events[i - 1].kind != MMC_TRACE_OPERATION;
	CHECK(nrepairs > 0);
	mmc_sim_result_clear(&result);
}

/* Each rank multicasts all its chunks in one turn of an operation, before that ends. */
static void turns_are_traced(void)
{
	struct mmc_sim_spec spec = lossy_spec();
	struct mmc_sim_result result;
	uint64_t nchunks;

	spec.loss_ppm = 0;
	spec.block_bytes = 300000;
	nchunks = (spec.block_bytes + spec.chunk_bytes - 1) / spec.chunk_bytes;
	result = traced(&spec);
	for (uint32_t r = 0; r < NRANKS; r++)
		CHECK_EQ(counted(r, MMC_TRACE_TURN),
			 nchunks * spec.nops * NSTREAMS);
	for (uint32_t i = 0; i < nevents; i++) {
		if (events[i].kind != MMC_TRACE_TURN)
			continue;
		CHECK_EQ(events[i].count, nchunks);
		/* A byte takes 80 ps. */
		CHECK(events[i].end_ns - events[i].begin_ns >=
		      spec.block_bytes * 8 / 100);
		CHECK(events[i].end_ns <=
		      result.ranks[events[i].track / NSTREAMS].end_ns);
	}
	mmc_sim_result_clear(&result);
}

/* A trace changes nothing. */
static void tracing_changes_nothing(void)
{
	struct mmc_sim_spec spec = lossy_spec();
	struct mmc_sim_result with = traced(&spec);
	struct mmc_sim_result without;

	CHECK_EQ(mmc_sim_run(&spec, &without), 0);
	CHECK_EQ(with.events, without.events);
	CHECK_EQ(with.time_ns, without.time_ns);
	mmc_sim_result_clear(&with);
	mmc_sim_result_clear(&without);
}

/* Events number their tracks by 16 bits, so more streams are refused. */
static void too_many_tracks(void)
{
	struct mmc_sim_spec spec;
	struct mmc_sim_result result;
	struct mmc_trace *trace;

	mmc_sim_spec_init(&spec);
	spec.nranks = 4096;
	spec.nstreams = 17;
	CHECK_EQ(mmc_trace_create(1, &trace), 0);
	CHECK_EQ(mmc_sim_run_on(&spec, NULL, NULL, trace, &result),
		 -MMC_EINVAL);
	mmc_trace_free(trace);
}

CHECK_MAIN(CHECK_TEST(operations_have_tracks), CHECK_TEST(repairs_are_traced),
	   CHECK_TEST(turns_are_traced), CHECK_TEST(tracing_changes_nothing),
	   CHECK_TEST(too_many_tracks))
