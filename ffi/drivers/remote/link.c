/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/remote/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "offload/meeting.h"
#include "offload/ring.h"
#include "support/bits.h"
#include "support/clock.h"
#include "support/descriptor.h"
#include "support/error.h"

/* How often a host that does not sleep looks whether its runner still exists. */
#define LOOK_NS (10 * MMC_MS_NS)

/* A host gives its runner up after so many looks, spread over the timeout, at a missing beat. */
#define BEATS 4

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

/*
 * Beats, if the runner has repeated the previous beat. If it has not at BEATS looks in a row,
 * the host gives the runner up. Time alone proves nothing: when a suspended container is
 * resumed, the host may run before its runner does.
 */
static void beat(struct mmc_link *link, uint64_t now_ns)
{
	struct mmc_offload_bridge *bridge = link->bridge;

	if (mmc_ring_see(&bridge->runner_beat) == bridge->host_beat) {
		link->nmissed = 0;
		mmc_ring_show(&bridge->host_beat, bridge->host_beat + 1);
		if (mmc_ring_must_ring(&bridge->commands))
			mmc_descriptor_wake(link->runner_fd);
	} else if (++link->nmissed == BEATS) {
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
	struct mmc_offload_bridge *bridge = link->bridge;
	struct mmc_offload_ring *ring = &bridge->commands;

	bridge->command[ring->nproduced % MMC_OFFLOAD_COMMANDS] = *command;
	if (command->kind == MMC_OFFLOAD_START && link->ninflight++ == 0)
		link->beat_ns = mmc_clock_now_ns() + link->timeout_ns / BEATS;
	mmc_ring_produce(ring);
	if (mmc_ring_must_ring(ring))
		mmc_descriptor_wake(link->runner_fd);
}

bool mmc_link_take(struct mmc_link *link,
		   struct mmc_offload_completion *completion)
{
	struct mmc_offload_bridge *bridge = link->bridge;
	struct mmc_offload_ring *ring = &bridge->completions;

	if (mmc_ring_count(ring) == 0)
		return false;
	*completion =
		bridge->completion[ring->nconsumed % MMC_OFFLOAD_REQUESTS];
	mmc_ring_consume(ring);
	if (link->ninflight > 0)
		link->ninflight--;
	return true;
}

bool mmc_link_has_shown(struct mmc_link *link)
{
	uint32_t nshown = mmc_ring_see(&link->bridge->nshown);
	bool news = nshown != link->nshown;

	link->nshown = nshown;
	return news;
}

bool mmc_link_arm(struct mmc_link *link)
{
	struct mmc_offload_ring *ring = &link->bridge->completions;

	/* The runner has disarmed it, so it has rung. A ring that comes late wakes in vain. */
	if (__atomic_load_n(&ring->armed, __ATOMIC_RELAXED) == 0)
		mmc_descriptor_drain(link->bell_fd);
	mmc_ring_arm(ring);
	return link->broken || mmc_ring_count(ring) != 0 ||
	       mmc_ring_see(&link->bridge->nshown) != link->nshown;
}

/* ---- calls --------------------------------------------------------------- */

uint8_t *mmc_link_mailbox(const struct mmc_link *link)
{
	return link->bridge->mailbox.body;
}

static bool is_answered(const struct mmc_offload_mailbox *mailbox)
{
	return mmc_ring_see(&mailbox->nanswered) == mailbox->ncalled;
}

/*
 * Sleeps until the call is answered; gives the runner up if that takes too long. Of a sleep
 * only the time that was asked for counts, since a pause of the machine prolongs it.
 */
static void await_answer(struct mmc_link *link, uint64_t takes_ns)
{
	const struct mmc_offload_mailbox *mailbox = &link->bridge->mailbox;
	uint64_t left_ns = takes_ns + link->timeout_ns;
	uint64_t before_ns = mmc_clock_now_ns();

	while (!is_answered(mailbox) && !link->broken) {
		uint64_t sleep_ns =
			mmc_min_u64(left_ns, link->timeout_ns / BEATS);
		uint64_t now_ns;

		mmc_link_arm(link);
		if (is_answered(mailbox))
			return;
		if (left_ns == 0)
			link->broken = true;
		else
			look(link, sleep_ns);
		now_ns = mmc_clock_now_ns();
		left_ns -= mmc_min_u64(now_ns - before_ns, sleep_ns);
		before_ns = now_ns;
	}
}

int mmc_link_call(struct mmc_link *link, const struct mmc_link_call *call)
{
	struct mmc_offload_mailbox *mailbox = &link->bridge->mailbox;
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
			      1)) {
		mmc_error_set("proxy %s: cannot pass memory: %s",
			      link->runner.name, strerror(errno));
		return -MMC_EIO;
	}
	return mmc_link_call(link, &(struct mmc_link_call){
					   .kind = MMC_OFFLOAD_REGION,
					   .arguments = arguments,
					   .argument_bytes = sizeof(arguments),
				   });
}
