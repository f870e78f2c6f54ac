/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine that the firmware runs on: `virt` of QEMU, without an operating system. */
#ifndef MMC_FIRMWARE_MACHINE_H
#define MMC_FIRMWARE_MACHINE_H

#include <stdint.h>
#include <stdnoreturn.h>

/* Prints on the serial line. */
void mmc_machine_print(const char *text);

/* Switches the machine off; QEMU exits with `status`. */
noreturn void mmc_machine_exit(unsigned status);

/* Prints the cause and the place of a trap, and switches the machine off. */
noreturn void mmc_machine_trapped(uint64_t cause, uint64_t at,
				  uint64_t address);

#endif
