/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Emulated network adapters: `adapter NAME IMAGE MODE [HARTS [STOP]]` attaches ranks as the
 * proxy NAME would, and gives each team an adapter of its own, whose processor runs the
 * firmware IMAGE on so many harts. MODE says how payloads get to the host's memory, see enum
 * mmc_nic_mode. With STOP all harts but the first stop for good once so many datagrams have
 * come for them. SIGTERM ends the program once all ranks have detached; then it says how
 * many payloads went which way, and how many datagrams came for each hart.
 */
#include <errno.h>
#include <mpimcast/mmc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "machine.h"
#include "offload/meeting.h"
#include "offload/ring.h"
#include "proxy/service.h"
#include "support/clock.h"
#include "support/descriptor.h"
#include "support/error.h"

#define PAGE_BYTES UINT64_C(4096)

struct adapter {
	struct mmc_attachment attachment; /* `wake_fd` is the host's doorbell */
	struct machine machine;
	struct device device;
	int bell_fd; /* the host's */
	pthread_t thread;
	bool runs;
	bool stopping; /* read by the thread: use atomics */
};

static const char *image;
static enum mmc_nic_mode mode;
static uint32_t nharts = 1;
static uint64_t stop_at = UINT64_MAX; /* datagrams */
/* Of all devices; use atomics. */
static uint64_t nplaced, nwritten, nreceived[MMC_NIC_HARTS_MAX];

/* ---- the thread ---------------------------------------------------------- */

/* Sleeps until the host, the firmware or the network has something to do. */
static void doze(struct adapter *adapter)
{
	struct mmc_endpoint *endpoint = adapter->device.endpoint;
	struct pollfd polled[2 + MMC_ENDPOINT_FDS_MAX] = {
		{ .fd = adapter->attachment.wake_fd, .events = POLLIN },
		{ .fd = adapter->machine.words_fd, .events = POLLIN },
	};
	unsigned npolled = 2;
	uint64_t limit_ns = MMC_NEVER_NS;
	struct timespec timeout;

	if (endpoint != NULL) {
		const struct mmc_driver *driver = endpoint->driver;
		int fds[MMC_ENDPOINT_FDS_MAX];
		unsigned ncontrol;
		unsigned nfds = driver->fds(endpoint, fds, &ncontrol);

		if (driver->arm != NULL && driver->arm(endpoint))
			return;
		/* Without a slot to receive in, arrivals must wait. */
		if (mmc_ring_count(&adapter->machine.nic->queue[0].slots) == 0)
			nfds = 0;
		for (unsigned i = 0; i < nfds; i++)
			polled[npolled++] = (struct pollfd){
				.fd = fds[i],
				.events = POLLIN,
			};
		if (driver->deadline_ns != NULL) {
			uint64_t at_ns = driver->deadline_ns(endpoint);
			uint64_t now_ns = driver->now_ns(endpoint);

			if (at_ns != MMC_NEVER_NS)
				limit_ns = at_ns > now_ns ? at_ns - now_ns : 0;
		}
	}
	timeout = mmc_clock_timespec(limit_ns);
	ppoll(polled, npolled, &timeout, NULL);
	if (polled[0].revents & POLLIN) {
		/* The host has put something in its bridge: the firmware looks there. */
		mmc_descriptor_drain(adapter->attachment.wake_fd);
		machine_ring(&adapter->machine);
	}
}

/* Has all harts but the first stop, if it is time. */
static void stop_harts(const struct adapter *adapter)
{
	const struct device *device = &adapter->device;

	for (uint32_t i = 1; i < MMC_NIC_HARTS_MAX; i++)
		if (device->nreceived[i] >= stop_at)
			mmc_ring_show(&device->nic->nharts, 1);
}

static void *run(void *argument)
{
	struct adapter *adapter = argument;
	struct mmc_nic *nic = adapter->machine.nic;

	while (!__atomic_load_n(&adapter->stopping, __ATOMIC_ACQUIRE)) {
		bool busy;

		if (!machine_listen(&adapter->machine))
			break;
		busy = device_progress(&adapter->device);
		stop_harts(adapter);
		if (__atomic_exchange_n(&nic->rings, 0, __ATOMIC_SEQ_CST) != 0)
			mmc_descriptor_wake(adapter->bell_fd);
		if (device_must_ring(&adapter->device))
			machine_ring(&adapter->machine);
		if (!busy && !device_arm(&adapter->device))
			doze(adapter);
	}
	device_close(&adapter->device);
	__atomic_fetch_add(&nplaced, adapter->device.nplaced, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nwritten, adapter->device.nwritten,
			   __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < MMC_NIC_HARTS_MAX; i++)
		__atomic_fetch_add(&nreceived[i], adapter->device.nreceived[i],
				   __ATOMIC_RELAXED);
	/* A host whose adapter has ended is detached. */
	shutdown(adapter->attachment.socket, SHUT_RDWR);
	return NULL;
}

/* ---- beginning and end --------------------------------------------------- */

/* Divides the memory behind the program's. Returns whether the bridge fits. */
static bool lay_out(struct adapter *adapter, uint64_t bridge_bytes)
{
	struct mmc_nic *nic = adapter->machine.nic;
	struct mmc_offload_bridge *bridge;
	uint64_t begin = MACHINE_PROGRAM_BYTES + sizeof(*nic);

	nic->bridge_offset = (begin + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	nic->bridge_bytes = bridge_bytes;
	if (bridge_bytes < sizeof(*bridge) || bridge_bytes > MACHINE_BYTES / 8)
		return false;
	nic->region_offset =
		nic->bridge_offset +
		(bridge_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	nic->region_bytes = MACHINE_BYTES - nic->region_offset;
	bridge = (void *)(adapter->machine.memory + nic->bridge_offset);
	bridge->magic = MMC_OFFLOAD_MAGIC;
	bridge->version = MMC_OFFLOAD_VERSION;
	nic->mode = mode;
	nic->nharts = nharts;
	nic->version = MMC_NIC_VERSION;
	nic->magic = MMC_NIC_MAGIC;
	adapter->device = (struct device){
		.nic = nic,
		.memory = adapter->machine.memory,
		.memory_bytes = MACHINE_BYTES,
	};
	return true;
}

static bool answer(const struct adapter *adapter, int socket)
{
	const struct mmc_nic *nic = adapter->machine.nic;
	const struct mmc_attached attached = {
		.memory_bytes = MACHINE_BYTES,
		.bridge_offset = nic->bridge_offset,
		.region_offset = nic->region_offset,
		.region_bytes = nic->region_bytes,
	};
	const int fds[] = { adapter->attachment.wake_fd, adapter->bell_fd,
			    adapter->machine.memory_fd };

	return mmc_meeting_send(socket, &attached, sizeof(attached), fds, 3);
}

static void close_adapter(struct mmc_attachment *attachment)
{
	struct adapter *adapter = (struct adapter *)attachment;

	if (adapter->runs) {
		__atomic_store_n(&adapter->stopping, true, __ATOMIC_RELEASE);
		mmc_descriptor_wake(attachment->wake_fd);
		pthread_join(adapter->thread, NULL);
	}
	machine_destroy(&adapter->machine);
	if (adapter->bell_fd >= 0)
		close(adapter->bell_fd);
	if (attachment->wake_fd >= 0)
		close(attachment->wake_fd);
	if (attachment->socket >= 0)
		close(attachment->socket);
	free(adapter);
}

static int begin(struct adapter *adapter, int socket, uint64_t bridge_bytes)
{
	int rv = machine_create(&adapter->machine);

	adapter->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	adapter->attachment.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rv == 0 && !lay_out(adapter, bridge_bytes))
		rv = -MMC_EINVAL;
	if (rv == 0)
		rv = machine_start(&adapter->machine, image, nharts);
	if (rv == 0 && !answer(adapter, socket))
		rv = -MMC_EIO;
	if (rv == 0 &&
	    pthread_create(&adapter->thread, NULL, run, adapter) != 0)
		rv = -MMC_EIO;
	adapter->runs = rv == 0;
	return rv;
}

static int open_adapter(int socket, struct mmc_attachment **attachment)
{
	struct adapter *adapter;
	struct mmc_attach attach;
	int fds[MMC_MEETING_FDS_MAX];
	int nfds = mmc_meeting_receive(socket, &attach, sizeof(attach), fds);
	int rv;

	while (nfds > 0)
		close(fds[--nfds]);
	if (nfds < 0)
		return -MMC_EINVAL;
	adapter = calloc(1, sizeof(*adapter));
	if (adapter == NULL)
		return -MMC_ENOMEM;
	adapter->attachment.socket = socket;
	rv = begin(adapter, socket, attach.bridge_bytes);
	if (rv == 0) {
		*attachment = &adapter->attachment;
		return 0;
	}
	fprintf(stderr, "adapter: %s\n", mmc_last_error());
	adapter->attachment.socket = -1;
	close_adapter(&adapter->attachment);
	return rv;
}

static struct mmc_proxy *service;

static void drain(int number)
{
	(void)number;
	mmc_proxy_drain(service);
}

/* Writes the mode of this name. Returns false if there is none. */
static bool parse_mode(const char *name)
{
	static const char *const names[] = {
		[MMC_NIC_COPY] = "copy",
		[MMC_NIC_DMA] = "dma",
		[MMC_NIC_UC] = "uc",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		mode = (enum mmc_nic_mode)i;
		return true;
	}
	return false;
}

/* Reads how many harts there are, and when they stop. Returns whether that can be. */
static bool parse_harts(int argc, char **argv)
{
	if (argc > 4)
		nharts = (uint32_t)strtoul(argv[4], NULL, 10);
	if (argc > 5)
		stop_at = strtoull(argv[5], NULL, 10);
	return nharts > 0 && nharts <= MMC_NIC_HARTS_MAX;
}

int main(int argc, char **argv)
{
	static const struct mmc_service adapters = {
		.kind = MMC_RUNNER_FIRMWARE,
		.open = open_adapter,
		.close = close_adapter,
	};
	int rv;

	if (argc < 4 || argc > 6 || !parse_mode(argv[3]) ||
	    !parse_harts(argc, argv)) {
		fprintf(stderr, "usage: adapter NAME IMAGE copy|dma|uc "
				"[HARTS [STOP]]\n");
		return 2;
	}
	image = argv[2];
	rv = mmc_service_open(argv[1], &adapters, &service);
	if (rv == 0) {
		signal(SIGTERM, drain);
		/* The processor of an adapter may end before its bell is rung. */
		signal(SIGPIPE, SIG_IGN);
		puts("listening");
		fflush(stdout);
		rv = mmc_proxy_run(service, 0);
	}
	if (rv != 0)
		fprintf(stderr, "adapter: %s\n", mmc_last_error());
	mmc_proxy_close(service);
	printf("placed %llu, written %llu, received",
	       (unsigned long long)nplaced, (unsigned long long)nwritten);
	for (uint32_t i = 0; i < nharts; i++)
		printf(" %llu", (unsigned long long)nreceived[i]);
	puts("");
	return rv == 0 ? 0 : 1;
}
