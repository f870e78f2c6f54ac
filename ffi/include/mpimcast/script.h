/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A script: the messages of some algorithm, and which of them wait for which others. The
 * simulator sends them over a fabric, alone or beside operations of this library, so
 * that both compete for the same links.
 */
#ifndef MPIMCAST_SCRIPT_H
#define MPIMCAST_SCRIPT_H

#include <stdint.h>

/*
 * Messages travel as packets over lossless links: they wait in queues of any length. A
 * host sends its messages in the order in which they become ready, a convoy at a time: some
 * packets that stay together. A switch that sends (a reduction in the network) sends all
 * at once.
 */
struct mmc_script {
	uint32_t nmessages;
	/*
	 * How many of the messages, from the first, count for the times of the result.
	 * The others are background.
	 */
	uint32_t nmeasured;
	const uint32_t *senders;   /* [nmessages] nodes */
	const uint32_t *receivers; /* [nmessages] other nodes */
	const uint64_t *nbytes;	   /* [nmessages] of payload */
	/* [nmessages] the time before which a message does not start; NULL: 0. */
	const uint64_t *earliest_ns;
	/*
	 * The messages that wait until message i has been received are
	 * next[next_first[i] ... next_first[i + 1]]. A message waits for all that name it.
	 */
	const uint64_t *next_first; /* [nmessages + 1] */
	const uint32_t *next;
	/* The time from the receipt of a message until one that waited for it starts. */
	uint32_t overhead_ns;
	uint32_t packet_bytes; /* of payload in a packet, at least 1 */
	uint32_t header_bytes; /* of a packet beside its payload */
	uint32_t convoy_bytes; /* of payload in a convoy, at least 1 */
};

#endif
