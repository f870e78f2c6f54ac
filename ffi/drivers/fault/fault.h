/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Injects faults over any driver: loss, duplication, reordering, delay, corruption and
 * stalls, as a FAULT setting says (see setting.h).
 *
 * A datagram goes through the clauses in their order. A clause whose `kind`, `dir` and
 * `rank` let it in does this to it:
 *
 *     1. With probability `loss` it drops the datagram, and no later clause sees it.
 *     2. With `corrupt` it flips one bit where the receiver notices: in the header
 *        under CHECKSUM=header, anywhere under CHECKSUM=full. If several clauses do so,
 *        only the last one's bit is flipped.
 *     3. With `dup` it adds a copy, which follows soon after, with the same bit
 *        flipped.
 *     4. With `reorder` it holds the datagram back until 1 to 4 later ones have passed,
 *        but for 1 ms at most. Datagrams of one call of poll() or send() pass together.
 *     5. It delays the datagram by `delay_us`; the delays of several clauses add up.
 *
 * `stall_ms` affects the endpoint, whatever `kind` says: for that long out of every
 * five times as long it delivers no datagram, and afterwards all that arrived. The
 * phase follows from the seed. A stalled endpoint goes on sending.
 *
 * Datagrams that are held back are in a pool of MMC_FAULT_HELD_MAX; what finds it full
 * is lost. An answer to an inquiry is lost as received control is. Other events, and
 * reads of memory, pass untouched.
 *
 * Only the header tells the kind: a chunk that is multicast again is `repair`. Each
 * clause draws its numbers from (seed, rank, place of the clause), for the datagrams
 * that it sees. So over a deterministic driver the same setting does the same again.
 */
#ifndef MMC_DRIVERS_FAULT_FAULT_H
#define MMC_DRIVERS_FAULT_FAULT_H

#include "drivers/driver.h"

/*
 * Wraps `inner`, the endpoint of `rank`, and takes it over, even on failure. An empty
 * setting returns `inner` itself. Returns 0, -MMC_ENOMEM, or -MMC_EINVAL if the setting
 * is malformed, or corrupts datagrams although
 *
 *     - CHECKSUM=off would let that through, or
 *     - CHECKSUM=header might: it corrupts in both directions, and two flipped bits can
 *       cancel each other.
 */
int mmc_fault_wrap(const char *setting, uint32_t rank,
		   struct mmc_endpoint *inner, enum mmc_checksum checksum,
		   struct mmc_endpoint **endpoint);

#endif
