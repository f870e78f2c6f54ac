/* SPDX-License-Identifier: BSD-3-Clause */
/* Which segments are refused, and which members are alive. */
#include "node/segment.h"

#include <pthread.h>

#include "node_processes.h"

enum { NTHREADS = 4 };

static void refused(int fd, uint64_t nbytes, uint32_t member, uint32_t nmembers)
{
	static struct mmc_node some;
	struct mmc_node *node = &some;

	CHECK_EQ(mmc_node_open(fd, nbytes, member, nmembers, &node),
		 -MMC_EINVAL);
	CHECK(node == NULL);
	/* The descriptor is still the caller's. */
	CHECK(fcntl(fd, F_GETFD) >= 0);
}

static void a_short_segment_is_refused(void)
{
	int fd = segment_fd(MMC_NODE_HEAD_BYTES - 1);

	refused(fd, MMC_NODE_HEAD_BYTES - 1, 0, 1);
	refused(fd, MMC_NODE_HEAD_BYTES, 0, 1);
	close(fd);
	fd = segment_fd(SEGMENT_BYTES);
	refused(fd, SEGMENT_BYTES + 1, 0, 1);
	refused(fd, UINT64_MAX, 0, 1);
	close(fd);
}

/* A segment that another process may cut would let its readers die. */
static void a_segment_that_may_be_cut_is_refused(void)
{
	int fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_EQ(ftruncate(fd, SEGMENT_BYTES), 0);
	refused(fd, SEGMENT_BYTES, 0, 1);
	CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	refused(fd, SEGMENT_BYTES, 0, 1);
	close(fd);
}

static void members_out_of_range_are_refused(void)
{
	int fd = segment_fd(SEGMENT_BYTES);

	refused(fd, SEGMENT_BYTES, 0, 0);
	refused(fd, SEGMENT_BYTES, 2, 2);
	refused(fd, SEGMENT_BYTES, UINT32_MAX, 2);
	refused(fd, SEGMENT_BYTES, 0, MMC_NODE_MEMBERS_MAX + 1);
	refused(fd, SEGMENT_BYTES, 0, UINT32_MAX);
	close(fd);
}

static void another_number_of_members_is_refused(void)
{
	struct members members;
	int fd;

	members_open(&members, 2, members_options(2));
	fd = members.nodes[0]->fd;
	refused(fd, SEGMENT_BYTES, 1, 3);
	refused(fd, SEGMENT_BYTES, 0, 1);
	members_close(&members);
}

static void what_is_no_segment_is_refused(void)
{
	struct mmc_node *node;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	refused(fd, MMC_NODE_HEAD_BYTES, 0, 1);
	close(fd);
	CHECK_EQ(mmc_node_open(-1, MMC_NODE_HEAD_BYTES, 0, 1, &node), -MMC_EIO);
	CHECK(node == NULL);
}

static void a_node_may_have_as_many_members_as_it_says(void)
{
	struct mmc_node *node;
	int fd = segment_fd(SEGMENT_BYTES);

	CHECK_EQ(mmc_node_open(fd, SEGMENT_BYTES, MMC_NODE_MEMBERS_MAX - 1,
			       MMC_NODE_MEMBERS_MAX, &node),
		 0);
	CHECK(mmc_node_is_alive(node, MMC_NODE_MEMBERS_MAX - 1));
	CHECK(!mmc_node_is_alive(node, 0));
	mmc_node_close(node);
	CHECK(fcntl(fd, F_GETFD) < 0);
}

/* The bell of the last member lies within the head, and the streams behind it. */
static void streams_lie_behind_the_head(void)
{
	struct members members;
	uint8_t *first;

	members_open(&members, 1, members_options(1));
	first = mmc_node_at(members.nodes[0], MMC_NODE_HEAD_BYTES);
	CHECK(first >=
	      (uint8_t *)&members.nodes[0]->head->bells[MMC_NODE_MEMBERS_MAX]);
	CHECK(first == (uint8_t *)members.streams[0]->head);
	members_close(&members);
}

/* ---- life ---------------------------------------------------------------- */

static void a_process_that_ends_is_noticed(void)
{
	processes_act *const acts[] = { NULL, act_idle, act_idle };
	struct processes processes;

	processes_open(&processes, 3, members_options(3), acts);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(mmc_node_is_alive(processes.node, i));
	processes_kill(&processes, 1);
	CHECK(mmc_node_is_alive(processes.node, 0));
	CHECK(!mmc_node_is_alive(processes.node, 1));
	CHECK(mmc_node_is_alive(processes.node, 2));
	/* A stopped process has not ended. */
	kill(processes.pids[2], SIGSTOP);
	CHECK(mmc_node_is_alive(processes.node, 2));
	processes_kill(&processes, 2);
	CHECK(!mmc_node_is_alive(processes.node, 2));
	processes_close(&processes);
}

/* An act: says whether all members seem alive from there. */
static void act_look(struct mmc_node_stream *stream,
		     struct processes_shared *shared)
{
	struct report *report = &shared->reports[stream->options.rank];

	for (uint32_t i = 0; i < stream->node->nmembers; i++)
		report->rv += mmc_node_is_alive(stream->node, i);
	atomic_fetch_add(&shared->nready, 1);
	pause();
}

static void members_see_each_other_alive(void)
{
	processes_act *const acts[] = { NULL, act_look, act_look };
	struct processes processes;

	processes_open(&processes, 3, members_options(3), acts);
	await_count(&processes.shared->nready, 2);
	CHECK_EQ(processes.shared->reports[1].rv, 3);
	CHECK_EQ(processes.shared->reports[2].rv, 3);
	processes_close(&processes);
}

/* Another process cannot take a member's number while that lives. */
static void a_members_number_is_taken_once(void)
{
	processes_act *const acts[] = { NULL, act_idle };
	struct processes processes;
	struct mmc_node *node;

	processes_open(&processes, 2, members_options(2), acts);
	CHECK_EQ(mmc_node_open(processes.fd, SEGMENT_BYTES, 1, 2, &node),
		 -MMC_EIO);
	CHECK(node == NULL);
	CHECK(mmc_node_is_alive(processes.node, 0));
	processes_close(&processes);
}

/* ---- fork ---------------------------------------------------------------- */

/* Returns how many calls behave in a child of fork() as they should not. */
static int count_wrong(struct processes *processes)
{
	struct mmc_node_stream_options options = members_options(2);
	struct mmc_operation operation = { .kind = MMC_ALLGATHER };
	struct mmc_node_request *request;
	struct mmc_node_stream *stream;
	struct mmc_failure failure;
	uint32_t nrings = 0;
	int nwrong = 0;

	nwrong += !mmc_node_is_forked(processes->node);
	nwrong += !mmc_node_is_alive(processes->node, 0);
	nwrong += !mmc_node_is_alive(processes->node, 1);
	nwrong += mmc_node_await(processes->node, &nrings) != -MMC_EFORKED;
	options.offset_bytes = 1 << 20;
	nwrong += mmc_node_stream_create(processes->node, &options, &stream) !=
		  -MMC_EFORKED;
	nwrong += mmc_node_start(processes->stream, &operation, 0, &request) !=
		  -MMC_EFORKED;
	mmc_node_rouse(processes->node);
	mmc_node_stream_leave(processes->stream);
	mmc_node_stream_failure(processes->stream, &failure);
	nwrong += failure.error != 0;
	mmc_node_stream_close(processes->stream);
	return nwrong;
}

/* A child of a member is no member; its calls and its end change nothing. */
static void a_forked_child_is_no_member(void)
{
	processes_act *const acts[] = { NULL, act_look };
	struct processes processes;
	int status;
	pid_t pid;

	processes_open(&processes, 2, members_options(2), acts);
	/* As if another thread were inside a call: a child must not wait for it. */
	pthread_mutex_lock(&processes.stream->mutex);
	pid = fork();
	if (pid == 0) {
		alarm(30);
		_exit(count_wrong(&processes));
	}
	pthread_mutex_unlock(&processes.stream->mutex);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(processes.node->head->bells[0].nrings, 0);
	CHECK(!processes.stream->left);
	CHECK_EQ(atomic_load(&processes.stream->lines[0].left), 0);
	await_count(&processes.shared->nready, 1);
	CHECK_EQ(processes.shared->reports[1].rv, 2);
	processes_close(&processes);
}

/* An act: forks a child that closes what it has inherited, and ends. */
static void act_fork(struct mmc_node_stream *stream,
		     struct processes_shared *shared)
{
	pid_t pid = fork();

	if (pid == 0) {
		mmc_node_close(stream->node);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	atomic_fetch_add(&shared->nready, 1);
	pause();
}

static void the_end_of_a_child_is_not_its_parents(void)
{
	processes_act *const acts[] = { NULL, act_fork };
	struct processes processes;

	processes_open(&processes, 2, members_options(2), acts);
	await_count(&processes.shared->nready, 1);
	CHECK(mmc_node_is_alive(processes.node, 1));
	processes_kill(&processes, 1);
	CHECK(!mmc_node_is_alive(processes.node, 1));
	processes_close(&processes);
}

/* What a thread opens, and what it then finds. */
struct opener {
	int fd;
	uint32_t member;
	struct mmc_node *node;
	pthread_barrier_t *barrier;
};

static void *open_one(void *argument)
{
	struct opener *opener = argument;

	pthread_barrier_wait(opener->barrier);
	MMC_ASSERT(mmc_node_open(opener->fd, SEGMENT_BYTES, opener->member,
				 NTHREADS, &opener->node) == 0);
	return NULL;
}

/* Returns how many members of this process seem dead that threads opened at once. */
static int open_at_once(void)
{
	struct opener openers[NTHREADS];
	pthread_t threads[NTHREADS];
	pthread_barrier_t barrier;
	int fd = segment_fd(SEGMENT_BYTES);
	int ndead = 0;

	pthread_barrier_init(&barrier, NULL, NTHREADS);
	for (uint32_t i = 0; i < NTHREADS; i++) {
		openers[i] = (struct opener){
			.fd = dup(fd),
			.member = i,
			.barrier = &barrier,
		};
		pthread_create(&threads[i], NULL, open_one, &openers[i]);
	}
	for (uint32_t i = 0; i < NTHREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < NTHREADS; i++)
		ndead += !mmc_node_is_alive(openers[0].node, i);
	return ndead;
}

/*
 * A process has one number, whichever of its threads draws it first. Each child draws
 * anew.
 */
static void threads_agree_on_their_process(void)
{
	for (int i = 0; i < 100; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(open_at_once());
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
}

CHECK_MAIN(CHECK_TEST(a_short_segment_is_refused),
	   CHECK_TEST(a_segment_that_may_be_cut_is_refused),
	   CHECK_TEST(members_out_of_range_are_refused),
	   CHECK_TEST(another_number_of_members_is_refused),
	   CHECK_TEST(what_is_no_segment_is_refused),
	   CHECK_TEST(a_node_may_have_as_many_members_as_it_says),
	   CHECK_TEST(streams_lie_behind_the_head),
	   CHECK_TEST(a_process_that_ends_is_noticed),
	   CHECK_TEST(members_see_each_other_alive),
	   CHECK_TEST(a_members_number_is_taken_once),
	   CHECK_TEST(a_forked_child_is_no_member),
	   CHECK_TEST(the_end_of_a_child_is_not_its_parents),
	   CHECK_TEST(threads_agree_on_their_process))
