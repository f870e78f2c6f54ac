/* SPDX-License-Identifier: BSD-3-Clause */
#include "firmware/machine.h"

#include <stdio.h>

/* Registers of the machine, from QEMU's documentation of `virt`. */
#define UART ((volatile uint8_t *)0x10000000)
#define FINISHER ((volatile uint32_t *)0x100000)

/* A write of one of these values ends the emulation, with success or with a status. */
#define FINISH_PASS 0x5555
#define FINISH_FAIL 0x3333

void mmc_machine_print(const char *text)
{
	while (*text != 0)
		*UART = (uint8_t)*text++;
}

noreturn void mmc_machine_exit(unsigned status)
{
	*FINISHER = status == 0 ? FINISH_PASS : status << 16 | FINISH_FAIL;
	for (;;)
		__asm__ volatile("wfi");
}

noreturn void mmc_machine_trapped(uint64_t cause, uint64_t at, uint64_t address)
{
	char text[128];

	snprintf(text, sizeof(text), "trap %lu at %lu, address %lu\n", cause,
		 at, address);
	mmc_machine_print(text);
	mmc_machine_exit(2);
}
