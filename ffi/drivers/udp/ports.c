/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "support/error.h"

static int bind_to(int fd, const struct sockaddr_in *address, uint32_t port)
{
	struct sockaddr_in full = *address;

	full.sin_port = htons((uint16_t)port);
	return bind(fd, (const struct sockaddr *)&full, sizeof(full));
}

/* Sets the error's text from errno. Returns -MMC_EIO. */
static int explain(const struct sockaddr_in *address,
		   const struct mmc_ports *ports)
{
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
	if (ports->count > 0 && errno == EADDRINUSE)
		mmc_error_set("no port from %u to %u is free on %s: widen "
			      "PORTS; a rank takes two UDP ports and one TCP "
			      "port for each set of processes",
			      ports->first, ports->first + ports->count - 1,
			      text);
	else
		mmc_error_set("cannot bind a socket to %s: %s", text,
			      strerror(errno));
	return -MMC_EIO;
}

int mmc_udp_bind_within(int fd, const struct sockaddr_in *address,
			const struct mmc_ports *ports)
{
	uint32_t start = 0;

	if (ports->count == 0)
		return bind_to(fd, address, 0) == 0 ? 0
						    : explain(address, ports);
	/* Without a random number every search begins at the first port. */
	if (getrandom(&start, sizeof(start), GRND_NONBLOCK) < 0)
		start = 0;
	start %= ports->count;
	for (uint32_t i = 0; i < ports->count; i++) {
		uint32_t port = ports->first + (start + i) % ports->count;

		if (bind_to(fd, address, port) == 0)
			return 0;
		if (errno != EADDRINUSE)
			break;
	}
	return explain(address, ports);
}
