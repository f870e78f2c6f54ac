/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/remote/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "offload/meeting.h"
#include "offload/ring.h"
#include "support/bits.h"
#include "support/clock.h"
#include "support/descriptor.h"
#include "support/error.h"

/* How often a host that does not sleep looks whether its runner still exists. */
#define LOOK_NS (10 * MMC_MS_NS)

/* How often a host beats in the time after which a silent runner counts as stopped. */
#define BEATS 4

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

/* Creates a window for a proxy. Returns its descriptor, or -1 with errno set. */
static int create_window(struct mmc_link *link, size_t nbytes)
{
	void *bytes;
	int fd = mmc_meeting_create(nbytes, &bytes);

	if (fd < 0)
		return -1;
	link->mapped = bytes;
	link->mapped_bytes = nbytes;
	link->window = bytes;
	return fd;
}

/* Maps the memory of an adapter, in which the window lies. Returns 0 or an error. */
static int map_adapter(struct mmc_link *link,
		       const struct mmc_attached *attached, int fd,
		       uint64_t window_bytes)
{
	uint64_t nbytes = attached->memory_bytes;

	if (attached->window_offset > nbytes ||
	    window_bytes > nbytes - attached->window_offset ||
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
	link->window = (void *)(link->mapped + attached->window_offset);
	link->region = link->mapped + attached->region_offset;
	link->region_bytes = attached->region_bytes;
	return 0;
}

/* Takes the descriptors that an answer came with. Returns 0 or a negative error. */
static int take_answer(struct mmc_link *link,
		       const struct mmc_attached *attached, const int *fds,
		       int nfds, uint64_t window_bytes)
{
	int rv = 0;

	if (nfds > 0)
		link->runner_fd = fds[0];
	if (nfds > 1)
		link->bell_fd = fds[1];
	if (nfds > 2) {
		rv = map_adapter(link, attached, fds[2], window_bytes);
		close(fds[2]);
	}
	if (rv == 0 && (nfds < 2 || link->window == NULL)) {
		mmc_error_set("proxy %s has refused this process",
			      link->runner.name);
		rv = -MMC_EINVAL;
	}
	return rv;
}

/* Gets a window that both sides have mapped. Returns 0 or a negative error. */
static int attach(struct mmc_link *link, size_t mailbox_bytes)
{
	const struct mmc_attach attach = {
		.window_bytes = sizeof(*link->window) + mailbox_bytes,
	};
	const char *name = link->runner.name;
	struct mmc_attached attached;
	int fds[MMC_MEETING_FDS_MAX];
	bool creates = link->runner.kind != MMC_RUNNER_FIRMWARE;
	int window_fd = -1;
	int nfds;
	bool sent;

	if (creates) {
		window_fd = create_window(link, attach.window_bytes);
		if (window_fd < 0)
			return fail("cannot create shared memory", name);
		link->window->magic = MMC_OFFLOAD_MAGIC;
		link->window->version = MMC_OFFLOAD_VERSION;
	}
	sent = mmc_meeting_send(link->socket, &attach, sizeof(attach),
				&window_fd, creates);
	if (creates)
		close(window_fd);
	if (!sent)
		return fail("cannot attach", name);
	nfds = mmc_meeting_receive(link->socket, &attached, sizeof(attached),
				   fds);
	if (nfds < 0)
		return fail("cannot attach", name);
	return take_answer(link, &attached, fds, nfds, attach.window_bytes);
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

void mmc_link_close(struct mmc_link *link)
{
	const int fds[] = { link->socket, link->bell_fd, link->runner_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (link->mapped != NULL)
		munmap(link->mapped, link->mapped_bytes);
}

/* ---- whether the runner exists ------------------------------------------- */

static void set_error(const struct mmc_link *link)
{
	mmc_error_set("proxy %s (process %u), which carries out this process's "
		      "operations, has ended or does not answer",
		      link->runner.name, link->runner.pid);
}

/*
 * Looks whether the runner has closed the socket, on which it sends nothing, and waits
 * for a bell or for that for at most `wait_ns`.
 */
static void look(struct mmc_link *link, uint64_t wait_ns)
{
	const struct timespec timeout = mmc_clock_timespec(wait_ns);
	struct pollfd polled[] = {
		{ .fd = link->socket, .events = POLLIN },
		{ .fd = link->bell_fd, .events = POLLIN },
	};

	if (ppoll(polled, wait_ns > 0 ? 2 : 1, &timeout, NULL) > 0 &&
	    polled[0].revents != 0)
		link->broken = true;
}

/* Beats, once the runner has repeated the beat before; else gives it up in time. */
static void beat(struct mmc_link *link, uint64_t now_ns)
{
	struct mmc_offload_window *window = link->window;

	if (mmc_ring_see(&window->runner_beat) == window->host_beat) {
		link->silent_ns = now_ns + link->timeout_ns;
		mmc_ring_show(&window->host_beat, window->host_beat + 1);
		if (mmc_ring_must_ring(&window->commands))
			mmc_descriptor_wake(link->runner_fd);
	} else if (now_ns >= link->silent_ns) {
		link->broken = true;
	}
	link->beat_ns = now_ns + link->timeout_ns / BEATS;
}

bool mmc_link_is_whole(struct mmc_link *link, uint64_t now_ns)
{
	if (!link->broken && now_ns - link->looked_ns >= LOOK_NS) {
		link->looked_ns = now_ns;
		look(link, 0);
	}
	if (!link->broken && link->ninflight > 0 && now_ns >= link->beat_ns)
		beat(link, now_ns);
	if (link->broken)
		set_error(link);
	return !link->broken;
}

/* ---- rings --------------------------------------------------------------- */

void mmc_link_post(struct mmc_link *link,
		   const struct mmc_offload_command *command)
{
	struct mmc_offload_window *window = link->window;
	struct mmc_offload_ring *ring = &window->commands;

	window->command[ring->nproduced % MMC_OFFLOAD_COMMANDS] = *command;
	if (command->kind == MMC_OFFLOAD_START && link->ninflight++ == 0)
		link->beat_ns = mmc_clock_now_ns() + link->timeout_ns / BEATS;
	mmc_ring_produce(ring);
	if (mmc_ring_must_ring(ring))
		mmc_descriptor_wake(link->runner_fd);
}

bool mmc_link_take(struct mmc_link *link,
		   struct mmc_offload_completion *completion)
{
	struct mmc_offload_window *window = link->window;
	struct mmc_offload_ring *ring = &window->completions;

	if (mmc_ring_count(ring) == 0)
		return false;
	*completion =
		window->completion[ring->nconsumed % MMC_OFFLOAD_REQUESTS];
	mmc_ring_consume(ring);
	if (link->ninflight > 0)
		link->ninflight--;
	return true;
}

bool mmc_link_arm(struct mmc_link *link)
{
	struct mmc_offload_ring *ring = &link->window->completions;

	/* Who has disarmed it has rung, or is about to: that wakes once more, in vain. */
	if (__atomic_load_n(&ring->armed, __ATOMIC_RELAXED) == 0)
		mmc_descriptor_drain(link->bell_fd);
	mmc_ring_arm(ring);
	return link->broken || mmc_ring_count(ring) != 0;
}

/* ---- calls --------------------------------------------------------------- */

uint8_t *mmc_link_mailbox(const struct mmc_link *link)
{
	return link->window->mailbox.body;
}

static bool is_answered(const struct mmc_offload_mailbox *mailbox)
{
	return mmc_ring_see(&mailbox->nanswered) == mailbox->ncalled;
}

/* Sleeps until the call is answered; gives the runner up if that takes too long. */
static void await_answer(struct mmc_link *link, uint64_t takes_ns)
{
	const struct mmc_offload_mailbox *mailbox = &link->window->mailbox;
	uint64_t until_ns = mmc_clock_now_ns() + takes_ns + link->timeout_ns;

	while (!is_answered(mailbox) && !link->broken) {
		uint64_t now_ns = mmc_clock_now_ns();

		mmc_link_arm(link);
		if (is_answered(mailbox))
			return;
		if (now_ns >= until_ns)
			link->broken = true;
		else
			look(link, until_ns - now_ns);
	}
}

int mmc_link_call(struct mmc_link *link, const struct mmc_link_call *call)
{
	struct mmc_offload_mailbox *mailbox = &link->window->mailbox;
	const struct mmc_offload_command command = {
		.kind = MMC_OFFLOAD_CALL,
		.call = call->kind,
	};
	int status;

	if (!link->broken) {
		mailbox->stream = call->stream;
		mailbox->request = call->request;
		mailbox->body_bytes = call->argument_bytes;
		if (call->arguments != NULL)
			memcpy(mailbox->body, call->arguments,
			       call->argument_bytes);
		mailbox->ncalled++;
		mmc_link_post(link, &command);
		await_answer(link, call->takes_ns);
	}
	if (link->broken) {
		set_error(link);
		return -MMC_EIO;
	}
	status = mailbox->status;
	if (status < 0)
		mmc_error_set("%.*s", MMC_OFFLOAD_TEXT_SIZE - 1, mailbox->text);
	if (call->answer != NULL)
		memcpy(call->answer, mailbox->body,
		       mmc_min_u32(call->answer_bytes,
				   status < 0 ? 0 : mailbox->body_bytes));
	return status;
}

int mmc_link_share(struct mmc_link *link, uint32_t number, int fd,
		   uint64_t nbytes)
{
	const uint64_t arguments[] = { number, nbytes };

	if (!mmc_meeting_send(link->socket, arguments, sizeof(arguments), &fd,
			      1))
		return fail("cannot pass memory", link->runner.name);
	return mmc_link_call(link, &(struct mmc_link_call){
					   .kind = MMC_OFFLOAD_REGION,
					   .arguments = arguments,
					   .argument_bytes = sizeof(arguments),
				   });
}
