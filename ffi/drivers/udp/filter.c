/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/filter.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include "drivers/udp/udp.h"
#include "support/assert.h"

/*
 * Where a filter finds the source of a datagram. Offsets count from the UDP header on,
 * or from the IPv4 header on if SKF_NET_OFF is added.
 */
#define SOURCE_PORT 0
#define SOURCE_IP ((uint32_t)SKF_NET_OFF + 12)

/* How many instructions the filter has for each source. */
#define STEPS_EACH 5

int mmc_udp_refuse(int fd, const struct sockaddr_in *sources, unsigned count)
{
	struct sock_filter steps[1 + MMC_UDP_RANKS_APART_MAX * STEPS_EACH + 1];
	struct sock_fprog program = { .filter = steps };

	MMC_ASSERT(count <= MMC_UDP_RANKS_APART_MAX);
	steps[program.len++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_H | BPF_ABS, SOURCE_PORT);
	for (unsigned i = 0; i < count; i++) {
		/*
		 * If the port that was loaded is the source's, load and compare the IP
		 * address. If both are equal, return 0 bytes: the datagram is dropped.
		 * Otherwise load the port for the next source.
		 */
		const struct sock_filter refuse_one[STEPS_EACH] = {
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
				 ntohs(sources[i].sin_port), 0, 4),
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SOURCE_IP),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
				 ntohl(sources[i].sin_addr.s_addr), 0, 1),
			BPF_STMT(BPF_RET | BPF_K, 0),
			BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SOURCE_PORT),
		};

		for (unsigned step = 0; step < STEPS_EACH; step++)
			steps[program.len++] = refuse_one[step];
	}
	steps[program.len++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program));
}
