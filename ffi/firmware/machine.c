/* SPDX-License-Identifier: BSD-3-Clause */
#include "firmware/machine.h"

#include <stdio.h>

/* Registers of the machine, from QEMU's documentation of `virt`. */
#define UART ((volatile uint8_t *)0x10000000)
#define FINISHER ((volatile uint32_t *)0x100000)

#define UART_DATA UART[0]
#define UART_INTERRUPTS UART[1] /* which are enabled */
#define UART_STATUS UART[5]
#define UART_RECEIVED 0x01 /* of the interrupts, and of the status */

/* The interrupt controller: the serial line is source 10, the first hart context 0. */
#define PLIC_SOURCE 10
#define PLIC_PRIORITY ((volatile uint32_t *)0x0c000000 + PLIC_SOURCE)
#define PLIC_ENABLE ((volatile uint32_t *)0x0c002000)
#define PLIC_CLAIM ((volatile uint32_t *)0x0c200004)

/* The clock ticks each 100 ns, and interrupts the first hart at this time. */
#define TICK_NS 100
#define TIMER ((volatile uint64_t *)0x02004000)

/* A word for each hart, which is interrupted while it is 1. */
#define HARTS ((volatile uint32_t *)0x02000000)

/* Bits of the register `mie`: interrupts of harts, of the timer, and of devices. */
#define MIE_HARTS (1 << 3)
#define MIE_TIMER (1 << 7)
#define MIE_DEVICES (1 << 11)

/* What the device takes for a doorbell, and people for no letter. */
#define BELL 0x07

/* A write of one of these values ends the emulation, with success or with a status. */
#define FINISH_PASS 0x5555
#define FINISH_FAIL 0x3333

static uint64_t ticks(void)
{
	uint64_t now;

	__asm__ volatile("rdtime %0" : "=r"(now));
	return now;
}

uint64_t mmc_machine_now_ns(void)
{
	return ticks() * TICK_NS;
}

void mmc_machine_listen(void)
{
	*PLIC_PRIORITY = 1;
	*PLIC_ENABLE = 1 << PLIC_SOURCE;
	UART_INTERRUPTS = UART_RECEIVED;
	__asm__ volatile("csrw mie, %0"
			 :
			 : "r"(MIE_HARTS | MIE_TIMER | MIE_DEVICES));
}

void mmc_machine_interrupt(uint32_t hart)
{
	HARTS[hart] = 1;
}

/* The hart's register `mie` has been set when it began: see start.S. */
void mmc_machine_sleep(uint32_t hart)
{
	__asm__ volatile("wfi" : : : "memory");
	HARTS[hart] = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Interrupts are off, so a pending one ends the sleep without a trap, or lets it not
 * begin: a doorbell that was rung just before is not missed.
 */
void mmc_machine_doze(uint64_t limit_ns)
{
	uint64_t limit = limit_ns / TICK_NS;
	uint64_t now = ticks();
	uint32_t source;

	*TIMER = limit < UINT64_MAX - now ? now + limit : UINT64_MAX;
	mmc_machine_sleep(0);
	/*
	 * The interrupt is claimed before the bytes are read, so that a byte that arrives
	 * after the last read raises another interrupt. If it were claimed afterwards, the
	 * claim would also consume the interrupt of that byte. The byte would stay in the
	 * serial line, which holds only one, and no further bell could be rung.
	 */
	source = *PLIC_CLAIM;
	while (UART_STATUS & UART_RECEIVED)
		(void)UART_DATA;
	if (source != 0)
		*PLIC_CLAIM = source;
}

void mmc_machine_ring(void)
{
	UART_DATA = BELL;
}

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
