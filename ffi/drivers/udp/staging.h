/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory in which received datagrams stay until the engine has handled them. The
 * kernel may hand over several datagrams as one message (generic receive offload, GRO):
 * a *train* of datagrams from one source which are equally long, except that the last
 * may be shorter. They are taken from the message without being copied.
 */
#ifndef MMC_DRIVERS_UDP_STAGING_H
#define MMC_DRIVERS_UDP_STAGING_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/types.h"
#include "drivers/udp/udp.h"

/* Room for the longest train that the kernel hands over, in bytes. */
#define MMC_UDP_TRAIN_BYTES 65536

/* Room for the control data by which the kernel reports the length of datagrams. */
union mmc_udp_train_length {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

struct mmc_udp_staging {
	uint8_t *memory; /* MMC_UDP_BATCH slots, one for each message */
	uint32_t slot_bytes;
	unsigned nreceived;   /* messages that have been received */
	unsigned ntaken;      /* messages that were taken to their end */
	uint32_t taken_bytes; /* bytes that were taken of the next message */
	uint32_t ndatagrams; /* in the last message that was taken to its end */
	uint64_t ncalls;     /* system calls that received, or found nothing */
	struct mmsghdr messages[MMC_UDP_BATCH];
	/* The slot of each message, and the one that each later message will have. */
	uint8_t slots[MMC_UDP_BATCH];
	/* By slot. */
	struct iovec iovecs[MMC_UDP_BATCH];
	struct sockaddr_in from[MMC_UDP_BATCH];
	union mmc_udp_train_length lengths[MMC_UDP_BATCH];
};

/* The part of a message that is not taken yet: a train, or a single datagram. */
struct mmc_udp_train {
	const uint8_t *bytes;
	uint32_t nbytes;       /* of all its datagrams together */
	uint32_t length_bytes; /* of each datagram; the last may be shorter */
	bool cut; /* it was longer than the slot, and its end is missing */
	const struct sockaddr_in *from;
};

/*
 * Makes the slots, of `slot_bytes` each; the structure is all zeros before. Returns 0
 * or -MMC_ENOMEM.
 */
int mmc_udp_staging_init(struct mmc_udp_staging *staging, uint32_t slot_bytes);

void mmc_udp_staging_destroy(struct mmc_udp_staging *staging);

/* Returns whether there are datagrams to take. */
static inline bool mmc_udp_staging_holds(const struct mmc_udp_staging *staging)
{
	return staging->ntaken < staging->nreceived;
}

/*
 * Frees the slots of messages that were taken to their end, whose datagrams must not be
 * used any more. They are the next to be filled, since they are in the caches.
 */
void mmc_udp_staging_reuse(struct mmc_udp_staging *staging);

/*
 * Receives messages from a socket, without waiting: one more than are likely to have
 * `nwanted` datagrams, going by the length of the last train. So it is mostly this call
 * that finds the socket empty, and not another. Writes to `more` whether the socket may
 * have more messages. Returns the number of messages, or -1 with errno set if the socket
 * has failed for good.
 */
int mmc_udp_staging_receive(struct mmc_udp_staging *staging, int fd,
			    unsigned nwanted, bool *more);

/* Looks at what is left of the next message. Returns false if there is none. */
bool mmc_udp_staging_look(struct mmc_udp_staging *staging,
			  struct mmc_udp_train *train);

/* Takes the first `nbytes` of what mmc_udp_staging_look() has shown. */
void mmc_udp_staging_take(struct mmc_udp_staging *staging,
			  const struct mmc_udp_train *train, uint32_t nbytes);

/*
 * Returns the length of each datagram in a message of `nbytes`. It is what the kernel
 * reports, or `nbytes` if the kernel reports nothing or a length that is not below
 * `nbytes`: the message is then a single datagram.
 */
uint32_t mmc_udp_train_length(struct msghdr *message, uint32_t nbytes);

#endif
