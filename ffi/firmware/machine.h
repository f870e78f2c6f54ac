/* SPDX-License-Identifier: BSD-3-Clause */
/* The processor that the firmware runs on: QEMU's machine `virt`, without an OS. */
#ifndef MMC_FIRMWARE_MACHINE_H
#define MMC_FIRMWARE_MACHINE_H

#include <stdint.h>
#include <stdnoreturn.h>

/* Prints on the serial line. */
void mmc_machine_print(const char *text);

/* Returns the time since the machine was switched on. */
uint64_t mmc_machine_now_ns(void);

/* Switches the machine off; QEMU exits with `status`. */
noreturn void mmc_machine_exit(unsigned status);

/* Says where and why the processor has trapped, and switches the machine off. */
noreturn void mmc_machine_trapped(uint64_t cause, uint64_t at,
				  uint64_t address);

#endif
