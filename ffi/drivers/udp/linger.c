/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/linger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/bits.h"

struct lingering {
	uint32_t address; /* of the interface */
	uint32_t group;	  /* 0 if the place is free */
	uint64_t until_ns;
	int fd; /* a socket that is a member of the group */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lingering places[MMC_UDP_LINGERING_MAX];

/*
 * Returns a socket that is a member of the group, or -1. It is not bound to a port, so
 * it receives nothing.
 */
static int join(uint32_t address, uint32_t group)
{
	struct ip_mreqn request = {
		.imr_multiaddr.s_addr = htonl(group),
		.imr_address.s_addr = htonl(address),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request,
				  sizeof(request)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void leave(struct lingering *place)
{
	if (place->group != 0)
		close(place->fd);
	place->group = 0;
	place->until_ns = 0;
}

/*
 * Returns the place of the group if it lingers already, else a free place, else that of
 * the group that would be left next.
 */
static struct lingering *place_of(uint32_t address, uint32_t group)
{
	struct lingering *oldest = &places[0];

	for (unsigned i = 0; i < MMC_UDP_LINGERING_MAX; i++) {
		struct lingering *place = &places[i];

		if (place->group == group && place->address == address)
			return place;
		if (place->until_ns < oldest->until_ns)
			oldest = place;
	}
	return oldest;
}

void mmc_udp_linger(uint32_t address, uint32_t group, uint64_t now_ns)
{
	struct lingering *place;

	pthread_mutex_lock(&lock);
	place = place_of(address, group);
	if (place->group != group || place->address != address) {
		int fd = join(address, group);

		leave(place);
		if (fd >= 0)
			*place = (struct lingering){
				.address = address,
				.group = group,
				.fd = fd,
			};
	}
	if (place->group != 0)
		place->until_ns = now_ns + MMC_UDP_LINGER_NS;
	pthread_mutex_unlock(&lock);
}

uint64_t mmc_udp_linger_sweep(uint64_t now_ns)
{
	uint64_t next_ns = MMC_NEVER_NS;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < MMC_UDP_LINGERING_MAX; i++) {
		if (places[i].until_ns <= now_ns)
			leave(&places[i]);
		else
			next_ns = mmc_min_u64(next_ns, places[i].until_ns);
	}
	pthread_mutex_unlock(&lock);
	return next_ns;
}
