#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# registers.sh SOURCE BYTES: change the kernel's source in the folder SOURCE so that a
# user-mode kernel has room for BYTES of a processor's registers, for each process.
#
# Linux 6.12 has room for 2,696 bytes, too few for a processor with AMX, and asks the host
# to set that many (PTRACE_SETREGSET with NT_X86_XSTATE). The host refuses to set any
# number but that of all registers, and the kernel panics.

set -euo pipefail

source=$1
bytes=$2

# change FILE FUNCTION OLD NEW: in the body of FUNCTION, replace what matches OLD, a basic
# regular expression. Exactly one line must match.
change() {
	local file=$source/$1 body="/^[a-z].*\<$2(.*)\$/,/^}/" count
	count=$(sed --quiet "${body}p" "$file" | grep --count -e "$3") || true
	if test "$count" != 1; then
		echo "registers.sh has to be adapted to this kernel: in $1, $count lines of" \
			"$2() have \"$3\", where one should"
		exit 1
	fi
	sed --in-place "${body}s/$3/$4/" "$file"
}

change arch/x86/um/user-offsets.c foo \
	'DEFINE_LONGS(HOST_FP_SIZE, 2696)' "DEFINE_LONGS(HOST_FP_SIZE, $bytes)"

# At its start the kernel gets all registers, and so learns how many bytes they have. It
# keeps that number instead of a mere "yes", and later sets as many.
registers=arch/x86/um/os-Linux/registers.c
change "$registers" arch_init_registers \
	'have_xstate_support = 1;' 'have_xstate_support = iov.iov_len;'
change "$registers" restore_fp_registers \
	'iov_len = FP_SIZE \* sizeof(unsigned long);' 'iov_len = have_xstate_support;'
