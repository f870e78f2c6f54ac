/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library that is loaded before the C library into programs for aarch64, so that tests
 * by multicast on loopback run in an emulator. QEMU before version 8 does not know
 * IP_MULTICAST_IF and IP_MULTICAST_ALL, and misreads a struct ip_mreqn. A socket that is
 * bound to an address of loopback sends there without the first option; the second one
 * only keeps away what others on this machine send to the same port.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

typedef int function(int fd, int level, int name, const void *value,
		     socklen_t nbytes);

int setsockopt(int fd, int level, int name, const void *value, socklen_t nbytes)
{
	function *next = (function *)dlsym(RTLD_NEXT, "setsockopt");

	if (level == IPPROTO_IP &&
	    (name == IP_MULTICAST_IF || name == IP_MULTICAST_ALL))
		return 0;
	if (level == IPPROTO_IP && name == IP_ADD_MEMBERSHIP &&
	    nbytes == sizeof(struct ip_mreqn)) {
		const struct ip_mreqn *wanted = value;
		const struct ip_mreq request = {
			.imr_multiaddr = wanted->imr_multiaddr,
			.imr_interface.s_addr = htonl(INADDR_LOOPBACK),
		};

		return next(fd, level, name, &request, sizeof(request));
	}
	return next(fd, level, name, value, nbytes);
}
