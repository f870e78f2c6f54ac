/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a host and a runner on Linux meet: by a socket of type SOCK_SEQPACKET whose name is
 * in Linux's abstract namespace. Both send a greeting. Unless it only asked who is there,
 * the host then attaches, with the descriptor of its bridge, and the runner answers with
 * two eventfds: its own bell, and the host's. Later the host passes regions by their
 * descriptors, each with its number.
 *
 * An adapter sees only its own memory. In its stead a process attaches hosts, which passes
 * a third descriptor: a file that is that memory. The bridge lies in it, and so do all
 * results, which are region 0.
 */
#ifndef MMC_OFFLOAD_MEETING_H
#define MMC_OFFLOAD_MEETING_H

#include <mpimcast/abi/offload.h>
#include <stdbool.h>
#include <stddef.h>

struct sockaddr_un;

#define MMC_MEETING_FDS_MAX 3

/* The first message in each direction. */
struct mmc_greeting {
	uint32_t magic;	  /* MMC_OFFLOAD_MAGIC */
	uint32_t version; /* MMC_OFFLOAD_VERSION */
	uint32_t kind;	  /* of the runner: enum mmc_runner_kind */
	uint32_t pid;	  /* of the sender */
};

/* The second message of the host, with its bridge unless the runner has memory for it. */
struct mmc_attach {
	uint64_t bridge_bytes;
};

/* The answer, with the bells and, if `memory_bytes` is not 0, an adapter's memory. */
struct mmc_attached {
	uint64_t memory_bytes;
	uint64_t bridge_offset; /* in that memory */
	uint64_t region_offset; /* likewise: region 0 */
	uint64_t region_bytes;
};

/*
 * Writes the address of the runner `name` to `address`. Returns its length, or 0 if the
 * name is empty or too long.
 */
uint32_t mmc_meeting_address(const char *name, struct sockaddr_un *address);

/*
 * Sends `nbytes` and up to MMC_MEETING_FDS_MAX descriptors as one message. Returns whether
 * that worked.
 */
bool mmc_meeting_send(int socket, const void *bytes, size_t nbytes,
		      const int *fds, unsigned nfds);

/*
 * Receives a message of exactly `nbytes`, and writes the descriptors that come with it to
 * `fds`, room for MMC_MEETING_FDS_MAX; they are the caller's. Waits for at most as long as the socket's
 * SO_RCVTIMEO says. Returns how many descriptors have come, or -1 if no such message has.
 */
int mmc_meeting_receive(int socket, void *bytes, size_t nbytes, int *fds);

/* Returns whether the process at the other end has the same user as this one. */
bool mmc_meeting_is_own(int socket);

/*
 * Returns whether a file that another process has passed has the pages of `nbytes`, and
 * is sealed against being cut: whoever reads what was cut off dies of SIGBUS. If it is
 * not, mmc_last_error() says so.
 */
bool mmc_meeting_is_sealed(int fd, uint64_t nbytes);

/*
 * Maps `nbytes` of a file for which mmc_meeting_is_sealed() is true. Returns NULL, with
 * the reason in mmc_last_error(), if it is not, or cannot be mapped.
 */
void *mmc_meeting_map(int fd, uint64_t nbytes);

/*
 * Creates a file of zeros in memory, sealed against being cut, and writes the address
 * where it is mapped to `*bytes`. Returns its descriptor, or -1 with errno set.
 */
int mmc_meeting_create(uint64_t nbytes, void **bytes);

#endif
