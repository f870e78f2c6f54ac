/* SPDX-License-Identifier: BSD-3-Clause */
/* How a link begins: the host finds its runner, and both map the bridge. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "drivers/remote/link.h"
#include "offload/meeting.h"
#include "support/clock.h"
#include "support/error.h"

/* How long an answer may take where no timeout is set. */
#define ANSWER_NS (10 * MMC_S_NS)

/* ---- meeting ------------------------------------------------------------- */

static int fail(const char *what, const char *name)
{
	mmc_error_set("proxy %s: %s: %s", name, what, strerror(errno));
	return -MMC_EIO;
}

/* Connects to the socket of a runner. Returns 0 or a negative error. */
static int dial(const char *name, uint64_t timeout_ns, int *made)
{
	const struct timespec limit = mmc_clock_timespec(timeout_ns);
	const struct timeval patience = { .tv_sec = limit.tv_sec,
					  .tv_usec = limit.tv_nsec / 1000 };
	struct sockaddr_un address;
	socklen_t nbytes = mmc_meeting_address(name, &address);

	if (nbytes == 0)
		return -MMC_EINVAL;
	*made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*made < 0)
		return fail("socket", name);
	setsockopt(*made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(*made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(*made, (const struct sockaddr *)&address, nbytes) == 0)
		return 0;
	if (errno != ECONNREFUSED)
		return fail("connect", name);
	mmc_error_set("there is no proxy named %s on this node", name);
	return -MMC_ENODEV;
}

/* Checks who has answered. Returns 0, or -MMC_EINVAL with the reason. */
static int check_greeting(const struct mmc_greeting *greeting, const char *name)
{
	if (greeting->magic == MMC_OFFLOAD_MAGIC &&
	    greeting->version == MMC_OFFLOAD_VERSION)
		return 0;
	mmc_error_set(
		"proxy %s (process %u) speaks version %u of the offload ABI, "
		"this process version %u: restart the older one",
		name, greeting->pid, greeting->version, MMC_OFFLOAD_VERSION);
	return -MMC_EINVAL;
}

/* Exchanges greetings. Returns 0 with the runner known, or a negative error. */
static int greet(struct mmc_link *link)
{
	struct mmc_greeting greeting = {
		.magic = MMC_OFFLOAD_MAGIC,
		.version = MMC_OFFLOAD_VERSION,
		.kind = MMC_RUNNER_HOST,
		.pid = (uint32_t)getpid(),
	};
	const char *name = link->runner.name;
	int fds[MMC_MEETING_FDS_MAX];
	int nfds;

	if (!mmc_meeting_is_own(link->socket)) {
		mmc_error_set("proxy %s belongs to another user", name);
		return -MMC_EINVAL;
	}
	if (!mmc_meeting_send(link->socket, &greeting, sizeof(greeting), NULL,
			      0))
		return fail("cannot send a greeting", name);
	nfds = mmc_meeting_receive(link->socket, &greeting, sizeof(greeting),
				   fds);
	if (nfds < 0)
		return fail("no answer to a greeting", name);
	while (nfds > 0)
		close(fds[--nfds]);
	link->runner.kind = greeting.kind;
	link->runner.pid = greeting.pid;
	return check_greeting(&greeting, name);
}

/* ---- attaching ----------------------------------------------------------- */

/* Creates a bridge for a proxy. Returns its descriptor, or -1 with errno set. */
static int create_bridge(struct mmc_link *link, size_t nbytes)
{
	void *bytes;
	int fd = mmc_meeting_create(nbytes, &bytes);

	if (fd < 0)
		return -1;
	link->mapped = bytes;
	link->mapped_bytes = nbytes;
	link->bridge = bytes;
	return fd;
}

/* Maps the memory of an adapter, in which the bridge lies. Returns 0 or an error. */
static int map_adapter(struct mmc_link *link,
		       const struct mmc_attached *attached, int fd,
		       uint64_t bridge_bytes)
{
	uint64_t nbytes = attached->memory_bytes;

	if (attached->bridge_offset > nbytes ||
	    bridge_bytes > nbytes - attached->bridge_offset ||
	    attached->region_offset > nbytes ||
	    attached->region_bytes > nbytes - attached->region_offset) {
		mmc_error_set("proxy %s: its adapter's memory is too small",
			      link->runner.name);
		return -MMC_EINVAL;
	}
	link->mapped = mmc_meeting_map(fd, nbytes);
	if (link->mapped == NULL)
		return -MMC_EIO;
	link->mapped_bytes = nbytes;
	link->bridge = (void *)(link->mapped + attached->bridge_offset);
	link->region = link->mapped + attached->region_offset;
	link->region_bytes = attached->region_bytes;
	return 0;
}

/* Takes the descriptors that an answer came with. Returns 0 or a negative error. */
static int take_answer(struct mmc_link *link,
		       const struct mmc_attached *attached, const int *fds,
		       int nfds, uint64_t bridge_bytes)
{
	int rv = 0;

	if (nfds > 0)
		link->runner_fd = fds[0];
	if (nfds > 1)
		link->bell_fd = fds[1];
	if (nfds > 2) {
		rv = map_adapter(link, attached, fds[2], bridge_bytes);
		close(fds[2]);
	}
	if (rv == 0 && (nfds < 2 || link->bridge == NULL)) {
		mmc_error_set("proxy %s has refused this process",
			      link->runner.name);
		rv = -MMC_EINVAL;
	}
	return rv;
}

/* Gets a bridge that both sides have mapped. Returns 0 or a negative error. */
static int attach(struct mmc_link *link, size_t mailbox_bytes)
{
	const struct mmc_attach attach = {
		.bridge_bytes = sizeof(*link->bridge) + mailbox_bytes,
	};
	const char *name = link->runner.name;
	struct mmc_attached attached;
	int fds[MMC_MEETING_FDS_MAX];
	bool creates = link->runner.kind != MMC_RUNNER_FIRMWARE;
	int bridge_fd = -1;
	int nfds;
	bool sent;

	if (creates) {
		bridge_fd = create_bridge(link, attach.bridge_bytes);
		if (bridge_fd < 0)
			return fail("cannot create shared memory", name);
		link->bridge->magic = MMC_OFFLOAD_MAGIC;
		link->bridge->version = MMC_OFFLOAD_VERSION;
	}
	sent = mmc_meeting_send(link->socket, &attach, sizeof(attach),
				&bridge_fd, creates);
	if (creates)
		close(bridge_fd);
	if (!sent)
		return fail("cannot attach", name);
	nfds = mmc_meeting_receive(link->socket, &attached, sizeof(attached),
				   fds);
	if (nfds < 0)
		return fail("cannot attach", name);
	return take_answer(link, &attached, fds, nfds, attach.bridge_bytes);
}

int mmc_link_open(const char *name, size_t mailbox_bytes, uint64_t timeout_ns,
		  struct mmc_link *link)
{
	int rv;

	*link = (struct mmc_link){
		.socket = -1,
		.bell_fd = -1,
		.runner_fd = -1,
		.timeout_ns = timeout_ns > 0 ? timeout_ns : ANSWER_NS,
	};
	snprintf(link->runner.name, sizeof(link->runner.name), "%s", name);
	rv = dial(name, link->timeout_ns, &link->socket);
	if (rv == 0)
		rv = greet(link);
	if (rv == 0 && mailbox_bytes > 0)
		rv = attach(link, mailbox_bytes);
	if (rv != 0)
		mmc_link_close(link);
	return rv;
}
