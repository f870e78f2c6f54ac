#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# unpack.sh PACKAGE.deb INITRD.c: make ./linux from a Debian package of a kernel. It is a
# folder from which an emulated machine boots, and holds
#
#   vmlinuz       the kernel as it is in the package
#   initrd        the kernel's first files: the program INITRD.c, and the modules that
#                 this program loads
#   lib/modules   the modules that init.sh loads later (modprobe --dirname)
#
# The script works in the current folder, which it fills with some 500 MB.

set -euo pipefail
shopt -s nullglob

package=$1
program=$2

PATH=$PATH:/usr/sbin:/sbin

dpkg-deb --extract "$package" files
mkdir -p linux/lib/modules first/modules
mv files/boot/vmlinuz-* linux/vmlinuz
mv files/{,usr/}lib/modules/* linux/lib/modules/
release=$(ls linux/lib/modules)

# Most modules drive devices that the emulated machine does not have.
drivers=linux/lib/modules/$release/kernel/drivers
find "$drivers" -mindepth 1 -maxdepth 1 \
	! -name char ! -name infiniband ! -name net ! -name virtio -exec rm -r {} +
rm -r "$drivers"/net/{ethernet,wireless}
depmod --basedir="$PWD/linux" "$release"

gcc -std=c11 -Wall -Wextra -O2 -static -o first/init "$program"
number=0
for module in virtio_pci virtio_console 9pnet_virtio 9p; do
	modprobe --dirname="$PWD/linux" --set-version="$release" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
	copy=first/modules/$(printf %02d "$number")
	number=$((number + 1))
	case $file in
	*.xz) xz --decompress --stdout "$file" >"$copy" ;;
	*) cp "$file" "$copy" ;;
	esac
done
(cd first && find . | cpio --quiet --create --format=newc) >linux/initrd
