#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The guest's first process. It sets up the devices, and then runs the commands that
# guest.py requests over a line, one after the other. The kernel's command line sets
#   guest_devices  the number of RDMA devices
#   guest_line     the terminal or port that is this end of the line
#   guest_modules  the folder of the kernel's modules, if it has any
#   guest_work     the one folder of the host that the guest can write to
# /dev/shm and /run are the guest's own. All other files are the host's, read-only.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/dev/shm TMPDIR=/dev/shm LANG=C.UTF-8 TERM=dumb

# Open MPI would try to use the RDMA devices itself, which takes many seconds.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,sm
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec </dev/null >/dev/console 2>&1
mkdir /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs tmpfs /run
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mountpoint --quiet "$guest_work" ||
	mount -t hostfs -o "$guest_work" none "$guest_work"
echo guest >/proc/sys/kernel/hostname

# The kernel loads most modules when they are needed, with a program that learns here
# where they are. The kernel does not notice that the connection manager (rdma_ucm) is
# needed.
if test -n "$guest_modules"; then
	echo "#!/bin/sh
	exec modprobe --dirname=$guest_modules \"\$@\"" >/run/modprobe
	chmod +x /run/modprobe
	echo /run/modprobe >/proc/sys/kernel/modprobe
	modprobe --dirname="$guest_modules" rdma_ucm
fi

until test -c "$guest_line"; do sleep 0.1; done
exec 3<>"$guest_line"
test ! -t 3 || stty raw -echo <&3

# If guest.py has ended, writing to the line may block for ever.
answer() { timeout 10 echo "$1" >&3; }

bash "${0%/*}/fabric.sh" "$guest_devices"
answer $?

# A request is the path of a script and its limit in seconds, and the answer is the
# script's exit status. Before the answer, processes and files in /dev/shm that the
# script has left behind are removed.
while read -r script limit_s <&3; do
	timeout --kill-after=5 "$limit_s" bash "$script" >"$script.out" 2>&1 3>&-
	status=$?
	kill -KILL -1
	find /dev/shm -mindepth 1 -delete
	sync
	answer "$status"
done

# Here the line has ended: guest.py has closed it, or died. The kernel ends with its
# first process, which is this one.
