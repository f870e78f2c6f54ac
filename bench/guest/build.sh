#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# build.sh PACKAGE.deb CONFIG REGISTERS BYTES: make ./linux, a kernel that is a program,
# from a Debian package of the kernel's source. REGISTERS (registers.sh) lets it keep up
# to BYTES of a processor's registers. The current folder is for it alone and takes some
# 2 GB; no blanks in its path, the kernel's makefiles have none.

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
	echo "options that this kernel does not take: $lost"
	exit 1
}

"${kernel_make[@]}" --jobs="$(nproc)" linux
strip -o linux object/linux
