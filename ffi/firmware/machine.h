/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine that the firmware runs on: `virt` of QEMU, without an operating system. */
#ifndef MMC_FIRMWARE_MACHINE_H
#define MMC_FIRMWARE_MACHINE_H

#include <stdint.h>
#include <stdnoreturn.h>

/* Where the memory begins. */
#define MMC_MACHINE_MEMORY UINT64_C(0x80000000)

/* Returns the time since the machine has started. */
uint64_t mmc_machine_now_ns(void);

/* Lets bytes that come on the serial line end a sleep: they are the device's doorbell. */
void mmc_machine_listen(void);

/*
 * Sleeps, as the first hart, until a byte comes on the serial line, or the hart is
 * interrupted, or for at most `limit_ns`.
 */
void mmc_machine_doze(uint64_t limit_ns);

/* Has a hart begin, or ends its sleep if it sleeps, now or later. */
void mmc_machine_interrupt(uint32_t hart);

/* Sleeps, as a hart with this number that is not the first, until it is interrupted. */
void mmc_machine_sleep(uint32_t hart);

/* Rings the device's bell, by a byte on the serial line. */
void mmc_machine_ring(void);

/* Prints on the serial line. */
void mmc_machine_print(const char *text);

/* Switches the machine off; QEMU exits with `status`. */
noreturn void mmc_machine_exit(unsigned status);

/* Prints the cause and the place of a trap, and switches the machine off. */
noreturn void mmc_machine_trapped(uint64_t cause, uint64_t at,
				  uint64_t address);

#endif
