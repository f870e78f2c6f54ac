/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/remote/endpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/bits.h"
#include "support/clock.h"
#include "support/error.h"

/* Of the mailbox, besides addresses: any other argument or answer is shorter. */
#define MAILBOX_BYTES (64 << 10)

struct mmc_link *mmc_remote_link(struct mmc_endpoint *endpoint)
{
	return &mmc_remote_of(endpoint)->link;
}

/* ---- the driver ---------------------------------------------------------- */

static uint64_t remote_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return mmc_clock_now_ns();
}

static void remote_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	memcpy(address, mmc_remote_of(endpoint)->address,
	       endpoint->address_bytes);
}

static int remote_connect(struct mmc_endpoint *endpoint,
			  const uint8_t *addresses)
{
	struct mmc_remote *remote = mmc_remote_of(endpoint);

	return mmc_link_call(&remote->link,
			     &(struct mmc_link_call){
				     .kind = MMC_OFFLOAD_CONNECT,
				     .arguments = addresses,
				     .argument_bytes = remote->nranks *
						       endpoint->address_bytes,
				     .takes_ns = endpoint->timeout_ns,
			     });
}

/*
 * Looks whether chunks have landed, and takes completions; the `bytes` of their events are a
 * struct mmc_offload_completion.
 */
static int remote_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		       unsigned nmax)
{
	struct mmc_remote *remote = mmc_remote_of(endpoint);
	unsigned nevents = 0;

	if (mmc_link_has_shown(&remote->link))
		events[nevents++] =
			(struct mmc_event){ .kind = MMC_EVENT_LANDED };
	while (nevents < mmc_min_u32(nmax, MMC_OFFLOAD_REQUESTS) &&
	       mmc_link_take(&remote->link, &remote->ended[nevents])) {
		events[nevents] = (struct mmc_event){
			.kind = MMC_EVENT_ENDED,
			.bytes = (const uint8_t *)&remote->ended[nevents],
			.nbytes = sizeof(*remote->ended),
		};
		nevents++;
	}
	if (nevents > 0 || remote->reported ||
	    mmc_link_is_whole(&remote->link, mmc_clock_now_ns()))
		return (int)nevents;
	remote->reported = true;
	/* The socket stays readable for ever; nothing more is to wake anybody by it. */
	dup2(remote->link.bell_fd, remote->link.socket);
	events[0] = (struct mmc_event){
		.kind = MMC_EVENT_BROKEN,
		.source = MMC_PEER_NONE,
		.error = -MMC_EIO,
	};
	return 1;
}

/* Is never called: no datagram is sent on behalf of this process. */
static int remote_send(struct mmc_endpoint *endpoint,
		       const struct mmc_parcel *parcels, unsigned nparcels)
{
	(void)endpoint;
	(void)parcels;
	(void)nparcels;
	return -MMC_EINVAL;
}

/*
 * The bell counts as data: nobody needs this process to answer while no operation of its
 * own is pending, since the runner answers.
 */
static unsigned remote_fds(struct mmc_endpoint *endpoint, int *fds,
			   unsigned *ncontrol)
{
	struct mmc_remote *remote = mmc_remote_of(endpoint);

	*ncontrol = 0;
	fds[0] = remote->link.bell_fd;
	fds[1] = remote->link.socket;
	return 2;
}

static bool remote_arm(struct mmc_endpoint *endpoint)
{
	struct mmc_remote *remote = mmc_remote_of(endpoint);

	return mmc_link_arm(&remote->link) && !remote->reported;
}

/* When to look whether a runner that has operations still answers. */
static uint64_t remote_deadline_ns(struct mmc_endpoint *endpoint)
{
	const struct mmc_remote *remote = mmc_remote_of(endpoint);

	return remote->link.ninflight > 0 && !remote->reported
		       ? remote->link.beat_ns
		       : MMC_NEVER_NS;
}

static void remote_close(struct mmc_endpoint *endpoint)
{
	struct mmc_remote *remote = mmc_remote_of(endpoint);

	mmc_remote_free_bounces(remote);
	mmc_link_close(&remote->link);
	free(remote);
}

uint32_t mmc_remote_region(const struct mmc_region *region)
{
	return (uint32_t)(uintptr_t)region->handle;
}

static int remote_share_memory(struct mmc_endpoint *endpoint, int fd,
			       size_t nbytes, struct mmc_region *region)
{
	uint32_t number;
	int rv = mmc_remote_share(endpoint, fd, nbytes, &number);

	if (rv == 0)
		region->handle = (void *)(uintptr_t)number;
	return rv;
}

static void remote_deregister_memory(struct mmc_endpoint *endpoint,
				     struct mmc_region *region)
{
	mmc_remote_unshare(endpoint, mmc_remote_region(region));
}

static const struct mmc_driver remote_driver = {
	.name = "remote",
	.now_ns = remote_now_ns,
	.address = remote_address,
	.connect = remote_connect,
	.poll = remote_poll,
	.send = remote_send,
	.share_memory = remote_share_memory,
	.deregister_memory = remote_deregister_memory,
	.fds = remote_fds,
	.arm = remote_arm,
	.deadline_ns = remote_deadline_ns,
	.close = remote_close,
};

/* ---- opening ------------------------------------------------------------- */

/* Has the runner open the team, and keeps the address that it answers. */
static int open_team(struct mmc_remote *remote,
		     const struct mmc_team_options *options)
{
	const struct mmc_offload_mailbox *mailbox;
	struct mmc_team_options theirs = *options;
	int rv;

	memset(theirs.proxy, 0, sizeof(theirs.proxy));
	/* The runner makes progress by itself; a program here need not. */
	theirs.unattended = false;
	theirs.spins = false;
	rv = mmc_link_call(&remote->link,
			   &(struct mmc_link_call){
				   .kind = MMC_OFFLOAD_OPEN,
				   .arguments = &theirs,
				   .argument_bytes = sizeof(theirs),
				   .answer = remote->address,
				   .answer_bytes = sizeof(remote->address),
			   });
	if (rv != 0)
		return rv;
	mailbox = &remote->link.bridge->mailbox;
	remote->endpoint.address_bytes = mailbox->body_bytes;
	if (mailbox->body_bytes > 0 &&
	    mailbox->body_bytes <= sizeof(remote->address))
		return 0;
	mmc_error_set("the proxy has answered with an address of %u bytes",
		      mailbox->body_bytes);
	return -MMC_EIO;
}

/* Has an adapter use its memory for results as region 0. */
static int claim_adapter(struct mmc_remote *remote)
{
	const uint64_t arguments[] = { 0, remote->link.region_bytes };

	remote->is_shared[0] = true;
	return mmc_link_call(&remote->link,
			     &(struct mmc_link_call){
				     .kind = MMC_OFFLOAD_REGION,
				     .arguments = arguments,
				     .argument_bytes = sizeof(arguments),
			     });
}

int mmc_remote_open(const struct mmc_team_options *options,
		    struct mmc_endpoint **endpoint)
{
	struct mmc_remote *remote = calloc(1, sizeof(*remote));
	int rv;

	if (remote == NULL)
		return -MMC_ENOMEM;
	remote->nranks = options->nranks;
	remote->endpoint.driver = &remote_driver;
	remote->endpoint.timeout_ns = options->timeout_ns;
	rv = mmc_link_open(options->proxy,
			   MAILBOX_BYTES + (size_t)options->nranks *
						   MMC_ADDRESS_BYTES_MAX,
			   options->timeout_ns, &remote->link);
	if (rv != 0) {
		free(remote);
		return rv;
	}
	if (remote->link.region != NULL)
		rv = claim_adapter(remote);
	if (rv == 0)
		rv = open_team(remote, options);
	if (rv != 0) {
		remote_close(&remote->endpoint);
		return rv;
	}
	*endpoint = &remote->endpoint;
	return 0;
}
