/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements mpimcast/proxy.h: accepts ranks, and lets a thread serve each team. */
#include <mpimcast/mmc.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "drivers/remote/link.h"
#include "drivers/udp/linger.h"
#include "offload/meeting.h"
#include "proxy/attachment.h"
#include "proxy/service.h"
#include "support/bits.h"
#include "support/clock.h"
#include "support/descriptor.h"
#include "support/error.h"

/* Ranks that may wait for the proxy to accept them. */
#define BACKLOG 1024

/* How long a process that has connected may take to send its greeting. */
#define GREETING_S 1

struct mmc_proxy {
	const struct mmc_service *service;
	int listen_fd; /* -1 once the proxy takes no more ranks */
	int news_fd;   /* an eventfd: `draining` or `stopping` has been set */
	int epoll_fd; /* has all descriptors; data.ptr is the attachment, or NULL */
	bool draining; /* set by other threads and signal handlers: use atomics */
	bool stopping; /* likewise */
	struct mmc_attachment *attachments;
};

static int fail(const char *what)
{
	mmc_error_set("proxy: %s: %s", what, strerror(errno));
	return -MMC_EIO;
}

/* ---- opening ------------------------------------------------------------- */

/* Has epoll report when `fd` becomes readable, or only when its peer has closed it. */
static int watch(struct mmc_proxy *proxy, int fd, uint32_t events,
		 struct mmc_attachment *attachment)
{
	struct epoll_event event = { .events = events, .data.ptr = attachment };

	if (epoll_ctl(proxy->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	return fail("epoll_ctl");
}

/* Takes the name. Returns 0 or a negative error. */
static int take_name(struct mmc_proxy *proxy, const char *name)
{
	struct sockaddr_un address;
	socklen_t nbytes = mmc_meeting_address(name, &address);

	if (nbytes == 0)
		return -MMC_EINVAL;
	proxy->listen_fd = socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (proxy->listen_fd < 0)
		return fail("socket");
	if (bind(proxy->listen_fd, (const struct sockaddr *)&address, nbytes) !=
	    0) {
		if (errno != EADDRINUSE)
			return fail("bind");
		mmc_error_set("another process is the proxy named %s", name);
		return -MMC_EADDRINUSE;
	}
	if (listen(proxy->listen_fd, BACKLOG) != 0)
		return fail("listen");
	return 0;
}

int mmc_proxy_open(const char *name, struct mmc_proxy **proxy)
{
	static const struct mmc_service service = {
		.kind = MMC_RUNNER_PROXY,
		.open = mmc_attachment_open,
		.close = mmc_attachment_close,
	};

	return mmc_service_open(name, &service, proxy);
}

int mmc_service_open(const char *name, const struct mmc_service *service,
		     struct mmc_proxy **proxy)
{
	struct mmc_proxy *new = calloc(1, sizeof(*new));
	int rv = 0;

	if (new == NULL)
		return -MMC_ENOMEM;
	new->service = service;
	new->listen_fd = -1;
	new->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	new->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (new->news_fd < 0 || new->epoll_fd < 0)
		rv = fail("descriptors");
	if (rv == 0)
		rv = take_name(new, name);
	if (rv == 0)
		rv = watch(new, new->listen_fd, EPOLLIN, NULL);
	if (rv == 0)
		rv = watch(new, new->news_fd, EPOLLIN, NULL);
	if (rv != 0) {
		mmc_proxy_close(new);
		return rv;
	}
	*proxy = new;
	return 0;
}

/* ---- ranks --------------------------------------------------------------- */

/* Exchanges greetings with a process. Returns whether it may attach. */
static bool greet(int fd, uint32_t kind)
{
	const struct timeval patience = { .tv_sec = GREETING_S };
	const struct mmc_greeting own = {
		.magic = MMC_OFFLOAD_MAGIC,
		.version = MMC_OFFLOAD_VERSION,
		.kind = kind,
		.pid = (uint32_t)getpid(),
	};
	struct mmc_greeting other;
	int fds[MMC_MEETING_FDS_MAX];
	int nfds;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!mmc_meeting_is_own(fd))
		return false;
	nfds = mmc_meeting_receive(fd, &other, sizeof(other), fds);
	for (int i = 0; i < nfds; i++)
		close(fds[i]);
	/* To a process of another version, the answer says which one this is. */
	return nfds == 0 && other.magic == MMC_OFFLOAD_MAGIC &&
	       mmc_meeting_send(fd, &own, sizeof(own), NULL, 0) &&
	       other.version == MMC_OFFLOAD_VERSION;
}

/* Serves the team of a rank that has connected. The rank learns of a failure. */
static void serve(struct mmc_proxy *proxy, int fd)
{
	struct mmc_attachment *attachment;

	if (!greet(fd, proxy->service->kind) ||
	    proxy->service->open(fd, &attachment) != 0) {
		close(fd);
		return;
	}
	attachment->next = proxy->attachments;
	proxy->attachments = attachment;
	/* What a rank passes later is for the attachment's thread to receive. */
	if (watch(proxy, fd, EPOLLRDHUP, attachment) != 0) {
		proxy->attachments = attachment->next;
		proxy->service->close(attachment);
	}
}

static void accept_ranks(struct mmc_proxy *proxy)
{
	int fd;

	while (proxy->listen_fd >= 0 &&
	       (fd = accept4(proxy->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		serve(proxy, fd);
}

static void detach(struct mmc_proxy *proxy, struct mmc_attachment *attachment)
{
	struct mmc_attachment **at = &proxy->attachments;

	while (*at != attachment)
		at = &(*at)->next;
	*at = attachment->next;
	/* Closing a socket does not remove it from epoll while a forked child holds it, too. */
	epoll_ctl(proxy->epoll_fd, EPOLL_CTL_DEL, attachment->socket, NULL);
	proxy->service->close(attachment);
}

/* ---- running ------------------------------------------------------------- */

static bool is_set(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(struct mmc_proxy *proxy, bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
	mmc_descriptor_wake(proxy->news_fd);
}

/* Frees the name, for a proxy of a newer version. */
static void free_name(struct mmc_proxy *proxy)
{
	if (proxy->listen_fd >= 0)
		close(proxy->listen_fd);
	proxy->listen_fd = -1;
}

/* Waits for news of ranks for at most `limit_ns`. Returns 0 or a negative error. */
static int await(struct mmc_proxy *proxy, uint64_t limit_ns)
{
	struct epoll_event events[16];
	int limit_ms = (int)mmc_min_u64(limit_ns / MMC_MS_NS + 1, INT_MAX);
	int nevents = epoll_wait(proxy->epoll_fd, events,
				 sizeof(events) / sizeof(*events), limit_ms);

	if (nevents < 0 && errno != EINTR)
		return fail("epoll_wait");
	for (int i = 0; i < nevents; i++)
		if (events[i].data.ptr != NULL)
			detach(proxy, events[i].data.ptr);
	mmc_descriptor_drain(proxy->news_fd);
	accept_ranks(proxy);
	return 0;
}

int mmc_proxy_run(struct mmc_proxy *proxy, uint64_t idle_ns)
{
	uint64_t busy_ns = mmc_clock_now_ns(); /* when it last had a rank */
	int rv = 0;

	while (rv == 0 && !is_set(&proxy->stopping)) {
		uint64_t now_ns = mmc_clock_now_ns();
		/* A proxy without ranks has no endpoint that would leave groups in time. */
		uint64_t limit_ns = mmc_udp_linger_sweep(now_ns) - now_ns;
		bool draining = is_set(&proxy->draining);

		if (draining) {
			/* Those that have found the proxy by its name are still served. */
			accept_ranks(proxy);
			free_name(proxy);
		}
		if (proxy->attachments != NULL)
			busy_ns = now_ns;
		else if (draining ||
			 (idle_ns > 0 && now_ns - busy_ns >= idle_ns))
			break;
		else if (idle_ns > 0)
			limit_ns = mmc_min_u64(limit_ns,
					       busy_ns + idle_ns - now_ns);
		rv = await(proxy, limit_ns);
	}
	free_name(proxy);
	while (proxy->attachments != NULL)
		detach(proxy, proxy->attachments);
	return rv;
}

void mmc_proxy_drain(struct mmc_proxy *proxy)
{
	set(proxy, &proxy->draining);
}

void mmc_proxy_stop(struct mmc_proxy *proxy)
{
	set(proxy, &proxy->stopping);
}

void mmc_proxy_close(struct mmc_proxy *proxy)
{
	if (proxy == NULL)
		return;
	free_name(proxy);
	if (proxy->news_fd >= 0)
		close(proxy->news_fd);
	if (proxy->epoll_fd >= 0)
		close(proxy->epoll_fd);
	free(proxy);
}

/* ---- finding ------------------------------------------------------------- */

/* How long a proxy may take to say who it is. */
#define FIND_NS (2 * MMC_S_NS)

int mmc_proxy_find(const char *name, struct mmc_runner *runner)
{
	struct mmc_link link;
	int rv = mmc_link_open(name, 0, FIND_NS, &link);

	if (rv != 0)
		return rv;
	*runner = link.runner;
	mmc_link_close(&link);
	return 0;
}
