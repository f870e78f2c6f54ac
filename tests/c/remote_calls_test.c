/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program asks about a team, a proxy answers as this process's engine would. */
#include "engine/remote/calls.h"

#include "offloaded.h"

#define NBYTES 5000

static uint8_t results[RANKS_MAX][RANKS_MAX * NBYTES];
static struct job job;

static void begin_job(void)
{
	job = (struct job){ .nranks = 2, .proxied = 3 };
	begin_proxy();
	open_job(&job);
}

static void end_job(void)
{
	close_job(&job);
	end_proxy();
}

static struct mmc_operation gather(uint32_t r)
{
	return (struct mmc_operation){
		.kind = MMC_ALLGATHER,
		.block_bytes = NBYTES,
		.recv = results[r],
	};
}

static uint64_t counter(const uint64_t *values, const char *name)
{
	for (uint32_t i = 0; i < mmc_counter_count(); i++)
		if (strcmp(mmc_counter_name(i), name) == 0)
			return values[i];
	CHECK(false);
	return 0;
}

static void counters(void)
{
	uint64_t values[256] = { 0 };

	begin_job();
	for (uint32_t r = 0; r < 2; r++) {
		const struct mmc_operation operation = gather(r);

		CHECK_EQ(begin(&job.ranks[r], &operation), MMC_EAGAIN);
	}
	for (uint32_t r = 0; r < 2; r++)
		CHECK_EQ(finish(&job.ranks[r]), 0);
	mmc_stream_counters(job.ranks[0].stream, values);
	CHECK_EQ(counter(values, "tx_multicast_bytes") >= NBYTES, true);
	mmc_team_counters(job.ranks[0].team, values);
	CHECK(counter(values, "tx_calls") > 0);
	end_job();
}

static void whom_a_request_awaits(void)
{
	const struct mmc_operation operation = gather(0);
	struct mmc_waiting waiting;

	begin_job();
	CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
	do {
		CHECK_EQ(mmc_request_wait(job.ranks[0].request, SLICE_NS),
			 MMC_EAGAIN);
		mmc_request_waiting(job.ranks[0].request, &waiting);
	} while (waiting.epoch == 0);
	CHECK_EQ(waiting.epoch, 1);
	CHECK_EQ(waiting.unentered, 1);
	CHECK(waiting.waited_ns >= SLICE_NS);
	mmc_request_cancel(job.ranks[0].request);
	mmc_request_waiting(job.ranks[0].request, &waiting);
	CHECK_EQ(waiting.rank, UINT32_MAX);
	CHECK_EQ(finish(&job.ranks[0]), -MMC_ECANCELED);
	end_job();
}

static void failures(void)
{
	struct mmc_failure failure;
	struct mmc_unicast_reason reason;

	begin_job();
	mmc_stream_failure(job.ranks[0].stream, &failure);
	CHECK_EQ(failure.error, 0);
	CHECK_EQ(mmc_stream_unicast_epoch(job.ranks[0].stream), 0);
	mmc_stream_unicast_reason(job.ranks[0].stream, &reason);
	CHECK_EQ(reason.epoch, 0);
	mmc_stream_fail(job.ranks[0].stream, -MMC_EGONE);
	mmc_stream_failure(job.ranks[0].stream, &failure);
	CHECK_EQ(failure.error, -MMC_EGONE);
	CHECK_EQ(failure.culprit, 0);
	end_job();
}

/* Probes of both ranks arrive at both, within a patient test's time. */
static void *probe(void *argument)
{
	struct mmc_probe heard = { .unheard = 1 };

	for (int i = 0; i < 50 && heard.unheard + heard.unheard_full > 0; i++)
		CHECK_EQ(mmc_team_probe(argument, 100 * MMC_MS_NS, &heard), 0);
	CHECK_EQ(heard.unheard_full, 0);
	return NULL;
}

static void probes(void)
{
	pthread_t thread;

	begin_job();
	CHECK_EQ(pthread_create(&thread, NULL, probe, job.ranks[1].team), 0);
	probe(job.ranks[0].team);
	pthread_join(thread, NULL);
	end_job();
}

static void surveys(void)
{
	struct mmc_hearing heard[RANKS_MAX] = { { .ndistinct = 0 } };
	const struct mmc_burst burst = {
		.peer = UINT32_MAX,
		.count = 10,
		.nbytes = 100,
	};

	begin_job();
	for (uint32_t r = 0; r < 2; r++)
		CHECK_EQ(mmc_team_survey_begin(job.ranks[r].team, 5, 10), 0);
	CHECK_EQ(mmc_team_survey_send(job.ranks[0].team, &burst), 0);
	for (int i = 0; i < 100 && heard[0].ndistinct < 10; i++)
		CHECK_EQ(mmc_team_survey_listen(job.ranks[1].team,
						50 * MMC_MS_NS, heard),
			 0);
	CHECK_EQ(heard[0].ndistinct, 10);
	CHECK_EQ(heard[0].longest_bytes, 100);
	end_job();
}

/* A stranger that the proxy has refused is known here. */
static void strangers(void)
{
	struct mmc_stranger found[MMC_STRANGERS_MAX];

	begin_job();
	CHECK_EQ(mmc_team_strangers(job.ranks[0].team, found), 0);
	end_job();
}

/* Two teams are not connected with a wrong number of addresses, nor opened twice. */
static void options_are_checked(void)
{
	struct mmc_team_options options;
	struct mmc_engine *engine;
	struct mmc_team *team;

	begin_job();
	CHECK_EQ(mmc_engine_create(&engine), 0);
	options = options_of(&job, 0);
	options.chunk_bytes = 0;
	CHECK_EQ(mmc_team_create(engine, &options, &team), -MMC_EINVAL);
	options = options_of(&job, 0);
	snprintf(options.fault, sizeof(options.fault), "loss=2");
	CHECK_EQ(mmc_team_create(engine, &options, &team), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "a number from 0 to 1") != NULL);
	snprintf(options.proxy, sizeof(options.proxy), "no-such-proxy-%d",
		 (int)getpid());
	CHECK_EQ(mmc_team_create(engine, &options, &team), -MMC_ENODEV);
	mmc_engine_destroy(engine);
	end_job();
}

CHECK_MAIN(CHECK_TEST(counters), CHECK_TEST(whom_a_request_awaits),
	   CHECK_TEST(failures), CHECK_TEST(probes), CHECK_TEST(surveys),
	   CHECK_TEST(strangers), CHECK_TEST(options_are_checked))
