/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/wrapper.h"

static struct mmc_endpoint *inner_of(struct mmc_endpoint *endpoint)
{
	return ((struct mmc_wrapper *)endpoint)->inner;
}

static uint64_t inner_now_ns(struct mmc_endpoint *endpoint)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->now_ns(inner);
}

static void inner_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	inner->driver->address(inner, address);
}

static int inner_connect(struct mmc_endpoint *endpoint,
			 const uint8_t *addresses)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->connect(inner, addresses);
}

static int inner_place(struct mmc_endpoint *endpoint, void *to,
		       const struct mmc_event *datagrams, uint32_t ndatagrams,
		       uint32_t head_bytes, uint64_t cookie)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->place(inner, to, datagrams, ndatagrams,
				    head_bytes, cookie);
}

static int inner_begin_placement(struct mmc_endpoint *endpoint,
				 const struct mmc_predictor *predictor)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->begin_placement(inner, predictor);
}

static int inner_end_placement(struct mmc_endpoint *endpoint, bool forget)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->end_placement(inner, forget);
}

static int inner_register_memory(struct mmc_endpoint *endpoint,
				 const void *memory, size_t nbytes,
				 struct mmc_region *region)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->register_memory(inner, memory, nbytes, region);
}

static void inner_deregister_memory(struct mmc_endpoint *endpoint,
				    struct mmc_region *region)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	inner->driver->deregister_memory(inner, region);
}

static int inner_grant_read(struct mmc_endpoint *endpoint, uint32_t peer,
			    const struct mmc_region *region, const void *memory,
			    size_t nbytes, struct mmc_grant *grant)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->grant_read(inner, peer, region, memory, nbytes,
					 grant);
}

static void inner_revoke_read(struct mmc_endpoint *endpoint,
			      struct mmc_grant *grant)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	inner->driver->revoke_read(inner, grant);
}

static int inner_read(struct mmc_endpoint *endpoint, uint32_t peer,
		      const struct mmc_stretch *stretches, unsigned nstretches,
		      uint64_t cookie)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->read(inner, peer, stretches, nstretches, cookie);
}

static void inner_inquire(struct mmc_endpoint *endpoint, uint32_t peer)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	inner->driver->inquire(inner, peer);
}

static bool inner_arm(struct mmc_endpoint *endpoint)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->arm(inner);
}

static unsigned inner_fds(struct mmc_endpoint *endpoint, int *fds,
			  unsigned *ncontrol)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	return inner->driver->fds(inner, fds, ncontrol);
}

static void inner_guard(struct mmc_endpoint *endpoint, const uint64_t *channels,
			unsigned nchannels)
{
	struct mmc_endpoint *inner = inner_of(endpoint);

	inner->driver->guard(inner, channels, nchannels);
}

static const struct mmc_driver driver = {
	.now_ns = inner_now_ns,
	.address = inner_address,
	.connect = inner_connect,
	.place = inner_place,
	.begin_placement = inner_begin_placement,
	.end_placement = inner_end_placement,
	.register_memory = inner_register_memory,
	.deregister_memory = inner_deregister_memory,
	.grant_read = inner_grant_read,
	.revoke_read = inner_revoke_read,
	.read = inner_read,
	.inquire = inner_inquire,
	.fds = inner_fds,
	.arm = inner_arm,
	.guard = inner_guard,
};

void mmc_wrapper_init(struct mmc_wrapper *wrapper, struct mmc_endpoint *inner)
{
	wrapper->driver = driver;
	if (inner->driver->place == NULL)
		wrapper->driver.place = NULL;
	if (inner->driver->begin_placement == NULL) {
		wrapper->driver.begin_placement = NULL;
		wrapper->driver.end_placement = NULL;
	}
	if (inner->driver->inquire == NULL)
		wrapper->driver.inquire = NULL;
	if (inner->driver->arm == NULL)
		wrapper->driver.arm = NULL;
	if (inner->driver->guard == NULL)
		wrapper->driver.guard = NULL;
	if (inner->read_bytes_max == 0) {
		wrapper->driver.register_memory = NULL;
		wrapper->driver.deregister_memory = NULL;
		wrapper->driver.grant_read = NULL;
		wrapper->driver.revoke_read = NULL;
		wrapper->driver.read = NULL;
	}
	wrapper->endpoint = *inner;
	wrapper->endpoint.driver = &wrapper->driver;
	wrapper->endpoint.kept_events = 0;
	wrapper->inner = inner;
}

int mmc_wrapper_poll(struct mmc_wrapper *wrapper, struct mmc_event *events,
		     unsigned nmax)
{
	struct mmc_endpoint *endpoint = &wrapper->endpoint;
	struct mmc_endpoint *inner = wrapper->inner;
	int rv;

	inner->timeout_ns = endpoint->timeout_ns;
	rv = inner->driver->poll(inner, events, nmax);
	endpoint->train_datagrams = inner->train_datagrams;
	endpoint->lags = inner->lags;
	endpoint->evacuated = inner->evacuated;
	endpoint->reconnects = inner->reconnects;
	endpoint->rejoins = inner->rejoins;
	endpoint->tx_calls = inner->tx_calls;
	endpoint->rx_calls = inner->rx_calls;
	return rv;
}
