/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/types.h"
#include "support/error.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct mmc_udp_listener *all; /* all that are open; under `lock` */

/* ---- fork() -------------------------------------------------------------- */

/* The list must not change while a child gets its copy of it. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* Closes the child's copies, so that connections fail once the parent has ended. */
static void in_child(void)
{
	for (struct mmc_udp_listener *at = all; at != NULL; at = at->next) {
		close(at->fd);
		at->fd = -1;
	}
	all = NULL;
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static void enlist(struct mmc_udp_listener *listener)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	listener->next = all;
	all = listener;
	pthread_mutex_unlock(&lock);
}

static void delist(const struct mmc_udp_listener *listener)
{
	struct mmc_udp_listener **at = &all;

	pthread_mutex_lock(&lock);
	while (*at != NULL && *at != listener)
		at = &(*at)->next;
	if (*at != NULL)
		*at = listener->next;
	pthread_mutex_unlock(&lock);
}

/* ---- listening ----------------------------------------------------------- */

/*
 * How often to try to listen. SO_REUSEADDR lets two sockets bind the same port as long
 * as neither listens, so another endpoint may take the port between bind() and
 * listen().
 */
#define ATTEMPTS_MAX 16

/*
 * Opens a socket that listens, and writes its address. A port of a given range is used
 * even if the kernel still remembers connections of the port's last owner. Returns the
 * socket, or -1 with errno set.
 */
static int try_to_listen(struct sockaddr_in *address,
			 const struct mmc_ports *ports, int backlog)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*address);
	int one = 1;
	int error;

	if (fd < 0) {
		mmc_error_set("cannot open a socket: %s", strerror(errno));
		return -1;
	}
	if (ports->count > 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	errno = 0;
	if (mmc_udp_bind_within(fd, address, ports) == 0 &&
	    listen(fd, backlog) == 0 &&
	    getsockname(fd, (struct sockaddr *)address, &size) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int mmc_udp_listener_open(struct mmc_udp_listener *listener,
			  const struct sockaddr_in *address,
			  const struct mmc_ports *ports, uint32_t backlog)
{
	int most = backlog > INT32_MAX ? INT32_MAX : (int)backlog;
	unsigned nattempts = ports->count > 0 ? ATTEMPTS_MAX : 1;
	struct sockaddr_in bound;

	listener->fd = -1;
	while (listener->fd < 0 && nattempts-- > 0) {
		bound = *address;
		listener->fd = try_to_listen(&bound, ports, most);
	}
	if (listener->fd >= 0) {
		listener->port = ntohs(bound.sin_port);
		enlist(listener);
		return 0;
	}
	mmc_error_set("cannot listen for TCP connections: %s", strerror(errno));
	return -MMC_EIO;
}

void mmc_udp_listener_close(struct mmc_udp_listener *listener)
{
	if (listener->fd < 0)
		return;
	delist(listener);
	close(listener->fd);
	listener->fd = -1;
}

bool mmc_udp_listener_clear(struct mmc_udp_listener *listener)
{
	for (unsigned i = 0; i < MMC_UDP_ACCEPTED_MAX; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			close(fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			return false;
	}
	return true;
}
