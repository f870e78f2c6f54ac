/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first hart sets up its stack, clears the variables and calls main(). Each other one
 * sleeps until it is interrupted, and then calls mmc_hart_main() on a stack of its own; it
 * has no thread-local variables. Interrupts stay off, so every trap is a bug, and ends the
 * program.
 */
	.section .start, "ax"
	.globl	_start
_start:
	la	t0, trapped
	csrw	mtvec, t0
	csrr	a0, mhartid
	bnez	a0, 3f
	la	sp, mmc_stack_end
	la	tp, mmc_thread
	la	t0, mmc_bss_begin
	la	t1, mmc_bss_end
1:	bgeu	t0, t1, 2f
	sd	zero, 0(t0)
	addi	t0, t0, 8
	j	1b
2:	call	main
	call	mmc_machine_exit

3:	li	t0, 8		/* interrupts of harts end its sleep */
	csrw	mie, t0
4:	wfi
	csrr	t1, mip
	and	t1, t1, t0
	beqz	t1, 4b
	la	sp, mmc_stacks_end
	addi	t1, a0, -1
	slli	t1, t1, 14	/* each has 16 KiB */
	sub	sp, sp, t1
	call	mmc_hart_main
5:	wfi
	j	5b

	.weak	mmc_hart_main
	.balign	4
trapped:
	csrr	a0, mcause
	csrr	a1, mepc
	csrr	a2, mtval
	la	sp, mmc_stack_end
	la	tp, mmc_thread
	j	mmc_machine_trapped
