/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "drivers/udp/endpoint.h"
#include "support/bits.h"
#include "support/error.h"

/*
 * In how many calls of poll() in a row epoll need not be asked, if what is known to be
 * there fills the events. Control messages and other sockets wait for as long.
 */
#define UNASKED_MAX 1

/* Returns the rank that sent a train; MMC_PEER_UNKNOWN if none did. */
static uint32_t source_of(const struct mmc_udp *udp,
			  const struct mmc_udp_train *train)
{
	if (train->cut)
		return MMC_PEER_UNKNOWN;
	return mmc_udp_peers_find(&udp->peers,
				  ntohl(train->from->sin_addr.s_addr),
				  ntohs(train->from->sin_port));
}

/*
 * Writes an event for a datagram of `source`. No rank sends one that is longer than
 * `longest_bytes`. Where it came from is noted if that is not known as a rank.
 */
static void write_event(const struct mmc_udp *udp, struct mmc_event *event,
			const uint8_t *bytes, uint32_t nbytes, uint32_t source,
			const struct sockaddr_in *from)
{
	*event = (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.bytes = bytes,
		.nbytes = nbytes,
		.source = source,
	};
	if (nbytes > udp->longest_bytes) {
		event->nbytes = udp->longest_bytes;
		event->source = MMC_PEER_UNKNOWN;
	}
	if (event->source == MMC_PEER_UNKNOWN) {
		event->from_ip = ntohl(from->sin_addr.s_addr);
		event->from_port = ntohs(from->sin_port);
	}
}

/*
 * Writes events for the datagrams of a train, up to `nmax`. Returns their number, and
 * writes to `taken_bytes` how long they are together.
 */
static unsigned deliver_train(const struct mmc_udp *udp,
			      const struct mmc_udp_train *train,
			      uint32_t source, struct mmc_event *events,
			      unsigned nmax, uint32_t *taken_bytes)
{
	uint32_t at = 0;
	unsigned n = 0;

	do {
		uint32_t nbytes =
			mmc_min_u32(train->length_bytes, train->nbytes - at);

		write_event(udp, &events[n++], train->bytes + at, nbytes,
			    source, train->from);
		at += nbytes;
	} while (n < nmax && at < train->nbytes);
	*taken_bytes = at;
	return n;
}

/*
 * Writes events for datagrams in the staging memory, behind the first `nevents` events.
 * Returns the new number of events, `nmax` at most.
 */
static unsigned deliver(const struct mmc_udp *udp,
			struct mmc_udp_staging *staging,
			struct mmc_event *events, unsigned nevents,
			unsigned nmax)
{
	struct mmc_udp_train train;

	while (nevents < nmax && mmc_udp_staging_look(staging, &train)) {
		uint32_t source = source_of(udp, &train);
		uint32_t taken_bytes = train.nbytes;

		if (source != udp->options.rank)
			nevents += deliver_train(udp, &train, source,
						 events + nevents,
						 nmax - nevents, &taken_bytes);
		mmc_udp_staging_take(staging, &train, taken_bytes);
	}
	return nevents;
}

/* Sets the error's text for a socket that has failed. Returns -MMC_EIO. */
static int explain(const struct mmc_udp *udp, int error)
{
	mmc_error_set("cannot receive on %s: %s", udp->options.interface.name,
		      strerror(error));
	return -MMC_EIO;
}

/*
 * Receives from one socket, and writes events behind the first `nevents` events.
 * Returns the new number of events, `nmax` at most, or a negative error.
 */
static int drain(struct mmc_udp *udp, struct mmc_udp_socket *socket,
		 struct mmc_udp_staging *staging, struct mmc_event *events,
		 unsigned nevents, unsigned nmax)
{
	while (socket->readable && nevents < nmax) {
		bool more;
		int received = mmc_udp_staging_receive(staging, socket->fd,
						       nmax - nevents, &more);

		if (received < 0)
			return explain(udp, errno);
		socket->readable = more;
		nevents = deliver(udp, staging, events, nevents, nmax);
	}
	return (int)nevents;
}

/*
 * Does what drain() does, for all sockets but the control socket. Begins behind the
 * socket that the previous call drained last.
 */
static int drain_in_turn(struct mmc_udp *udp, struct mmc_event *events,
			 unsigned nevents, unsigned nmax)
{
	unsigned nothers = udp->nsockets - MMC_UDP_DATA;
	unsigned first = udp->next_socket;

	for (unsigned i = 0; i < nothers && nevents < nmax; i++) {
		unsigned at = (first + i) % nothers;
		struct mmc_udp_socket *socket =
			&udp->sockets[MMC_UDP_DATA + at];
		int rv;

		if (!socket->readable)
			continue;
		rv = drain(udp, socket, &udp->data_staging, events, nevents,
			   nmax);
		if (rv < 0)
			return rv;
		nevents = (unsigned)rv;
		udp->next_socket = at + 1;
	}
	return (int)nevents;
}

/* Does what drain() does, for the banks that a worker has filled. */
static int drain_worker(struct mmc_udp *udp, struct mmc_udp_worker *worker,
			struct mmc_event *events, unsigned nevents,
			unsigned nmax)
{
	struct mmc_udp_bank *bank;

	while (nevents < nmax && (bank = mmc_udp_worker_bank(worker)) != NULL) {
		nevents = deliver(udp, &bank->staging, events, nevents, nmax);
		if (mmc_udp_staging_holds(&bank->staging))
			break;
		udp->workers.ncalls += bank->ncalls;
		mmc_udp_worker_handled(worker);
		if (bank->error != 0)
			return explain(udp, bank->error);
	}
	return (int)nevents;
}

/* Does what drain_in_turn() does, for the workers. */
static int drain_workers(struct mmc_udp *udp, struct mmc_event *events,
			 unsigned nevents, unsigned nmax)
{
	struct mmc_udp_workers *workers = &udp->workers;
	unsigned first = workers->next;

	for (unsigned i = 0; i < workers->count && nevents < nmax; i++) {
		unsigned at = (first + i) % workers->count;
		int rv = drain_worker(udp, &workers->items[at], events, nevents,
				      nmax);

		if (rv < 0)
			return rv;
		if ((unsigned)rv > nevents)
			workers->next = at + 1;
		nevents = (unsigned)rv;
	}
	return (int)nevents;
}

/* Notes which sockets and connections epoll reports. */
static void note_readable(struct mmc_udp *udp)
{
	struct epoll_event found[MMC_UDP_SOCKETS_MAX];
	int nfound = epoll_wait(udp->epoll_fd, found, MMC_UDP_SOCKETS_MAX, 0);

	udp->nwaits++;

	for (int i = 0; i < nfound; i++) {
		uint32_t which = found[i].data.u32;

		if (which < MMC_UDP_SOCKETS_MAX)
			udp->sockets[which].readable = true;
		else if (which == MMC_UDP_WATCH_LISTENER)
			udp->connecting = true;
		else if (which == MMC_UDP_WATCH_INQUIRIES)
			udp->finding = true;
	}
}

/*
 * Ends the inquiries about the sources of the first `nevents` events, and writes behind
 * these events what the other inquiries have found. Returns the new number of events.
 */
static unsigned take_findings(struct mmc_udp *udp, struct mmc_event *events,
			      unsigned nevents, unsigned nmax)
{
	struct mmc_endpoint *endpoint = &udp->endpoint;
	uint64_t now_ns = endpoint->driver->now_ns(endpoint);

	for (unsigned i = 0; i < nevents; i++)
		mmc_udp_inquiries_heard(&udp->inquiries, events[i].source);
	if (udp->finding || now_ns >= udp->inquiries.due_ns)
		mmc_udp_inquiries_check(&udp->inquiries, udp->listeners,
					now_ns);
	udp->finding = false;
	return nevents + mmc_udp_inquiries_take(&udp->inquiries,
						events + nevents,
						nmax - nevents);
}

/*
 * Receives from all sockets that are known to be readable, and writes events behind the
 * first `nevents` events. Returns the new number of events, or a negative error.
 */
static int drain_known(struct mmc_udp *udp, struct mmc_event *events,
		       unsigned nevents, unsigned nmax)
{
	unsigned control_max = nevents + (nmax - nevents + 1) / 2;
	int rv;

	nevents = deliver(udp, &udp->control_staging, events, nevents,
			  control_max);
	rv = drain(udp, &udp->sockets[MMC_UDP_CONTROL], &udp->control_staging,
		   events, nevents, control_max);
	if (rv < 0)
		return rv;
	rv = (int)deliver(udp, &udp->data_staging, events, (unsigned)rv, nmax);
	rv = drain_in_turn(udp, events, (unsigned)rv, nmax);
	return rv < 0 ? rv : drain_workers(udp, events, (unsigned)rv, nmax);
}

/* Receives from all sockets. Returns the number of events, or a negative error. */
static int drain_all(struct mmc_udp *udp, struct mmc_event *events,
		     unsigned nmax)
{
	int rv = 0;

	mmc_udp_staging_reuse(&udp->control_staging);
	mmc_udp_staging_reuse(&udp->data_staging);
	mmc_udp_workers_reuse(&udp->workers);
	if (udp->nunasked < UNASKED_MAX)
		rv = drain_known(udp, events, 0, nmax);
	udp->nunasked++;
	if (rv < 0 || (unsigned)rv == nmax)
		return rv;
	udp->nunasked = 0;
	note_readable(udp);
	return drain_known(udp, events, (unsigned)rv, nmax);
}

int mmc_udp_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		 unsigned nmax)
{
	struct mmc_udp *udp = (struct mmc_udp *)endpoint;
	int rv;

	nmax = mmc_min_u32(nmax, MMC_UDP_BATCH);
	rv = drain_all(udp, events, nmax);
	endpoint->lags = udp->workers.count > 0 && rv < (int)nmax &&
			 mmc_udp_workers_lag(&udp->workers);
	endpoint->rx_calls = udp->nwaits + udp->control_staging.ncalls +
			     udp->data_staging.ncalls + udp->workers.ncalls;
	if (udp->connecting)
		udp->connecting = mmc_udp_listener_clear(&udp->listener);
	if (rv >= 0 && udp->inquiries.count > 0)
		rv = (int)take_findings(udp, events, (unsigned)rv, nmax);
	return rv;
}
