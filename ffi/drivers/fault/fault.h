/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Injects faults into the traffic of any driver: loss, duplication, reordering, delay,
 * corruption and stalls, as a FAULT setting says (see setting.h).
 *
 * A datagram goes through the clauses in their order. Each clause whose `kind`, `dir`
 * and `rank` match the datagram does this to it:
 *
 *     1. With probability `loss` it drops the datagram, and no later clause sees it. With
 *        a `loss_period` of N the datagrams that it drops are consecutive ones of those
 *        that match, N on average.
 *     2. With probability `corrupt` it flips one bit where the receiver notices: in the
 *        header under CHECKSUM=header, anywhere under CHECKSUM=full and in datagrams
 *        that are sealed (drivers/protect/protect.h). If several clauses
 *        corrupt a datagram, only the bit that the last one chose is flipped.
 *     3. With probability `dup` it adds a copy, which follows soon after. If the
 *        datagram is corrupted, so is the copy, in the same bit.
 *     4. With probability `reorder` it holds the datagram back until 1 to 4 later ones
 *        have passed, but for 1 ms at most. More than 4 may pass, since all datagrams
 *        of one call of poll() or send() pass before any that is held back.
 *     5. It delays the datagram by `delay_us`; the delays of several clauses add up.
 *
 * `stall_ms` affects the whole endpoint, whatever `kind` says. In every period of five
 * times `stall_ms`, the endpoint delivers no datagram for `stall_ms`, and afterwards
 * all that arrived meanwhile. The seed decides where in the period the stall lies. A
 * stalled endpoint goes on sending.
 *
 * At most MMC_FAULT_HELD_MAX datagrams are held back at a time; any more are lost. The
 * answer to an inquiry is lost with the probability of a received control message. All
 * other events, such as the ends of reads, pass untouched.
 *
 * The kind of a datagram is that of its header, so a chunk that is multicast again is a
 * `repair`. Each clause has a random generator of its own, which begins with (seed,
 * rank, index of the clause) and moves on with each datagram that the clause matches.
 * So over a deterministic driver the same setting has the same effects in every run.
 */
#ifndef MMC_DRIVERS_FAULT_FAULT_H
#define MMC_DRIVERS_FAULT_FAULT_H

#include "drivers/driver.h"

/*
 * Writes to `endpoint` a wrapper of `inner`, the endpoint of `rank`, which injects the
 * faults; with an empty setting it writes `inner` itself. From now on `inner` belongs
 * to the wrapper; after a failure it is closed. `sealed` says whether the datagrams that
 * pass are sealed. Returns 0, -MMC_ENOMEM, or -MMC_EINVAL
 * if the setting is malformed, or corrupts datagrams in a way that might go unnoticed:
 *
 *     - under CHECKSUM=off in any way;
 *     - under CHECKSUM=header in both directions: a datagram may be corrupted twice,
 *       and two flipped bits can cancel each other.
 */
int mmc_fault_wrap(const char *setting, uint32_t rank,
		   struct mmc_endpoint *inner, enum mmc_checksum checksum,
		   bool sealed, struct mmc_endpoint **endpoint);

#endif
