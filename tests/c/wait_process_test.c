/* SPDX-License-Identifier: BSD-3-Clause */
/* Members whose processes are killed or stopped, as all others see them. */
#include "node_processes.h"

enum { NBYTES = 20000, LATE_MS = 60 };

static uint8_t recv[MEMBERS_MAX * NBYTES];

static void check_report(struct report report, int error, uint32_t culprit)
{
	CHECK_EQ(report.rv, error);
	CHECK_EQ(report.failure.error, error);
	CHECK_EQ(report.failure.culprit, culprit);
	CHECK_EQ(report.failure.epoch, 1);
}

/* Gathers as member 0, and checks that all survivors tell the same of member 1. */
static void check_survivors(struct processes *processes, int error)
{
	check_report(gather(processes->stream), error, 1);
	for (uint32_t i = 2; i < processes->n; i++) {
		processes_join(processes, i);
		check_report(processes->shared->reports[i], error, 1);
	}
}

static void a_member_killed_before_it_enters(void)
{
	processes_act *const acts[] = { NULL, act_idle, act_gather,
					act_gather };
	struct processes processes;

	processes_open(&processes, 4, members_options(4), acts);
	await_count(&processes.shared->nready, 1);
	processes_kill(&processes, 1);
	check_survivors(&processes, -MMC_EGONE);
	CHECK_EQ(gather(processes.stream).rv, -MMC_EPOISONED);
	processes_close(&processes);
}

/* The others are waiting already when it happens. */
static void a_member_killed_while_others_wait(void)
{
	processes_act *const acts[] = { NULL, act_idle, act_gather };
	struct mmc_node_request *request;
	struct processes processes;
	int rv;

	processes_open(&processes, 3, members_options(3), acts);
	rv = start_gather(processes.stream, recv, 1000, &request);
	CHECK_EQ(mmc_node_request_wait(request, 30 * MMC_MS_NS), MMC_EAGAIN);
	processes_kill(&processes, 1);
	check_report(finish_report(request, rv), -MMC_EGONE, 1);
	processes_join(&processes, 2);
	check_report(processes.shared->reports[2], -MMC_EGONE, 1);
	processes_close(&processes);
}

/* An act: enters a long operation, fills the first slots, and stands still. */
static void act_stand_still(struct mmc_node_stream *stream,
			    struct processes_shared *shared)
{
	struct mmc_node_request *request;

	start_gather(stream, recv, NBYTES, &request);
	atomic_fetch_add(&shared->nready, 1);
	raise(SIGSTOP);
	pause();
}

/* An act: takes part in the long operation. */
static void act_gather_long(struct mmc_node_stream *stream,
			    struct processes_shared *shared)
{
	struct mmc_node_request *request;
	int rv = start_gather(stream, recv, NBYTES, &request);

	shared->reports[stream->options.rank] = finish_report(request, rv);
}

/* Opens three members, of which the second stops in the midst of a long operation. */
static void open_with_stopped(struct processes *processes, uint64_t late_ms)
{
	processes_act *const acts[] = { NULL, act_stand_still,
					act_gather_long };
	struct mmc_node_stream_options options = members_options(3);

	options.late_timeout_ns = late_ms * MMC_MS_NS;
	processes_open(processes, 3, options, acts);
	await_count(&processes->shared->nready, 1);
}

static void check_long(struct processes *processes, int error)
{
	struct mmc_node_request *request;
	int rv = start_gather(processes->stream, recv, NBYTES, &request);

	check_report(finish_report(request, rv), error, 1);
	processes_join(processes, 2);
	check_report(processes->shared->reports[2], error, 1);
}

static void a_stopped_member_is_late(void)
{
	struct processes processes;

	open_with_stopped(&processes, LATE_MS);
	check_long(&processes, -MMC_ELATE);
	processes_close(&processes);
}

static void a_member_killed_in_an_operation(void)
{
	struct processes processes;

	open_with_stopped(&processes, 0);
	processes_kill(&processes, 1);
	check_long(&processes, -MMC_EGONE);
	processes_close(&processes);
}

/* An act: enters a short operation, and ends; it is missed in the next one only. */
static void act_fill_and_end(struct mmc_node_stream *stream,
			     struct processes_shared *shared)
{
	struct mmc_node_request *request;

	start_gather(stream, recv, 1000, &request);
	atomic_fetch_add(&shared->nready, 1);
}

static void what_a_dead_member_has_filled_is_read(void)
{
	processes_act *const acts[] = { NULL, act_fill_and_end };
	struct mmc_node_request *request;
	struct processes processes;
	struct report report;
	int rv;

	processes_open(&processes, 2, members_options(2), acts);
	await_count(&processes.shared->nready, 1);
	processes_join(&processes, 1);
	memset(recv, 0, sizeof(recv));
	rv = start_gather(processes.stream, recv, 1000, &request);
	report = finish_report(request, rv);
	CHECK_EQ(report.rv, 0);
	CHECK_EQ(recv[1999], 2);
	report = gather(processes.stream);
	CHECK_EQ(report.rv, -MMC_EGONE);
	CHECK_EQ(report.failure.epoch, 2);
	processes_close(&processes);
}

/* An act: gathers many times. */
static void act_gather_often(struct mmc_node_stream *stream,
			     struct processes_shared *shared)
{
	struct report report = { .rv = 0 };

	for (int i = 0; i < 2000 && report.rv == 0; i++)
		report = gather(stream);
	shared->reports[stream->options.rank] = report;
}

/* Processes on fewer processors than there are of them lose no wake-up. */
static void many_operations_of_processes(void)
{
	processes_act *const acts[] = { NULL, act_gather_often,
					act_gather_often, act_gather_often };
	struct processes processes;

	processes_open(&processes, 4, members_options(4), acts);
	act_gather_often(processes.stream, processes.shared);
	for (uint32_t i = 1; i < 4; i++)
		processes_join(&processes, i);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_EQ(processes.shared->reports[i].rv, 0);
	processes_close(&processes);
}

CHECK_MAIN(CHECK_TEST(a_member_killed_before_it_enters),
	   CHECK_TEST(a_member_killed_while_others_wait),
	   CHECK_TEST(a_stopped_member_is_late),
	   CHECK_TEST(a_member_killed_in_an_operation),
	   CHECK_TEST(what_a_dead_member_has_filled_is_read),
	   CHECK_TEST(many_operations_of_processes))
