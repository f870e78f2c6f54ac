/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/sim/reads.h"
#include "support/assert.h"

/* The indices of an endpoint's queues; subgroup i has QUEUE_GROUPS + i. */
enum { QUEUE_CONTROL, QUEUE_UNICAST, QUEUE_GROUPS };

static struct mmc_sim_endpoint *self_of(struct mmc_endpoint *endpoint)
{
	return (struct mmc_sim_endpoint *)endpoint;
}

static uint64_t sim_now_ns(struct mmc_endpoint *endpoint)
{
	return self_of(endpoint)->options.network->now_ns;
}

static void sim_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	memset(address, 0, MMC_SIM_ADDRESS_BYTES);
	mmc_put_u32(address, self_of(endpoint)->options.host);
}

static int sim_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses)
{
	struct mmc_sim_endpoint *self = self_of(endpoint);
	uint32_t nhosts = self->options.network->options.nhosts;

	for (uint32_t host = 0; host < nhosts; host++)
		if (mmc_get_u32(addresses + host * MMC_SIM_ADDRESS_BYTES) !=
		    host)
			return -MMC_EINVAL;
	return 0;
}

/*
 * Returns the queue that a frame belongs in. Control that is multicast shares the queue
 * of its subgroup, as it would share the subgroup's socket.
 */
static uint32_t queue_of(const struct mmc_frame *frame)
{
	if (frame->peer == MMC_PEER_ALL)
		return QUEUE_GROUPS + frame->subgroup;
	return frame->control ? QUEUE_CONTROL : QUEUE_UNICAST;
}

void mmc_sim_endpoint_receive(struct mmc_sim_endpoint *endpoint,
			      struct mmc_frame *frame)
{
	uint32_t queue = queue_of(frame);
	bool control = queue == QUEUE_CONTROL;
	uint64_t *queued = control ? &endpoint->queued_control_bytes
				   : &endpoint->queued_bytes;
	uint64_t bound = control ? endpoint->options.control_bytes
				 : endpoint->options.buffer_bytes;

	if (*queued + frame->scaled_bytes > bound ||
	    (endpoint->options.receives > 0 && queue >= QUEUE_GROUPS &&
	     !mmc_sim_receives_arrive(endpoint, frame->subgroup, frame)) ||
	    mmc_sim_queue_append(&endpoint->queues[queue], frame) < 0) {
		endpoint->overrun_datagrams++;
		mmc_network_count_lacked(endpoint->options.network, frame, 1);
		mmc_network_release(endpoint->options.network, frame);
		return;
	}
	*queued += frame->scaled_bytes;
	mmc_traffic_add(&endpoint->received, frame);
}

bool mmc_sim_endpoint_pending(const struct mmc_sim_endpoint *endpoint)
{
	return endpoint->queued_bytes > 0 ||
	       endpoint->queued_control_bytes > 0 || endpoint->copies.made ||
	       endpoint->ended_reads || endpoint->receives.nplugs > 0 ||
	       endpoint->nanswered > 0;
}

/* Frees what the last poll has lent to the engine. */
static void give_back(struct mmc_sim_endpoint *self)
{
	for (uint32_t i = 0; i < self->nlent; i++)
		mmc_network_release(self->options.network, self->lent[i]);
	self->nlent = 0;
	mmc_sim_reads_give_back(self);
}

/* Returns where the payload of a frame that is polled lies; NULL: in the frame. */
static const uint8_t *body_of(struct mmc_sim_endpoint *self, uint32_t queue,
			      const struct mmc_frame *frame)
{
	if (self->options.receives == 0 || queue < QUEUE_GROUPS)
		return NULL;
	return mmc_sim_receives_poll(self, queue - QUEUE_GROUPS, frame);
}

static unsigned poll_queue(struct mmc_sim_endpoint *self, uint32_t queue,
			   struct mmc_event *events, unsigned nmax)
{
	uint64_t *queued = queue == QUEUE_CONTROL ? &self->queued_control_bytes
						  : &self->queued_bytes;
	unsigned n = 0;

	while (n < nmax && self->queues[queue].nframes > 0) {
		struct mmc_frame *frame =
			mmc_sim_queue_take(&self->queues[queue]);
		const uint8_t *body = body_of(self, queue, frame);

		if (!frame)
			continue;
		*queued -= frame->scaled_bytes;
		self->lent[self->nlent++] = frame;
		self->polled_datagrams++;
		events[n++] = (struct mmc_event){
			.kind = MMC_EVENT_DATAGRAM,
			.bytes = frame->bytes,
			.body = body,
			.nbytes = frame->nbytes,
			.source = frame->source,
		};
	}
	return n;
}

/* Reports payloads that `place` held back and that are in their places now. */
static unsigned poll_settled(struct mmc_sim_endpoint *self,
			     struct mmc_event *events, unsigned nmax)
{
	unsigned n = 0;

	while (n < nmax && mmc_placement_take_settled(&self->receives.placement,
						      &events[n].cookie)) {
		events[n] = (struct mmc_event){
			.kind = MMC_EVENT_PLACED,
			.cookie = events[n].cookie,
			.count = 1,
		};
		n++;
	}
	return n;
}

/* Sends plugs to the host's own queues; they arrive at once. */
static void send_plugs(struct mmc_sim_endpoint *self)
{
	for (uint32_t i = 0; i < self->options.subgroups; i++) {
		uint32_t nplugs = mmc_sim_receives_plugs(self, i);

		while (nplugs-- > 0)
			if (mmc_sim_queue_append(
				    &self->queues[QUEUE_GROUPS + i], NULL) <
				    0 ||
			    !mmc_sim_receives_arrive(self, i, NULL))
				break;
	}
}

/*
 * Reports completions and control first. Each call begins the other queues with a
 * different one, so that none starves.
 */
static int sim_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		    unsigned nmax)
{
	struct mmc_sim_endpoint *self = self_of(endpoint);
	uint32_t ndata = 1 + self->options.subgroups;
	unsigned n;

	if (nmax > MMC_SIM_EVENTS_MAX)
		nmax = MMC_SIM_EVENTS_MAX;
	give_back(self);
	if (self->options.receives > 0)
		mmc_sim_receives_post(self);
	n = mmc_sim_copies_poll(&self->copies, events, nmax);
	n += mmc_sim_reads_poll(self, events + n, nmax - n);
	n += mmc_sim_inquiries_poll(self, events + n, nmax - n);
	n += poll_queue(self, QUEUE_CONTROL, events + n, nmax - n);
	for (uint32_t i = 0; i < ndata; i++) {
		uint32_t queue = QUEUE_UNICAST + (self->next_queue + i) % ndata;

		n += poll_queue(self, queue, events + n, nmax - n);
	}
	self->next_queue = (self->next_queue + 1) % ndata;
	if (self->options.receives > 0) {
		n += poll_settled(self, events + n, nmax - n);
		self->base.evacuated = self->receives.placement.evacuated;
		send_plugs(self);
	}
	return (int)n;
}

static int sim_send(struct mmc_endpoint *endpoint,
		    const struct mmc_parcel *parcels, unsigned nparcels)
{
	struct mmc_sim_endpoint *self = self_of(endpoint);
	struct mmc_network *network = self->options.network;

	for (unsigned i = 0; i < nparcels; i++) {
		const struct mmc_parcel *parcel = &parcels[i];

		MMC_ASSERT(parcel->peer != MMC_PEER_ALL ||
			   parcel->subgroup < self->options.subgroups);
		mmc_network_send(network, self->options.host, parcel);
	}
	return 0;
}

/* Places one payload: see `place` of struct mmc_driver. */
static int place_one(struct mmc_sim_endpoint *self, void *to, const void *from,
		     size_t nbytes, uint64_t cookie)
{
	struct mmc_network *network = self->options.network;

	if (mmc_placement_defer(&self->receives.placement, to, from, nbytes,
				cookie))
		return -MMC_EAGAIN;
	if (self->options.place_delay_ns == 0) {
		memcpy(to, from, nbytes);
		return 0;
	}
	if (mmc_sim_copies_add(&self->copies, to, from, nbytes, cookie) < 0)
		return -MMC_ENOMEM;
	mmc_network_at(network, network->now_ns + self->options.place_delay_ns,
		       self->options.place_kind, self->options.host);
	return -MMC_EAGAIN;
}

static int sim_place(struct mmc_endpoint *endpoint, void *to,
		     const struct mmc_event *datagrams, uint32_t ndatagrams,
		     uint32_t head_bytes, uint64_t cookie)
{
	struct mmc_sim_endpoint *self = self_of(endpoint);
	uint8_t *place = to;
	int rv = 0;

	MMC_ASSERT(ndatagrams == 1 ||
		   endpoint->driver->begin_placement == NULL);
	for (uint32_t i = 0; i < ndatagrams; i++) {
		uint32_t nbytes = datagrams[i].nbytes - head_bytes;

		rv = place_one(self, place,
			       mmc_event_body(&datagrams[i], head_bytes),
			       nbytes, cookie + i);
		if (rv != 0 && rv != -MMC_EAGAIN)
			break;
		place += nbytes;
	}
	return rv;
}

void mmc_sim_endpoint_make_copy(struct mmc_sim_endpoint *endpoint)
{
	mmc_sim_copies_make(&endpoint->copies);
}

void mmc_sim_endpoint_die(struct mmc_sim_endpoint *endpoint)
{
	mmc_sim_copies_forget(&endpoint->copies);
	mmc_sim_reads_free(endpoint);
	mmc_sim_inquiries_free(endpoint);
	if (endpoint->options.regions)
		mmc_sim_regions_die(endpoint->options.regions,
				    endpoint->options.host);
}

static unsigned sim_fds(struct mmc_endpoint *endpoint, int *fds,
			unsigned *ncontrol)
{
	(void)endpoint;
	(void)fds;
	*ncontrol = 0;
	return 0;
}

static void sim_close(struct mmc_endpoint *endpoint)
{
	struct mmc_sim_endpoint *self = self_of(endpoint);

	give_back(self);
	for (uint32_t i = 0; i < MMC_SIM_QUEUES_MAX; i++) {
		struct mmc_sim_queue *queue = &self->queues[i];

		while (queue->nframes > 0) {
			struct mmc_frame *frame = mmc_sim_queue_take(queue);

			if (frame)
				mmc_network_release(self->options.network,
						    frame);
		}
		free(queue->frames);
	}
	mmc_sim_copies_free(&self->copies);
	mmc_sim_reads_free(self);
	mmc_sim_inquiries_free(self);
	mmc_sim_receives_destroy(self);
	free(self);
}

static const struct mmc_driver driver = {
	.name = "sim",
	.now_ns = sim_now_ns,
	.address = sim_address,
	.connect = sim_connect,
	.poll = sim_poll,
	.send = sim_send,
	.place = sim_place,
	.begin_placement = mmc_sim_begin_placement,
	.end_placement = mmc_sim_end_placement,
	.register_memory = mmc_sim_register_memory,
	.deregister_memory = mmc_sim_deregister_memory,
	.grant_read = mmc_sim_grant_read,
	.revoke_read = mmc_sim_revoke_read,
	.read = mmc_sim_read,
	.inquire = mmc_sim_inquire,
	.fds = sim_fds,
	.close = sim_close,
};

/* Returns the driver without the functions that the options do not ask for. */
static struct mmc_driver
driver_for(const struct mmc_sim_endpoint_options *options)
{
	struct mmc_driver left = driver;

	if (options->place_delay_ns == 0 && options->receives == 0)
		left.place = NULL;
	if (options->receives == 0) {
		left.begin_placement = NULL;
		left.end_placement = NULL;
	}
	if (options->kernels == NULL)
		left.inquire = NULL;
	return left;
}

int mmc_sim_endpoint_create(const struct mmc_sim_endpoint_options *options,
			    struct mmc_sim_endpoint **endpoint)
{
	struct mmc_sim_endpoint *self;

	if (options->subgroups == 0 ||
	    options->subgroups > MMC_SIM_SUBGROUPS_MAX ||
	    options->host >= options->network->options.nhosts)
		return -MMC_EINVAL;
	self = calloc(1, sizeof(*self));
	if (!self)
		return -MMC_ENOMEM;
	self->driver = driver_for(options);
	self->base.driver = &self->driver;
	self->base.address_bytes = MMC_SIM_ADDRESS_BYTES;
	if (options->regions) {
		self->base.read_bytes_max = MMC_SIM_READ_BYTES_MAX;
		self->base.batch_datagrams = MMC_BATCH_DATAGRAMS_MAX;
	} else {
		self->base.train_datagrams = MMC_BATCH_DATAGRAMS_MAX;
	}
	self->options = *options;
	mmc_sim_copies_init(&self->copies);
	if (options->receives > 0 && mmc_sim_receives_init(self) < 0) {
		sim_close(&self->base);
		return -MMC_ENOMEM;
	}
	*endpoint = self;
	return 0;
}
