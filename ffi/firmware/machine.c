/* SPDX-License-Identifier: BSD-3-Clause */
#include "firmware/machine.h"

#include <stdio.h>

/* Registers of the machine, from QEMU's documentation of `virt`. */
#define UART ((volatile uint8_t *)0x10000000)
#define FINISHER ((volatile uint32_t *)0x100000)
#define TIMER ((const volatile uint64_t *)0x200bff8)

/* What the finisher takes. */
#define FINISH_PASS 0x5555
#define FINISH_FAIL 0x3333

#define TICK_NS 100 /* the timer runs at 10 MHz */

void mmc_machine_print(const char *text)
{
	while (*text != 0)
		*UART = (uint8_t)*text++;
}

uint64_t mmc_machine_now_ns(void)
{
	return *TIMER * TICK_NS;
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
