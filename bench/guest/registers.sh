#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# registers.sh SOURCE BYTES: let a user-mode kernel, made from SOURCE, keep up to BYTES
# of a processor's registers. Linux 6.12 keeps 2,696 bytes of them, which is too little
# for AMX, and tells the host that this is their size. The host takes nothing but their
# whole size (PTRACE_SETREGSET with NT_X86_XSTATE), and the kernel panics.

set -euo pipefail

source=$1
bytes=$2

# change FILE FUNCTION OLD NEW: replace OLD, a basic regular expression, within one
# function. Exactly one of its lines must have it.
change() {
	local file=$source/$1 body="/^[a-z].*\<$2(.*)\$/,/^}/" count
	count=$(sed --quiet "${body}p" "$file" | grep --count -e "$3") || true
	if test "$count" != 1; then
		echo "$1 is not the one that registers.sh can change: $count lines of" \
			"$2() have \"$3\" instead of 1"
		exit 1
	fi
	sed --in-place "${body}s/$3/$4/" "$file"
}

change arch/x86/um/user-offsets.c foo \
	'DEFINE_LONGS(HOST_FP_SIZE, 2696)' "DEFINE_LONGS(HOST_FP_SIZE, $bytes)"

# The host tells the size when it is asked at the start, and gets the same back.
registers=arch/x86/um/os-Linux/registers.c
change "$registers" arch_init_registers \
	'have_xstate_support = 1;' 'have_xstate_support = iov.iov_len;'
change "$registers" restore_fp_registers \
	'iov_len = FP_SIZE \* sizeof(unsigned long);' 'iov_len = have_xstate_support;'
