/* SPDX-License-Identifier: BSD-3-Clause */
/* Members read each other's memory, and are told when they cannot, or may not. */
#include "node/attach.h"

#include <errno.h>

#include "node_policy.h"
#include "node_processes.h"

enum { NBYTES = 3 * 4096 + 17 };

/* The same addresses in all processes; each writes its own bytes there. */
static uint8_t theirs[NBYTES];
static uint8_t here[NBYTES];

/* An act: has something to read. */
static void act_show(struct mmc_node_stream *stream,
		     struct processes_shared *shared)
{
	fill_block(theirs, NBYTES, 1, stream->options.rank);
	atomic_fetch_add(&shared->nready, 1);
	pause();
}

/* Opens a process beside this one, which has something to read. */
static void open_two(struct processes *processes)
{
	processes_act *const acts[] = { NULL, act_show };

	processes_open(processes, 2, members_options(2), acts);
	await_count(&processes->shared->nready, 1);
	memset(theirs, 0, NBYTES);
}

static int read_theirs(struct processes *processes, uint64_t nbytes)
{
	memset(here, 0xee, NBYTES);
	return mmc_node_attach_read(processes->node, 1, here, (uintptr_t)theirs,
				    nbytes);
}

static void memory_of_another_process_is_read(void)
{
	static uint8_t expected[NBYTES];
	struct processes processes;
	uint32_t member = 9;

	open_two(&processes);
	fill_block(expected, NBYTES, 1, 1);
	CHECK_EQ(mmc_node_try_attach(processes.node, &member), 0);
	CHECK_EQ(member, 9);
	CHECK_EQ(read_theirs(&processes, NBYTES), 0);
	CHECK(memcmp(here, expected, NBYTES) == 0);
	CHECK_EQ(read_theirs(&processes, 1), 0);
	CHECK_EQ(here[0], expected[0]);
	CHECK_EQ(here[1], 0xee);
	processes_close(&processes);
}

static void a_process_that_has_ended_is_not_read(void)
{
	struct processes processes;
	uint32_t member = 9;

	open_two(&processes);
	processes_kill(&processes, 1);
	CHECK_EQ(read_theirs(&processes, NBYTES), -ESRCH);
	CHECK_EQ(here[0], 0xee);
	CHECK_EQ(mmc_node_try_attach(processes.node, &member), -MMC_EIO);
	CHECK_EQ(member, 1);
	processes_close(&processes);
}

/* Its number is another process's now, which does not have the random number. */
static void a_process_with_its_number_is_not_taken_for_it(void)
{
	struct processes processes;
	struct mmc_node_bell *bell;

	open_two(&processes);
	bell = &processes.node->head->bells[1];
	atomic_fetch_add(&bell->process, 1 << 16);
	CHECK_EQ(read_theirs(&processes, NBYTES), -ESRCH);
	atomic_fetch_sub(&bell->process, 1 << 16);
	CHECK_EQ(read_theirs(&processes, NBYTES), 0);
	/* Nor one that has no memory there. */
	atomic_store(&bell->process_at, 64);
	CHECK(read_theirs(&processes, NBYTES) < 0);
	processes_close(&processes);
}

/* What lies before the end of their memory is read, and the end is told. */
static void memory_that_ends_is_told(void)
{
	struct processes processes;
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MMC_ASSERT(pages != MAP_FAILED);
	/* A hole might be filled by what is mapped next. */
	MMC_ASSERT(mprotect(pages + 2 * 4096, 4096, PROT_NONE) == 0);
	open_two(&processes);
	CHECK_EQ(mmc_node_attach_read(processes.node, 1, here, (uintptr_t)pages,
				      2 * 4096),
		 0);
	CHECK_EQ(mmc_node_attach_read(processes.node, 1, here, (uintptr_t)pages,
				      2 * 4096 + 1),
		 -EFAULT);
	CHECK_EQ(mmc_node_attach_read(processes.node, 1, here, 64, 1), -EFAULT);
	processes_close(&processes);
	munmap(pages, 3 * 4096);
}

/* An act: makes itself unreadable, or unable to read, and says what it may do. */
static void act_refuse(struct mmc_node_stream *stream,
		       struct processes_shared *shared)
{
	uint32_t member;

	refuse_reads();
	shared->reports[1].rv = mmc_node_try_attach(stream->node, &member);
	atomic_fetch_add(&shared->nready, 1);
	pause();
}

static void what_the_kernel_refuses_is_told(void)
{
	processes_act *const acts[] = { NULL, act_refuse };
	struct processes processes;
	uint32_t member = 9;
	int rv;

	processes_open(&processes, 2, members_options(2), acts);
	await_count(&processes.shared->nready, 1);
	rv = mmc_node_try_attach(processes.node, &member);
	CHECK(rv == -MMC_EIO || processes.shared->reports[1].rv == -MMC_EIO);
	if (rv != 0)
		CHECK_EQ(member, 1);
	processes_close(&processes);
}

CHECK_MAIN(CHECK_TEST(memory_of_another_process_is_read),
	   CHECK_TEST(a_process_that_has_ended_is_not_read),
	   CHECK_TEST(a_process_with_its_number_is_not_taken_for_it),
	   CHECK_TEST(memory_that_ends_is_told),
	   CHECK_TEST(what_the_kernel_refuses_is_told))
