/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on purpose, over any driver: loss, duplication, reordering, delay,
 * corruption and stalls, as a FAULT setting says (see setting.h).
 *
 * A datagram goes through the clauses in the order in which they stand. One
 * that its `kind`, `dir` and `rank` let in
 *
 *   1. with the probability `loss` is dropped, and no later clause sees it;
 *   2. with `corrupt` has one bit flipped, where the receiver can tell: in the
 *      header under CHECKSUM=header, anywhere under CHECKSUM=full; of several
 *      clauses the last one's;
 *   3. with `dup` comes once more, soon after, with the same flipped bit;
 *   4. with `reorder` is held back until 1 to 4 later ones have passed or 1 ms
 *      is over; those of one call of poll() or send() pass together;
 *   5. comes `delay_us` later; the delays of several clauses add up.
 *
 * `stall_ms` is about the endpoint, whatever `kind` says: for that long out of
 * every five times as long it delivers nothing, and afterwards all that came.
 * The phase follows from the seed. It goes on sending.
 *
 * What is held back lies in a pool of MMC_FAULT_HELD_MAX datagrams; what finds
 * it full is lost. Events of other kinds, and reads of memory, pass untouched.
 *
 * The kind is told by the header alone: a chunk that is multicast again is
 * `repair`. Each clause draws its numbers from (seed, rank, place of the
 * clause), for the datagrams that it sees, so the same setting over a
 * deterministic driver does the same again.
 */
#ifndef MMC_DRIVERS_FAULT_FAULT_H
#define MMC_DRIVERS_FAULT_FAULT_H

#include "drivers/driver.h"

/*
 * Wraps `inner`, the endpoint of `rank`, which it takes over also on failure.
 * An empty setting gives `inner` back. Returns 0, -MMC_ENOMEM, or -MMC_EINVAL
 * if the setting is malformed, or corrupts datagrams although
 *
 *   - CHECKSUM=off would let that through, or
 *   - CHECKSUM=header might: it corrupts in both directions, and two flipped
 *     bits can cancel each other.
 */
int mmc_fault_wrap(const char *setting, uint32_t rank,
		   struct mmc_endpoint *inner, enum mmc_checksum checksum,
		   struct mmc_endpoint **endpoint);

#endif
