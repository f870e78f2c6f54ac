/* SPDX-License-Identifier: BSD-3-Clause */
/* A host gives up a runner that has stopped, but not one that was paused together with it. */
#include "drivers/remote/link.h"

#include <mpimcast/mmc.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "offload/ring.h"
#include "support/clock.h"

/* Even on a busy machine a process that can run does not wait for so long. */
#define TIMEOUT_NS (4 * MMC_S_NS)
#define BODY_BYTES 64

static struct mmc_link link_to_runner;
static int runner_socket;

/* Opens a link to a runner that this test plays; child processes share its bridge. */
static void open_link(void)
{
	struct mmc_link *link = &link_to_runner;
	int sockets[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	*link = (struct mmc_link){
		.runner.name = "played",
		.socket = sockets[0],
		.bell_fd = eventfd(0, EFD_NONBLOCK),
		.runner_fd = eventfd(0, EFD_NONBLOCK),
		.timeout_ns = TIMEOUT_NS,
		.mapped_bytes = sizeof(struct mmc_offload_bridge) + BODY_BYTES,
	};
	runner_socket = sockets[1];
	link->mapped = mmap(NULL, link->mapped_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(link->mapped != MAP_FAILED);
	link->bridge = (struct mmc_offload_bridge *)link->mapped;
}

static void close_link(void)
{
	mmc_link_close(&link_to_runner);
	close(runner_socket);
}

/* A runner is given up after four looks at a missing beat, however far apart they are. */
static void beats(void)
{
	struct mmc_link *link = &link_to_runner;
	uint64_t now_ns = 5 * MMC_S_NS;

	open_link();
	link->ninflight = 1;
	for (uint32_t pauses = 0; pauses < 10; pauses++) {
		CHECK(mmc_link_is_whole(link, now_ns));
		CHECK_EQ(link->bridge->host_beat, pauses + 1);
		now_ns += 100 * TIMEOUT_NS;
		CHECK(mmc_link_is_whole(link, now_ns));
		link->bridge->runner_beat = link->bridge->host_beat;
		now_ns = link->beat_ns;
	}
	CHECK(mmc_link_is_whole(link, now_ns));
	CHECK(mmc_link_is_whole(link, now_ns + TIMEOUT_NS * 3 / 4));
	CHECK(mmc_link_is_whole(link, now_ns + TIMEOUT_NS * 3 / 4));
	for (uint32_t looks = 0; looks < 5; looks++)
		CHECK_EQ(mmc_link_is_whole(link, link->beat_ns), looks < 2);
	close_link();
}

static void ring(void)
{
	const uint64_t one = 1;

	if (write(link_to_runner.bell_fd, &one, sizeof(one)) != sizeof(one))
		_exit(1);
}

/* Stops the host, lets it go on first, and answers its call. */
static void pause_and_answer(pid_t host)
{
	struct mmc_offload_bridge *bridge = link_to_runner.bridge;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The host arms its bell before it sleeps. */
	while (mmc_ring_see(&bridge->completions.armed) == 0)
		;
	kill(host, SIGSTOP);
	/* The bell ends the host's sleep; else the kernel would resume it after the pause. */
	ring();
	usleep(TIMEOUT_NS / 1000 + 1000);
	kill(host, SIGCONT);
	usleep(100 * 1000);
	bridge->mailbox.status = 7;
	mmc_ring_show(&bridge->mailbox.nanswered, 1);
	ring();
	_exit(0);
}

/* A runner that was stopped together with its host still answers. */
static void pauses(void)
{
	const struct mmc_link_call call = { .kind = MMC_OFFLOAD_COUNTERS };
	pid_t host = getpid();
	pid_t runner;
	int status;

	open_link();
	runner = fork();
	if (runner == 0)
		pause_and_answer(host);
	CHECK_EQ(mmc_link_call(&link_to_runner, &call), 7);
	CHECK_EQ(waitpid(runner, &status, 0), runner);
	CHECK_EQ(status, 0);
	close_link();
}

/* A runner that never answers is given up in time. */
static void silence(void)
{
	const struct mmc_link_call call = { .kind = MMC_OFFLOAD_COUNTERS };
	uint64_t begin_ns;

	open_link();
	link_to_runner.timeout_ns = MMC_S_NS / 10;
	begin_ns = mmc_clock_now_ns();
	CHECK_EQ(mmc_link_call(&link_to_runner, &call), -MMC_EIO);
	CHECK(strstr(mmc_last_error(), "does not answer") != NULL);
	CHECK(mmc_clock_now_ns() - begin_ns >= MMC_S_NS / 10);
	close_link();
}

CHECK_MAIN(CHECK_TEST(beats), CHECK_TEST(pauses), CHECK_TEST(silence))
