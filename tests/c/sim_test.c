/* SPDX-License-Identifier: BSD-3-Clause */
/* The network and the endpoints of the simulator. */
#include "drivers/sim/endpoint.h"
#include "drivers/sim/network.h"

#include "check.h"

enum { KIND_USER = MMC_NETWORK_TIMER, DATAGRAM_BYTES = MMC_HEADER_BYTES + 100 };

static struct mmc_network_options quiet_options(uint32_t nhosts)
{
	return (struct mmc_network_options){
		.nhosts = nhosts,
		.nswitches = 1,
		.link_mbits = 8000, /* a byte takes a nanosecond */
		.trunk_mbits = 8000,
		.latency_ns = 1000,
		.queue_bytes = 1 << 20,
		.datagram_bytes_max = 2048,
		.head_bytes = MMC_HEADER_BYTES,
		.payload_scale = 1,
		.seed = 7,
	};
}

/* Sends 100 bytes of payload behind a header with `index`. */
static void send_datagram(struct mmc_network *network, uint32_t source,
			  uint32_t peer, uint32_t index)
{
	const struct mmc_header header = { .index = index };
	uint8_t bytes[DATAGRAM_BYTES] = { 0 };
	const struct mmc_parcel parcel = {
		.head = bytes,
		.head_bytes = MMC_HEADER_BYTES,
		.body = bytes + MMC_HEADER_BYTES,
		.body_bytes = sizeof(bytes) - MMC_HEADER_BYTES,
		.peer = peer,
		.control = (index & MMC_INDEX_CONTROL) != 0,
	};

	mmc_header_encode(bytes, &header, sizeof(bytes), MMC_CHECKSUM_OFF);
	mmc_network_send(network, source, &parcel);
}

/*
 * Runs the network until it is empty, and counts the arrivals at each host; returns the
 * time of the last.
 */
static uint64_t drain(struct mmc_network *network, uint32_t *arrivals)
{
	struct mmc_heap_item event;
	uint64_t last_ns = 0;

	while (mmc_network_next(network, &event)) {
		if (event.kind != MMC_NETWORK_ARRIVAL)
			continue;
		last_ns = event.time_ns;
		arrivals[event.target]++;
		mmc_network_release(network, event.subject);
	}
	return last_ns;
}

/* Items leave in the order of their times, and equal ones as they came. */
static void heap_is_ordered_and_fair(void)
{
	struct mmc_prng prng = { .state = 1 };
	struct mmc_heap heap = { 0 };
	struct mmc_heap_item last = { 0 };
	struct mmc_heap_item item;

	for (uint32_t i = 0; i < 3000; i++) {
		item = (struct mmc_heap_item){
			.time_ns = mmc_prng_below(&prng, 100),
			.target = i,
		};
		CHECK_EQ(mmc_heap_push(&heap, &item), 0);
	}
	for (uint32_t i = 0; i < 3000; i++) {
		CHECK(mmc_heap_pop(&heap, &item));
		CHECK(item.time_ns > last.time_ns || i == 0 ||
		      (item.time_ns == last.time_ns &&
		       item.target > last.target));
		last = item;
	}
	CHECK(!mmc_heap_pop(&heap, &item));
	mmc_heap_free(&heap);
}

static void unicast_takes_two_links(void)
{
	const struct mmc_network_options options = quiet_options(3);
	uint32_t arrivals[3] = { 0 };
	struct mmc_network network;

	CHECK_EQ(mmc_network_init(&network, &options), 0);
	send_datagram(&network, 0, 2, 0);
	/* The switch stores and forwards: twice the bytes, twice the latency. */
	CHECK_EQ(drain(&network, arrivals),
		 2 * (DATAGRAM_BYTES + MMC_FRAME_OVERHEAD_BYTES + 1000));
	CHECK_EQ(arrivals[0], 0);
	CHECK_EQ(arrivals[1], 0);
	CHECK_EQ(arrivals[2], 1);
	CHECK_EQ(mmc_network_downlink(&network, 2)->bytes,
		 DATAGRAM_BYTES + MMC_FRAME_OVERHEAD_BYTES);
	mmc_network_free(&network);
}

static void multicast_reaches_all_but_the_sender(void)
{
	for (uint32_t nswitches = 1; nswitches <= 7; nswitches++) {
		struct mmc_network_options options = quiet_options(7);
		struct mmc_network network;

		options.nswitches = nswitches;
		CHECK_EQ(mmc_network_init(&network, &options), 0);
		for (uint32_t source = 0; source < 7; source++) {
			uint32_t arrivals[7] = { 0 };

			send_datagram(&network, source, MMC_PEER_ALL, 0);
			drain(&network, arrivals);
			for (uint32_t host = 0; host < 7; host++)
				CHECK_EQ(arrivals[host], host != source);
		}
		for (uint32_t i = 14; i < network.nlinks; i++)
			CHECK(network.links[i].entered <= 7);
		mmc_network_free(&network);
	}
}

static void unicast_crosses_the_spine(void)
{
	for (uint32_t from = 0; from < 7; from++) {
		for (uint32_t to = 0; to < 7; to++) {
			struct mmc_network_options options = quiet_options(7);
			uint32_t arrivals[7] = { 0 };
			struct mmc_network network;

			options.nswitches = 3;
			CHECK_EQ(mmc_network_init(&network, &options), 0);
			send_datagram(&network, from, to, 0);
			drain(&network, arrivals);
			for (uint32_t host = 0; host < 7; host++)
				CHECK_EQ(arrivals[host], host == to);
			mmc_network_free(&network);
		}
	}
}

static void full_queue_drops_the_tail(void)
{
	struct mmc_network_options options = quiet_options(3);
	uint32_t arrivals[3] = { 0 };
	struct mmc_network network;
	const struct mmc_link *link;

	options.queue_bytes = 3 * (DATAGRAM_BYTES + MMC_FRAME_OVERHEAD_BYTES);
	CHECK_EQ(mmc_network_init(&network, &options), 0);
	/* Two senders fill one port twice as fast as it drains. */
	for (unsigned i = 0; i < 20; i++) {
		send_datagram(&network, 0, 2, 0);
		send_datagram(&network, 1, 2, 0);
	}
	drain(&network, arrivals);
	link = mmc_network_downlink(&network, 2);
	CHECK_EQ(link->entered, 40);
	CHECK(link->overflowed > 10);
	CHECK_EQ(arrivals[2] + link->overflowed, 40);
	mmc_network_free(&network);
}

static void loss_and_copies_are_counted(void)
{
	struct mmc_network_options options = quiet_options(2);
	uint32_t arrivals[2] = { 0 };
	struct mmc_network network;
	const struct mmc_link *link;

	options.loss = UINT64_C(1) << 31;
	options.duplicate = UINT64_C(1) << 30;
	options.jitter_ns = 5000;
	CHECK_EQ(mmc_network_init(&network, &options), 0);
	for (unsigned i = 0; i < 1000; i++)
		send_datagram(&network, 0, 1, 0);
	drain(&network, arrivals);
	link = mmc_network_downlink(&network, 1);
	CHECK(link->lost > 500 && link->lost < 750);
	CHECK(link->duplicated > 200 && link->duplicated < 300);
	CHECK_EQ(link->entered + link->duplicated,
		 link->delivered + link->lost);
	CHECK_EQ(arrivals[1], link->delivered);
	mmc_network_free(&network);
}

static void sender_waits_for_its_link(void)
{
	const uint64_t frame_bytes = DATAGRAM_BYTES + MMC_FRAME_OVERHEAD_BYTES;
	const struct mmc_network_options options = quiet_options(2);
	struct mmc_network network;

	CHECK_EQ(mmc_network_init(&network, &options), 0);
	for (unsigned i = 0; i < 10; i++)
		send_datagram(&network, 0, 1, 0);
	CHECK_EQ(mmc_network_unsent_ns(&network, 0, 10 * frame_bytes), 0);
	CHECK_EQ(mmc_network_unsent_ns(&network, 0, 4 * frame_bytes),
		 6 * frame_bytes);
	mmc_network_free(&network);
}

/* The payload scale multiplies the bytes of chunks, not those of control. */
static void scale_counts_payload_but_not_control(void)
{
	struct mmc_network_options options = quiet_options(2);
	uint32_t arrivals[2] = { 0 };
	struct mmc_network network;

	options.payload_scale = 1024;
	CHECK_EQ(mmc_network_init(&network, &options), 0);
	send_datagram(&network, 0, 1, MMC_INDEX_REPAIR);
	send_datagram(&network, 0, 1, MMC_INDEX_CONTROL);
	drain(&network, arrivals);
	CHECK_EQ(mmc_network_downlink(&network, 1)->bytes,
		 2 * (MMC_HEADER_BYTES + MMC_FRAME_OVERHEAD_BYTES) +
			 1024 * 100 + 100);
	mmc_network_free(&network);
}

static void timers_come_in_order(void)
{
	const struct mmc_network_options options = quiet_options(1);
	struct mmc_network network;
	struct mmc_heap_item event;

	CHECK_EQ(mmc_network_init(&network, &options), 0);
	mmc_network_at(&network, 20, KIND_USER, 2);
	mmc_network_at(&network, 10, KIND_USER + 1, 1);
	CHECK(mmc_network_next(&network, &event));
	CHECK_EQ(event.kind, KIND_USER + 1);
	CHECK_EQ(network.now_ns, 10);
	mmc_network_at(&network, 5, KIND_USER, 3);
	CHECK(mmc_network_next(&network, &event));
	CHECK_EQ(event.target, 3);
	CHECK_EQ(network.now_ns, 10);
	CHECK(mmc_network_next(&network, &event));
	CHECK_EQ(event.target, 2);
	CHECK(!mmc_network_next(&network, &event));
	mmc_network_free(&network);
}

static void impossible_networks_are_refused(void)
{
	struct mmc_network_options options = quiet_options(2);
	struct mmc_network network;

	options.nswitches = 3;
	CHECK_EQ(mmc_network_init(&network, &options), -MMC_EINVAL);
	options.nswitches = 0;
	CHECK_EQ(mmc_network_init(&network, &options), -MMC_EINVAL);
	options = quiet_options(2);
	options.nswitches = 2;
	options.trunk_mbits = 8000001;
	CHECK_EQ(mmc_network_init(&network, &options), -MMC_EINVAL);
	options = quiet_options(0);
	CHECK_EQ(mmc_network_init(&network, &options), -MMC_EINVAL);
}

/* ---- endpoints ---------------------------------------------------------- */

static struct mmc_sim_endpoint *open_endpoint(struct mmc_network *network,
					      uint32_t host, uint64_t place_ns)
{
	const struct mmc_sim_endpoint_options options = {
		.network = network,
		.host = host,
		.subgroups = 2,
		.buffer_bytes = 3 * DATAGRAM_BYTES,
		.control_bytes = 4096,
		.place_delay_ns = place_ns,
		.place_kind = KIND_USER,
	};
	struct mmc_sim_endpoint *endpoint = NULL;

	CHECK_EQ(mmc_sim_endpoint_create(&options, &endpoint), 0);
	return endpoint;
}

/* Hands arrivals and due placements to the endpoint until no event is left. */
static void settle(struct mmc_network *network,
		   struct mmc_sim_endpoint *endpoint)
{
	struct mmc_heap_item event;

	while (mmc_network_next(network, &event)) {
		if (event.kind == MMC_NETWORK_ARRIVAL)
			mmc_sim_endpoint_receive(endpoint, event.subject);
		else
			mmc_sim_endpoint_make_copy(endpoint);
	}
}

static void endpoint_bounds_data_but_keeps_control(void)
{
	const struct mmc_network_options options = quiet_options(2);
	struct mmc_event events[MMC_SIM_EVENTS_MAX];
	struct mmc_sim_endpoint *endpoint;
	struct mmc_network network;
	const struct mmc_driver *driver;
	struct mmc_header header;

	CHECK_EQ(mmc_network_init(&network, &options), 0);
	endpoint = open_endpoint(&network, 1, 0);
	driver = endpoint->base.driver;
	CHECK(driver->place == NULL);
	for (uint32_t i = 0; i < 5; i++)
		send_datagram(&network, 0, i % 2 ? MMC_PEER_ALL : 1, i);
	send_datagram(&network, 0, 1, MMC_INDEX_CONTROL);
	settle(&network, endpoint);
	CHECK(mmc_sim_endpoint_pending(endpoint));
	CHECK_EQ(driver->poll(&endpoint->base, events, MMC_SIM_EVENTS_MAX), 4);
	CHECK_EQ(endpoint->overrun_datagrams, 2);
	CHECK_EQ(mmc_header_decode(&header, events[0].bytes, events[0].nbytes,
				   MMC_CHECKSUM_OFF),
		 0);
	CHECK_EQ(header.index, MMC_INDEX_CONTROL);
	CHECK_EQ(events[0].source, 0);
	CHECK_EQ(events[0].nbytes, DATAGRAM_BYTES);
	CHECK_EQ(driver->poll(&endpoint->base, events, MMC_SIM_EVENTS_MAX), 0);
	CHECK(!mmc_sim_endpoint_pending(endpoint));
	driver->close(&endpoint->base);
	mmc_network_free(&network);
}

static void placements_complete_later(void)
{
	const struct mmc_network_options options = quiet_options(1);
	uint8_t from[2][8] = { "payload", "another" };
	const struct mmc_event run[] = {
		{ .bytes = from[0], .nbytes = 8 },
		{ .bytes = from[0], .body = from[1], .nbytes = 8 },
	};
	uint8_t to[16] = "";
	struct mmc_event events[4];
	struct mmc_sim_endpoint *endpoint;
	struct mmc_network network;
	const struct mmc_driver *driver;

	CHECK_EQ(mmc_network_init(&network, &options), 0);
	endpoint = open_endpoint(&network, 0, 500);
	driver = endpoint->base.driver;
	CHECK_EQ(driver->place(&endpoint->base, to, run, 2, 0, 7), -MMC_EAGAIN);
	memset(from, 0, sizeof(from));
	CHECK_EQ(driver->poll(&endpoint->base, events, 4), 0);
	CHECK_EQ(to[0], 0);
	settle(&network, endpoint);
	CHECK_EQ(network.now_ns, 500);
	CHECK_BYTES(to, "payload\0another", 16);
	CHECK_EQ(driver->poll(&endpoint->base, events, 4), 2);
	for (uint64_t i = 0; i < 2; i++) {
		CHECK_EQ(events[i].kind, MMC_EVENT_PLACED);
		CHECK_EQ(events[i].cookie, 7 + i);
	}
	driver->close(&endpoint->base);
	mmc_network_free(&network);
}

static void dead_hosts_place_nothing(void)
{
	const struct mmc_network_options options = quiet_options(1);
	const struct mmc_event datagram = {
		.bytes = (const uint8_t *)"payload",
		.nbytes = 8,
	};
	uint8_t to[8] = "";
	struct mmc_sim_endpoint *endpoint;
	struct mmc_network network;

	CHECK_EQ(mmc_network_init(&network, &options), 0);
	endpoint = open_endpoint(&network, 0, 500);
	endpoint->base.driver->place(&endpoint->base, to, &datagram, 1, 0, 1);
	mmc_sim_endpoint_die(endpoint);
	settle(&network, endpoint);
	CHECK_EQ(to[0], 0);
	CHECK(!mmc_sim_endpoint_pending(endpoint));
	endpoint->base.driver->close(&endpoint->base);
	mmc_network_free(&network);
}

CHECK_MAIN(CHECK_TEST(heap_is_ordered_and_fair),
	   CHECK_TEST(unicast_takes_two_links),
	   CHECK_TEST(multicast_reaches_all_but_the_sender),
	   CHECK_TEST(unicast_crosses_the_spine),
	   CHECK_TEST(full_queue_drops_the_tail),
	   CHECK_TEST(loss_and_copies_are_counted),
	   CHECK_TEST(sender_waits_for_its_link),
	   CHECK_TEST(scale_counts_payload_but_not_control),
	   CHECK_TEST(timers_come_in_order),
	   CHECK_TEST(impossible_networks_are_refused),
	   CHECK_TEST(endpoint_bounds_data_but_keeps_control),
	   CHECK_TEST(placements_complete_later),
	   CHECK_TEST(dead_hosts_place_nothing))
