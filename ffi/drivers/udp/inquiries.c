/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/inquiries.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/bits.h"

/*
 * A connection that has ended is opened again only if the peer was asked about within
 * this time.
 */
#define REOPEN_NS (2 * MMC_S_NS)

void mmc_udp_inquiries_init(struct mmc_udp_inquiries *inquiries, int epoll_fd,
			    uint32_t tag)
{
	*inquiries = (struct mmc_udp_inquiries){
		.epoll_fd = epoll_fd,
		.tag = tag,
		.due_ns = MMC_NEVER_NS,
	};
}

/* Closes the connection, if any. That also ends epoll's watch of its descriptor. */
static void disconnect(struct mmc_udp_inquiry *inquiry)
{
	if (inquiry->fd >= 0)
		close(inquiry->fd);
	inquiry->fd = -1;
	inquiry->established = false;
}

void mmc_udp_inquiries_destroy(struct mmc_udp_inquiries *inquiries)
{
	for (uint32_t i = 0; i < inquiries->count; i++)
		disconnect(&inquiries->items[i]);
	free(inquiries->items);
	inquiries->items = NULL;
	inquiries->count = 0;
}

/* Notes what was found, in place of an earlier finding that was not reported yet. */
static void note(struct mmc_udp_inquiries *inquiries,
		 struct mmc_udp_inquiry *inquiry, enum mmc_udp_finding finding)
{
	inquiries->nfound += inquiry->finding == MMC_UDP_FOUND_NOTHING;
	inquiry->finding = finding;
}

/* ---- connecting ---------------------------------------------------------- */

/* Begins a connection, unless this process has no descriptor left. */
static void connect_to(struct mmc_udp_inquiries *inquiries,
		       struct mmc_udp_inquiry *inquiry,
		       const struct sockaddr_in *address, uint64_t now_ns)
{
	struct epoll_event watch = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.u32 = inquiries->tag,
	};
	int one = 1;
	int rv;

	inquiry->attempted_ns = now_ns;
	inquiry->ended = false;
	inquiry->fd =
		socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (inquiry->fd < 0)
		return;
	/* Nagle's algorithm would hold a question back until the last was answered. */
	setsockopt(inquiry->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	rv = connect(inquiry->fd, (const struct sockaddr *)address,
		     sizeof(*address));
	if (rv != 0 && errno == ECONNREFUSED)
		note(inquiries, inquiry, MMC_UDP_FOUND_GONE);
	if ((rv != 0 && errno != EINPROGRESS) ||
	    epoll_ctl(inquiries->epoll_fd, EPOLL_CTL_ADD, inquiry->fd,
		      &watch) != 0)
		disconnect(inquiry);
}

/*
 * Returns whether a connection leads to itself. If the listener's process on this host
 * has ended, the kernel may choose the listener's port for this end of the connection,
 * which then connects to itself (RFC 9293, 3.5, simultaneous open).
 */
static bool leads_to_itself(const struct mmc_udp_inquiry *inquiry)
{
	struct sockaddr_in here = { .sin_port = 0 };
	struct sockaddr_in there = { .sin_port = 0 };
	socklen_t here_size = sizeof(here);
	socklen_t there_size = sizeof(there);

	return getsockname(inquiry->fd, (struct sockaddr *)&here, &here_size) ==
		       0 &&
	       getpeername(inquiry->fd, (struct sockaddr *)&there,
			   &there_size) == 0 &&
	       here.sin_port == there.sin_port &&
	       here.sin_addr.s_addr == there.sin_addr.s_addr;
}

/* Returns whether the connection has ended or failed. */
static bool has_ended(const struct mmc_udp_inquiry *inquiry)
{
	char byte;
	ssize_t rv = recv(inquiry->fd, &byte, sizeof(byte), MSG_DONTWAIT);

	return rv == 0 || (rv < 0 && errno != EAGAIN && errno != EINTR);
}

/* Returns whether the peer's kernel has acknowledged all that was sent. */
static bool is_acknowledged(const struct mmc_udp_inquiry *inquiry)
{
	int unacknowledged_bytes = 0;

	return ioctl(inquiry->fd, SIOCOUTQ, &unacknowledged_bytes) == 0 &&
	       unacknowledged_bytes == 0;
}

/*
 * Returns whether the connection is still being established. Writes to `error` why it
 * failed, or 0.
 */
static bool is_pending(const struct mmc_udp_inquiry *inquiry, int *error)
{
	struct tcp_info info = { .tcpi_state = TCP_CLOSE };
	socklen_t size = sizeof(*error);

	*error = 0;
	getsockopt(inquiry->fd, SOL_SOCKET, SO_ERROR, error, &size);
	size = sizeof(info);
	return *error == 0 &&
	       getsockopt(inquiry->fd, IPPROTO_TCP, TCP_INFO, &info, &size) ==
		       0 &&
	       info.tcpi_state == TCP_SYN_SENT;
}

/* Finds out what has become of a connection, and notes what that says of the peer. */
static void look_at(struct mmc_udp_inquiries *inquiries,
		    struct mmc_udp_inquiry *inquiry)
{
	int error;

	if (!inquiry->established) {
		if (is_pending(inquiry, &error))
			return;
		if (error == 0 && leads_to_itself(inquiry))
			error = ECONNREFUSED;
		if (error == ECONNREFUSED)
			note(inquiries, inquiry, MMC_UDP_FOUND_GONE);
		if (error != 0) {
			disconnect(inquiry);
			return;
		}
		inquiry->established = true;
		note(inquiries, inquiry, MMC_UDP_FOUND_ALIVE);
	}
	if (has_ended(inquiry)) {
		disconnect(inquiry);
		inquiry->ended = true;
	}
}

/* ---- asking -------------------------------------------------------------- */

static struct mmc_udp_inquiry *of_peer(struct mmc_udp_inquiries *inquiries,
				       uint32_t peer)
{
	for (uint32_t i = 0; i < inquiries->count; i++)
		if (inquiries->items[i].peer == peer)
			return &inquiries->items[i];
	return NULL;
}

static struct mmc_udp_inquiry *add(struct mmc_udp_inquiries *inquiries,
				   uint32_t peer)
{
	if (inquiries->count == inquiries->nmax) {
		uint32_t nmax = mmc_max_u32(2 * inquiries->nmax, 4);
		struct mmc_udp_inquiry *grown =
			realloc(inquiries->items, nmax * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		inquiries->items = grown;
		inquiries->nmax = nmax;
	}
	inquiries->items[inquiries->count] = (struct mmc_udp_inquiry){
		.peer = peer,
		.fd = -1,
	};
	return &inquiries->items[inquiries->count++];
}

void mmc_udp_inquiries_ask(struct mmc_udp_inquiries *inquiries, uint32_t peer,
			   const struct sockaddr_in *address, uint64_t now_ns)
{
	struct mmc_udp_inquiry *inquiry = of_peer(inquiries, peer);

	if (inquiry == NULL) {
		inquiry = add(inquiries, peer);
		if (inquiry == NULL)
			return;
		inquiry->asked_ns = now_ns;
		connect_to(inquiries, inquiry, address, now_ns);
		return;
	}
	inquiry->asked_ns = now_ns;
	if (inquiry->fd >= 0)
		look_at(inquiries, inquiry);
	if (inquiry->fd < 0) {
		if (now_ns - inquiry->attempted_ns >= MMC_UDP_RECONNECT_NS)
			connect_to(inquiries, inquiry, address, now_ns);
	} else if (inquiry->established && is_acknowledged(inquiry)) {
		note(inquiries, inquiry, MMC_UDP_FOUND_ALIVE);
		/* This fails only if unanswered questions fill the buffer. */
		send(inquiry->fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

void mmc_udp_inquiries_heard(struct mmc_udp_inquiries *inquiries, uint32_t peer)
{
	struct mmc_udp_inquiry *inquiry = of_peer(inquiries, peer);

	if (inquiry == NULL)
		return;
	disconnect(inquiry);
	inquiries->nfound -= inquiry->finding != MMC_UDP_FOUND_NOTHING;
	*inquiry = inquiries->items[--inquiries->count];
}

/*
 * When a process is killed, its kernel resets the connections that the process had not
 * accepted. So the listener of a connection that has ended is tried again at once: if
 * that is refused, the process is gone. Two attempts are at least MMC_UDP_RECONNECT_NS
 * apart.
 */
void mmc_udp_inquiries_check(struct mmc_udp_inquiries *inquiries,
			     const struct sockaddr_in *addresses,
			     uint64_t now_ns)
{
	inquiries->due_ns = MMC_NEVER_NS;
	for (uint32_t i = 0; i < inquiries->count; i++) {
		struct mmc_udp_inquiry *inquiry = &inquiries->items[i];
		uint64_t again_ns =
			inquiry->attempted_ns + MMC_UDP_RECONNECT_NS;

		if (inquiry->fd >= 0)
			look_at(inquiries, inquiry);
		if (!inquiry->ended || now_ns - inquiry->asked_ns > REOPEN_NS)
			continue;
		if (now_ns >= again_ns)
			connect_to(inquiries, inquiry,
				   &addresses[inquiry->peer], now_ns);
		else
			inquiries->due_ns =
				mmc_min_u64(inquiries->due_ns, again_ns);
	}
}

unsigned mmc_udp_inquiries_take(struct mmc_udp_inquiries *inquiries,
				struct mmc_event *events, unsigned nmax)
{
	unsigned n = 0;

	for (uint32_t i = 0;
	     i < inquiries->count && n < nmax && inquiries->nfound > 0; i++) {
		struct mmc_udp_inquiry *inquiry = &inquiries->items[i];

		if (inquiry->finding == MMC_UDP_FOUND_NOTHING)
			continue;
		events[n++] = (struct mmc_event){
			.kind = inquiry->finding == MMC_UDP_FOUND_ALIVE
					? MMC_EVENT_ALIVE
					: MMC_EVENT_GONE,
			.source = inquiry->peer,
		};
		inquiry->finding = MMC_UDP_FOUND_NOTHING;
		inquiries->nfound--;
	}
	return n;
}
