/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts and proxies of another version, or of another user, refuse each other in words. */
#include <mpimcast/proxy.h>

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "offload/meeting.h"
#include "offloaded.h"

#define NOBODY 65534

/* For each answer of a proxy, on a machine that is busy. */
#define LIMIT_MS 20000

/* Connects to the proxy as a rank does. */
static int dial(void)
{
	struct sockaddr_un address;
	uint32_t nbytes = mmc_meeting_address(proxy_name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK_EQ(connect(fd, (const struct sockaddr *)&address, nbytes), 0);
	return fd;
}

/* Waits for a message or the end. Returns the bytes of the message, 0 at the end. */
static ssize_t await(int fd, void *bytes, size_t nbytes)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	ssize_t received;

	if (!CHECK_EQ(poll(&polled, 1, LIMIT_MS), 1))
		return -1;
	received = recv(fd, bytes, nbytes, 0);
	/* The proxy may have closed the connection before it read all. */
	return received < 0 && errno == ECONNRESET ? 0 : received;
}

/* Asks to be attached with a good bridge. The proxy may have ended the connection. */
static void ask_to_attach(int fd)
{
	const struct mmc_attach attach = {
		.bridge_bytes = sizeof(struct mmc_offload_bridge) + 4096,
	};
	struct mmc_offload_bridge *bridge;
	void *bytes;
	int bridge_fd = mmc_meeting_create(attach.bridge_bytes, &bytes);

	if (!CHECK(bridge_fd >= 0))
		return;
	bridge = bytes;
	bridge->magic = MMC_OFFLOAD_MAGIC;
	bridge->version = MMC_OFFLOAD_VERSION;
	mmc_meeting_send(fd, &attach, sizeof(attach), &bridge_fd, 1);
	munmap(bytes, attach.bridge_bytes);
	close(bridge_fd);
}

/* A rank of another version is told which one the proxy has, and cannot attach. */
static void ranks_of_other_versions(void)
{
	static const uint32_t versions[] = { 0, MMC_OFFLOAD_VERSION - 1,
					     MMC_OFFLOAD_VERSION + 1,
					     UINT32_MAX };

	begin_proxy();
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		struct mmc_greeting greeting = {
			.magic = MMC_OFFLOAD_MAGIC,
			.version = versions[i],
		};
		int fd = dial();

		CHECK(mmc_meeting_send(fd, &greeting, sizeof(greeting), NULL,
				       0));
		CHECK_EQ(await(fd, &greeting, sizeof(greeting)),
			 sizeof(greeting));
		CHECK_EQ(greeting.magic, MMC_OFFLOAD_MAGIC);
		CHECK_EQ(greeting.version, MMC_OFFLOAD_VERSION);
		CHECK_EQ(greeting.kind, MMC_RUNNER_PROXY);
		CHECK_EQ(greeting.pid, getpid());
		ask_to_attach(fd);
		CHECK_EQ(await(fd, &greeting, sizeof(greeting)), 0);
		close(fd);
	}
	end_proxy();
}

/* Who does not speak the protocol gets no answer, and others are served. */
static void strangers(void)
{
	uint8_t bytes[sizeof(struct mmc_greeting) + 1] = "hello";
	struct mmc_runner runner;

	begin_proxy();
	for (size_t nbytes = 1; nbytes <= sizeof(bytes); nbytes++) {
		int fd = dial();

		CHECK(mmc_meeting_send(fd, bytes, nbytes, NULL, 0));
		CHECK_EQ(await(fd, bytes, sizeof(bytes)), 0);
		close(fd);
	}
	CHECK_EQ(mmc_proxy_find(proxy_name, &runner), 0);
	end_proxy();
}

/* Answers one greeting as a proxy of `version` does, and expects to be left. */
static void *answer(void *version)
{
	struct sockaddr_un address;
	uint32_t nbytes = mmc_meeting_address(proxy_name, &address);
	struct mmc_greeting greeting;
	int listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK_EQ(bind(listen_fd, (const struct sockaddr *)&address, nbytes), 0);
	CHECK_EQ(listen(listen_fd, 1), 0);
	for (int i = 0; i < 2; i++) {
		int fd = accept(listen_fd, NULL, NULL);

		CHECK_EQ(await(fd, &greeting, sizeof(greeting)),
			 sizeof(greeting));
		greeting.version = *(const uint32_t *)version;
		greeting.pid = 4711;
		CHECK(mmc_meeting_send(fd, &greeting, sizeof(greeting), NULL,
				       0));
		CHECK_EQ(await(fd, &greeting, sizeof(greeting)), 0);
		close(fd);
	}
	close(listen_fd);
	return NULL;
}

/* A rank says which of the two is older than the other, and opens no team. */
static void proxies_of_other_versions(void)
{
	uint32_t version = MMC_OFFLOAD_VERSION + 1;
	struct job job = { .nranks = 2, .proxied = 3, .chunk_bytes = 1000 };
	struct mmc_team_options options;
	struct mmc_engine *engine;
	struct mmc_runner runner;
	struct mmc_team *team;
	char text[200];
	pthread_t thread;
	int rv;

	name_proxy();
	snprintf(text, sizeof(text),
		 "proxy %s (process 4711) speaks version %u of the offload "
		 "ABI, this process version %u: restart the older one",
		 proxy_name, version, MMC_OFFLOAD_VERSION);
	pthread_create(&thread, NULL, answer, &version);
	do {
		rv = mmc_proxy_find(proxy_name, &runner);
	} while (rv == -MMC_ENODEV); /* it does not listen yet */
	CHECK_EQ(rv, -MMC_EINVAL);
	CHECK(strcmp(mmc_last_error(), text) == 0);
	options = options_of(&job, 0);
	CHECK_EQ(mmc_engine_create(&engine), 0);
	CHECK_EQ(mmc_team_create(engine, &options, &team), -MMC_EINVAL);
	CHECK(strcmp(mmc_last_error(), text) == 0);
	mmc_engine_destroy(engine);
	pthread_join(thread, NULL);
}

/* Runs `act` as another user in a child. Returns its status, or -1. */
static int run_as_nobody(int (*act)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(setuid(NOBODY) == 0 ? act() : 99);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns 0 if the proxy cannot be used, by the words for that. */
static int find_anothers(void)
{
	struct mmc_runner runner;

	return mmc_proxy_find(proxy_name, &runner) == -MMC_EINVAL &&
			       strstr(mmc_last_error(),
				      "belongs to another user") != NULL
		       ? 0
		       : 1;
}

/* Returns 0 if the proxy ends a connection without an answer to a good greeting. */
static int greet_anothers(void)
{
	struct mmc_greeting greeting = {
		.magic = MMC_OFFLOAD_MAGIC,
		.version = MMC_OFFLOAD_VERSION,
	};
	int fd = dial();

	/* The proxy may have ended the connection before. */
	mmc_meeting_send(fd, &greeting, sizeof(greeting), NULL, 0);
	return recv(fd, &greeting, sizeof(greeting), 0) > 0 ? 1 : 0;
}

/* A proxy does not serve another user, whose ranks would not let it do so either. */
static void other_users(void)
{
	struct mmc_runner runner;

	begin_proxy();
	CHECK_EQ(run_as_nobody(find_anothers), 0);
	CHECK_EQ(run_as_nobody(greet_anothers), 0);
	CHECK_EQ(mmc_proxy_find(proxy_name, &runner), 0);
	end_proxy();
}

/* Only root can become another user. */
static void other_users_if_root(void)
{
	if (geteuid() == 0)
		other_users();
}

CHECK_MAIN(CHECK_TEST(ranks_of_other_versions), CHECK_TEST(strangers),
	   CHECK_TEST(proxies_of_other_versions),
	   CHECK_TEST(other_users_if_root))
