/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver of ranks that a hub joins: what one rank sends, the others receive when
 * they next poll, in order and without loss unless the test says otherwise. Reads of
 * memory are carried out at once and reported at the next poll. The clock stands still
 * until the test moves it; with threads it runs.
 */
#ifndef MMC_TESTS_HUB_DRIVER_H
#define MMC_TESTS_HUB_DRIVER_H

#include <pthread.h>
#include <sys/eventfd.h>

#include "check.h"
#include "drivers/driver.h"
#include "support/clock.h"
#include "support/descriptor.h"

#define HUB_RANKS_MAX 4
#define HUB_QUEUE_MAX 256
#define HUB_REGIONS_MAX 64
#define HUB_BYTES_MAX 4200

/* The options that all ranks of a hub share; hub_open() takes them from the test. */
struct hub_options {
	uint32_t nranks;
	uint32_t nplayed;  /* the last ranks, which the test plays */
	bool threaded;	   /* engines have a responder */
	uint64_t clock_ns; /* the time at which the clock starts */
	uint32_t repair;
	uint32_t checksum;
	uint32_t eager_bytes;
	uint64_t timeout_ns;
	bool unattended;
	uint32_t read_bytes_max; /* 0: memory cannot be read */
};

struct hub_region {
	size_t nbytes;
	bool live;
};

struct hub_granted {
	uint32_t peer; /* who may read */
	uint64_t address;
	size_t nbytes;
	bool live;
};

struct hub_rank {
	struct mmc_endpoint endpoint;
	uint32_t number;
	struct mmc_engine *engine;
	struct mmc_team *team;
	struct mmc_stream *stream; /* the first; see hub.h */
	pthread_mutex_t mutex;	   /* guards the queue */
	struct mmc_event queue[HUB_QUEUE_MAX];
	uint8_t bytes[HUB_QUEUE_MAX][HUB_BYTES_MAX];
	uint32_t nqueued;
	uint32_t nhanded; /* how many of these a poll has handed out */
	uint32_t npolls;
	uint32_t poll_max;	/* events that one poll finds at most; 0: all */
	uint32_t nsent;		/* datagrams sent */
	struct mmc_parcel sent; /* the last parcel sent, without its bytes */
	uint8_t sent_bytes[HUB_BYTES_MAX];
	struct hub_region regions[HUB_REGIONS_MAX];
	struct hub_granted grants[HUB_REGIONS_MAX]; /* by key */
	uint32_t nguards; /* how often it was told the channels below */
	uint64_t channels[MMC_GUARD_CHANNELS_MAX];
	uint32_t nchannels;
	uint32_t nregions;
	uint32_t ngrants;
	uint32_t ninquiries;
	int send_rv;	     /* what send() returns */
	int read_rv;	     /* what read() returns, unless 0 */
	int register_rv;     /* what register_memory() returns, unless 0 */
	uint32_t grants_max; /* how many grants succeed; 0: all */
	uint32_t nreads;
	bool arms; /* what arm() returns */
	int fd;	   /* readable when the queue is not empty */
	bool closed;
};

static struct hub_rank hub[HUB_RANKS_MAX];
static struct hub_options hub_options;
static uint64_t hub_now_ns; /* the clock; unused with threads */
static uint64_t hub_begin_ns;

/* Returns whether the datagram `bytes` from `source` to `to` is lost; NULL: none is. */
static bool (*hub_loses)(uint32_t source, uint32_t to, const uint8_t *bytes);

/* ---- the driver ---------------------------------------------------------- */

static inline struct hub_rank *hub_of(struct mmc_endpoint *endpoint)
{
	return (struct hub_rank *)endpoint;
}

static inline uint64_t hub_driver_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	if (!hub_options.threaded)
		return hub_now_ns;
	return hub_options.clock_ns + mmc_clock_now_ns() - hub_begin_ns;
}

static inline void hub_driver_address(struct mmc_endpoint *endpoint,
				      uint8_t *address)
{
	*address = (uint8_t)hub_of(endpoint)->number;
}

static inline int hub_driver_connect(struct mmc_endpoint *endpoint,
				     const uint8_t *addresses)
{
	(void)endpoint;
	for (uint32_t r = 0; r < hub_options.nranks; r++)
		CHECK_EQ(addresses[r], r);
	return 0;
}

/*
 * Queues an event for rank `to`; returns its `nbytes` bytes for the caller to fill in.
 */
static inline uint8_t *hub_queue(uint32_t to, struct mmc_event event,
				 uint32_t nbytes)
{
	struct hub_rank *rank = &hub[to];
	uint8_t *bytes;

	MMC_ASSERT(rank->nqueued < HUB_QUEUE_MAX && nbytes <= HUB_BYTES_MAX);
	pthread_mutex_lock(&rank->mutex);
	bytes = rank->bytes[rank->nqueued];
	if (event.kind == MMC_EVENT_DATAGRAM)
		event.bytes = bytes;
	else if (nbytes > 0)
		event.body = bytes;
	event.nbytes = nbytes;
	rank->queue[rank->nqueued++] = event;
	pthread_mutex_unlock(&rank->mutex);
	mmc_descriptor_wake(rank->fd);
	return bytes;
}

/* Hands a datagram of `source` to rank `to`. */
static inline void hub_deliver(uint32_t source, uint32_t to,
			       const uint8_t *bytes, uint32_t nbytes)
{
	const struct mmc_event event = {
		.kind = MMC_EVENT_DATAGRAM,
		.source = source,
	};

	memcpy(hub_queue(to, event, nbytes), bytes, nbytes);
}

static inline int hub_driver_poll(struct mmc_endpoint *endpoint,
				  struct mmc_event *events, unsigned nmax)
{
	struct hub_rank *rank = hub_of(endpoint);
	uint32_t n;

	pthread_mutex_lock(&rank->mutex);
	rank->npolls++;
	if (rank->nhanded == rank->nqueued)
		rank->nhanded = rank->nqueued = 0;
	n = mmc_min_u32(rank->nqueued - rank->nhanded, nmax);
	if (rank->poll_max > 0)
		n = mmc_min_u32(n, rank->poll_max);
	memcpy(events, rank->queue + rank->nhanded, n * sizeof(*events));
	rank->nhanded += n;
	if (rank->nhanded == rank->nqueued)
		mmc_descriptor_drain(rank->fd);
	pthread_mutex_unlock(&rank->mutex);
	return (int)n;
}

static inline int hub_driver_send(struct mmc_endpoint *endpoint,
				  const struct mmc_parcel *parcels,
				  unsigned nparcels)
{
	struct hub_rank *rank = hub_of(endpoint);

	for (unsigned i = 0; rank->send_rv == 0 && i < nparcels; i++) {
		const struct mmc_parcel *parcel = &parcels[i];
		uint32_t nbytes = parcel->head_bytes + parcel->body_bytes;

		memcpy(rank->sent_bytes, parcel->head, parcel->head_bytes);
		if (parcel->body_bytes > 0)
			memcpy(rank->sent_bytes + parcel->head_bytes,
			       parcel->body, parcel->body_bytes);
		rank->sent = *parcel;
		rank->nsent++;
		for (uint32_t to = 0;
		     to < hub_options.nranks - hub_options.nplayed; to++)
			if (to != rank->number &&
			    (parcel->peer == MMC_PEER_ALL ||
			     parcel->peer == to) &&
			    (hub_loses == NULL ||
			     !hub_loses(rank->number, to, rank->sent_bytes)))
				hub_deliver(rank->number, to, rank->sent_bytes,
					    nbytes);
	}
	return rank->send_rv;
}

static inline int hub_driver_register(struct mmc_endpoint *endpoint,
				      const void *memory, size_t nbytes,
				      struct mmc_region *region)
{
	struct hub_rank *rank = hub_of(endpoint);

	if (rank->register_rv != 0)
		return rank->register_rv;
	MMC_ASSERT(rank->nregions < HUB_REGIONS_MAX);
	(void)memory;
	region->handle = &rank->regions[rank->nregions];
	rank->regions[rank->nregions++] = (struct hub_region){
		.nbytes = nbytes,
		.live = true,
	};
	return 0;
}

static inline void hub_driver_deregister(struct mmc_endpoint *endpoint,
					 struct mmc_region *region)
{
	struct hub_region *at = region->handle;

	(void)endpoint;
	CHECK(at->live);
	at->live = false;
}

static inline int hub_driver_grant(struct mmc_endpoint *endpoint, uint32_t peer,
				   const struct mmc_region *region,
				   const void *memory, size_t nbytes,
				   struct mmc_grant *grant)
{
	struct hub_rank *rank = hub_of(endpoint);

	if (rank->grants_max != 0 && rank->ngrants == rank->grants_max)
		return -MMC_EAGAIN;
	MMC_ASSERT(rank->ngrants < HUB_REGIONS_MAX);
	if (region != NULL)
		CHECK(((const struct hub_region *)region->handle)->live);
	*grant = (struct mmc_grant){
		.address = (uintptr_t)memory,
		.key = rank->ngrants,
		.handle = &rank->grants[rank->ngrants],
	};
	rank->grants[rank->ngrants++] = (struct hub_granted){
		.peer = peer,
		.address = grant->address,
		.nbytes = nbytes,
		.live = true,
	};
	return 0;
}

static inline void hub_driver_revoke(struct mmc_endpoint *endpoint,
				     struct mmc_grant *grant)
{
	struct hub_granted *at = grant->handle;

	(void)endpoint;
	CHECK(at->live);
	at->live = false;
}

/* Returns whether a rank may read a stretch of another rank's memory. */
static inline bool hub_may_read(uint32_t reader, uint32_t peer,
				const struct mmc_stretch *stretch)
{
	const struct hub_granted *at = &hub[peer].grants[stretch->key];

	return stretch->key < hub[peer].ngrants && at->live &&
	       at->peer == reader && stretch->address >= at->address &&
	       stretch->address + stretch->nbytes <= at->address + at->nbytes;
}

static inline int hub_driver_read(struct mmc_endpoint *endpoint, uint32_t peer,
				  const struct mmc_stretch *stretches,
				  unsigned nstretches, uint64_t cookie)
{
	struct hub_rank *rank = hub_of(endpoint);
	const struct mmc_event event = {
		.kind = MMC_EVENT_READ,
		.cookie = cookie,
	};
	uint32_t nbytes = 0;
	uint8_t *to;

	if (rank->read_rv != 0)
		return rank->read_rv;
	for (unsigned i = 0; i < nstretches; i++) {
		CHECK(hub_may_read(rank->number, peer, &stretches[i]));
		nbytes += stretches[i].nbytes;
	}
	rank->nreads++;
	to = hub_queue(rank->number, event, nbytes);
	for (unsigned i = 0; i < nstretches; to += stretches[i++].nbytes)
		memcpy(to, (const void *)(uintptr_t)stretches[i].address,
		       stretches[i].nbytes);
	return 0;
}

static inline void hub_driver_inquire(struct mmc_endpoint *endpoint,
				      uint32_t peer)
{
	(void)peer;
	hub_of(endpoint)->ninquiries++;
}

static inline unsigned hub_driver_fds(struct mmc_endpoint *endpoint, int *fds,
				      unsigned *ncontrol)
{
	fds[0] = hub_of(endpoint)->fd;
	*ncontrol = 1;
	return 1;
}

static inline bool hub_driver_arm(struct mmc_endpoint *endpoint)
{
	return hub_of(endpoint)->arms;
}

/* Notes what the endpoint is guarded with. */
static inline void hub_driver_guard(struct mmc_endpoint *endpoint,
				    const uint64_t *channels,
				    unsigned nchannels)
{
	struct hub_rank *rank = hub_of(endpoint);

	rank->nguards++;
	rank->nchannels = nchannels;
	memcpy(rank->channels, channels, nchannels * sizeof(*channels));
}

static inline void hub_driver_close(struct mmc_endpoint *endpoint)
{
	struct hub_rank *rank = hub_of(endpoint);

	close(rank->fd);
	rank->closed = true;
}

static const struct mmc_driver hub_driver = {
	.name = "hub",
	.now_ns = hub_driver_now_ns,
	.address = hub_driver_address,
	.connect = hub_driver_connect,
	.poll = hub_driver_poll,
	.send = hub_driver_send,
	.register_memory = hub_driver_register,
	.deregister_memory = hub_driver_deregister,
	.grant_read = hub_driver_grant,
	.revoke_read = hub_driver_revoke,
	.read = hub_driver_read,
	.inquire = hub_driver_inquire,
	.fds = hub_driver_fds,
	.arm = hub_driver_arm,
	.guard = hub_driver_guard,
	.close = hub_driver_close,
};

#endif
