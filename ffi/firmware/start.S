/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first hart sets up its stack, clears the variables and calls main(); other harts sleep.
 * Interrupts stay off, so every trap is a bug, and ends the program.
 */
	.section .start, "ax"
	.globl	_start
_start:
	csrr	t0, mhartid
	bnez	t0, 3f
	la	sp, mmc_stack_end
	la	tp, mmc_thread
	la	t0, trapped
	csrw	mtvec, t0
	la	t0, mmc_bss_begin
	la	t1, mmc_bss_end
1:	bgeu	t0, t1, 2f
	sd	zero, 0(t0)
	addi	t0, t0, 8
	j	1b
2:	call	main
	call	mmc_machine_exit
3:	wfi
	j	3b

	.balign	4
trapped:
	csrr	a0, mcause
	csrr	a1, mepc
	csrr	a2, mtval
	la	sp, mmc_stack_end
	j	mmc_machine_trapped
