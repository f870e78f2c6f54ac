/* SPDX-License-Identifier: BSD-3-Clause */
/* Surveys over loopback, each rank a thread with an engine; see loopback.h. */
#include "loopback.h"

#define NNUMBERS 64
#define PATIENCE_NS (5 * MMC_S_NS)

static uint32_t ids;

/* Begins a survey on this rank, and waits until all ranks have begun theirs. */
static void begin(struct rank *rank, uint32_t id, uint32_t nnumbers)
{
	rank->nwrong += mmc_team_survey_begin(rank->team, id, nnumbers) != 0;
	pthread_barrier_wait(&barrier);
}

/* Listens until `count` numbers of each other rank have arrived. */
static void listen_for(struct rank *rank, uint32_t count,
		       struct mmc_hearing *heard)
{
	bool all = false;

	for (uint64_t spent_ns = 0; !all && spent_ns < PATIENCE_NS;
	     spent_ns += SLICE_NS) {
		rank->nwrong += mmc_team_survey_listen(rank->team, SLICE_NS,
						       heard) != 0;
		all = true;
		for (uint32_t r = 0; r < NRANKS; r++)
			all &= r == rank->number || heard[r].ndistinct >= count;
	}
	rank->nwrong += !all;
}

static void *multicast(void *argument)
{
	struct rank *rank = argument;
	struct mmc_hearing heard[NRANKS];
	const struct mmc_burst burst = {
		.peer = MMC_PEER_ALL,
		.count = NNUMBERS,
		.nbytes = CHUNK_BYTES,
	};

	begin(rank, ids, NNUMBERS);
	rank->nwrong += mmc_team_survey_send(rank->team, &burst) != 0;
	listen_for(rank, NNUMBERS, heard);
	for (uint32_t r = 0; r < NRANKS; r++) {
		if (r == rank->number)
			continue;
		rank->nwrong += heard[r].ndistinct != NNUMBERS;
		rank->nwrong += heard[r].longest_bytes != CHUNK_BYTES;
		rank->nwrong += heard[r].last_ns < heard[r].first_ns;
		rank->nwrong += (heard[r].nduplicates > 0) != (*fault != '\0');
	}
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void all_is_heard(void)
{
	open_all("");
	for (ids = 1; ids < 4; ids++)
		on_all(multicast);
	close_all();
}

static void duplicates_are_counted(void)
{
	open_all("dup=0.5,kind=all,seed=3");
	on_all(multicast);
	close_all();
}

static void *lose(void *argument)
{
	struct rank *rank = argument;
	struct mmc_hearing heard[NRANKS];
	const struct mmc_burst burst = {
		.peer = MMC_PEER_ALL,
		.count = NNUMBERS,
		.nbytes = MMC_SURVEY_BYTES_MIN,
	};

	begin(rank, 1, NNUMBERS);
	rank->nwrong += mmc_team_survey_send(rank->team, &burst) != 0;
	listen_for(rank, NNUMBERS / 4, heard);
	mmc_team_survey_listen(rank->team, 50 * MMC_MS_NS, heard);
	for (uint32_t r = 0; r < NRANKS; r++)
		if (r != rank->number)
			rank->nwrong += heard[r].ndistinct > NNUMBERS * 3 / 4;
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void what_is_lost_is_missing(void)
{
	open_all("loss=0.5,kind=all,seed=5");
	on_all(lose);
	close_all();
}

static void *ask(void *argument)
{
	struct rank *rank = argument;
	struct mmc_hearing heard[NRANKS];
	uint64_t nanswers = 0;

	begin(rank, 1, 1);
	for (uint32_t r = 0; r < NRANKS; r++) {
		const struct mmc_burst burst = {
			.peer = r,
			.count = 1,
			.nbytes = 64,
			.asks = 1,
		};

		if (r != rank->number)
			rank->nwrong +=
				mmc_team_survey_send(rank->team, &burst) != 0;
	}
	listen_for(rank, 1, heard);
	for (uint64_t spent_ns = 0;
	     nanswers < NRANKS - 1 && spent_ns < PATIENCE_NS;
	     spent_ns += SLICE_NS) {
		mmc_team_survey_listen(rank->team, SLICE_NS, heard);
		nanswers = 0;
		for (uint32_t r = 0; r < NRANKS; r++)
			nanswers += heard[r].nanswers;
	}
	rank->nwrong += nanswers != NRANKS - 1;
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void questions_are_answered(void)
{
	open_all("");
	on_all(ask);
	close_all();
}

/* Numbers of another survey, or above those of this one, are counted as foreign. */
static void *send_nonsense(void *argument)
{
	struct rank *rank = argument;
	struct mmc_hearing heard[NRANKS];
	const struct mmc_burst burst = {
		.peer = MMC_PEER_ALL,
		.count = rank->number == 0 ? 4 : 8,
		.nbytes = 64,
	};
	uint64_t counters[64] = { 0 };
	uint64_t nforeign = 0;

	CHECK(mmc_counter_count() <= 64);
	begin(rank, rank->number == 2 ? 7 : 1, rank->number == 0 ? 4 : 8);
	rank->nwrong += mmc_team_survey_send(rank->team, &burst) != 0;
	for (uint64_t spent_ns = 0;
	     rank->number == 0 && nforeign < 4 + 8 && spent_ns < PATIENCE_NS;
	     spent_ns += SLICE_NS) {
		mmc_team_survey_listen(rank->team, SLICE_NS, heard);
		mmc_team_counters(rank->team, counters);
		for (uint32_t i = 0; i < mmc_counter_count(); i++)
			if (strcmp(mmc_counter_name(i),
				   "rx_foreign_datagrams") == 0)
				nforeign = counters[i];
	}
	if (rank->number == 0) {
		rank->nwrong += nforeign != 4 + 8;
		rank->nwrong += heard[1].ndistinct != 4;
		rank->nwrong += heard[2].ndistinct != 0;
	}
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void nonsense_is_foreign(void)
{
	open_all("");
	on_all(send_nonsense);
	close_all();
}

static void bad_arguments_are_refused(void)
{
	static const struct mmc_burst bad[] = {
		{ .peer = NRANKS, .count = 1, .nbytes = 64 },
		{ .peer = MMC_PEER_ALL, .count = 1, .nbytes = 64, .asks = 1 },
		{ .peer = 0, .count = 1, .nbytes = MMC_SURVEY_BYTES_MIN - 1 },
		{ .peer = 0, .count = 1, .nbytes = CHUNK_BYTES + 1 },
		{ .peer = 0, .count = 9, .nbytes = 64 },
		{ .peer = 0, .first = 8, .count = 1, .nbytes = 64 },
		{ .peer = 0, .first = 9, .count = 0, .nbytes = 64 },
	};
	struct mmc_hearing heard[NRANKS];
	struct mmc_team *team;

	open_all("");
	team = ranks[0].team;
	CHECK_EQ(mmc_team_survey_listen(team, 0, heard), -MMC_EINVAL);
	CHECK_EQ(mmc_team_survey_send(team, &bad[0]), -MMC_EINVAL);
	CHECK_EQ(mmc_team_survey_begin(team, 1, 0), -MMC_EINVAL);
	CHECK_EQ(mmc_team_survey_begin(team, 1, MMC_SURVEY_NUMBERS_MAX + 1),
		 -MMC_EINVAL);
	CHECK_EQ(mmc_team_survey_begin(team, 1, 8), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(mmc_team_survey_send(team, &bad[i]), -MMC_EINVAL);
	close_all();
}

CHECK_MAIN(CHECK_TEST(all_is_heard), CHECK_TEST(duplicates_are_counted),
	   CHECK_TEST(what_is_lost_is_missing),
	   CHECK_TEST(questions_are_answered), CHECK_TEST(nonsense_is_foreign),
	   CHECK_TEST(bad_arguments_are_refused))
