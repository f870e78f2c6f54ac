/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protects the datagrams of any driver: send() seals them, poll() opens them, and
 * refuses those that are not genuine before anybody has looked into them. The engine above and
 * the driver below know nothing of it.
 *
 * Behind its header, a sealed datagram has its number u64, the tag, and then what has been
 * behind the header, encrypted or as it was:
 *
 *      0          16          24         40
 *     | header   | number    | tag      | body ...
 *
 * The tag covers the header and the body with a nonce that holds the sender's rank and the
 * number (nonce.h), by the sender's own key (keys.h). The header stays readable. Its
 * checksum counts the datagram's length without what is added here.
 *
 * A datagram is *forged* if it is too short or too long, or if its tag is not that of the
 * rank from whose address it comes; it is *replayed* if it is genuine, but its number has
 * come before or is too old to tell. Both are refused (MMC_EVENT_REFUSED). What comes from an
 * unknown address passes untouched: it can be no rank's, and the engine counts it.
 *
 * Nothing may reach memory before it is checked: direct placement and reads of other
 * ranks' memory are switched off.
 */
#ifndef MMC_DRIVERS_PROTECT_PROTECT_H
#define MMC_DRIVERS_PROTECT_PROTECT_H

#include "drivers/driver.h"
#include "drivers/protect/primitive.h"

/*
 * The words of 64 numbers each that the window of each class has. Chunks of one sender wait
 * in several sockets or queues, of some thousand datagrams each, and may be taken from
 * them in another order; of control messages there are never as many under way.
 */
#define MMC_PROTECT_CHUNK_WORDS 128
#define MMC_PROTECT_CONTROL_WORDS 32

struct mmc_protect_options {
	const struct mmc_primitive *primitive;
	enum mmc_protect mode; /* not MMC_PROTECT_OFF */
	uint64_t team;	       /* the team's channel */
	uint32_t rank;
	uint32_t nranks;
	/* Of a chunk or a control message behind its header, at most. */
	uint32_t body_bytes;
};

/*
 * Writes to `endpoint` a wrapper of `inner`, which from now on belongs to the wrapper;
 * after a failure it is closed. The driver of `inner` must carry datagrams that are longer
 * by MMC_SEAL_BYTES. Returns 0 or -MMC_ENOMEM.
 *
 * connect() returns -MMC_EINVAL before mmc_protect_start(). send() returns -MMC_EIO once
 * the key has ended (MMC_NONCE_NUMBER_MAX).
 */
int mmc_protect_wrap(const struct mmc_protect_options *options,
		     struct mmc_endpoint *inner,
		     struct mmc_endpoint **endpoint);

/* Keys a wrapper that mmc_protect_wrap() has made, as mmc_keys_start() does. */
int mmc_protect_start(struct mmc_endpoint *endpoint, struct mmc_secret *secret);

#endif
