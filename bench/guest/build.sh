#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# build.sh PACKAGE.deb CONFIG REGISTERS BYTES: make ./linux, a kernel that is a program,
# from a Debian package of the kernel's source. CONFIG lists the options. REGISTERS is
# registers.sh, which gives it room for BYTES of a processor's registers. It works in the
# current folder, which it fills with some 2 GB. That folder's path must have no blanks,
# since the kernel's makefiles do not quote it.

set -euo pipefail

package=$1
config=$2
registers=$3
register_bytes=$4

mkdir source object
dpkg-deb --fsys-tarfile "$package" |
	tar --extract --to-stdout --wildcards './usr/src/linux-source-*.tar.xz' |
	tar --extract --xz --strip-components=1 --directory=source

bash "$registers" source "$register_bytes"

kernel_make=(make --directory=source ARCH=um "O=$PWD/object")

cp -- "$config" seed
"${kernel_make[@]}" KCONFIG_ALLCONFIG="$PWD/seed" allnoconfig
lost=$(grep ^CONFIG_ seed | grep --invert-match --line-regexp --fixed-strings \
	--file=object/.config) && {
	echo "the kernel's configuration has dropped these options of $config: $lost"
	exit 1
}

"${kernel_make[@]}" --jobs="$(nproc)" linux
strip -o linux object/linux
