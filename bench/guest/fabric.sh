#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# fabric.sh N: N RDMA devices in this one kernel, on one switch:
#
#   rxe0 on net0 === port0 \
#   rxe1 on net1 === port1 -- switch
#   ...                    /
#
# netI has the addresses 10.8.0.(I + 1) and 02:00:00:00:00:(I + 1). Packets between the
# devices go over the switch, although the kernel knows that all addresses are its own.
# All that portI sends goes to rxeI, so loss and delay on the way to one device are
# injected at its port (tc qdisc ... netem).

set -euo pipefail

ndevices=$1
mac=02:00:00:00:00:%02x
mtu=4200 # 4096 bytes of payload and room for the headers of RoCE v2

# Packets whose source is one of the kernel's own addresses are accepted, not dropped as
# forged (accept_local, rp_filter). Only the device that has an address answers for it
# (arp_ignore, arp_announce). All devices share one queue of arrived packets, which has to
# hold the bursts of all (netdev_max_backlog).
for scope in all default; do
	conf=/proc/sys/net/ipv4/conf/$scope
	echo 1 >"$conf/accept_local"
	echo 0 >"$conf/rp_filter"
	echo 1 >"$conf/arp_ignore"
	echo 2 >"$conf/arp_announce"
done
echo 20000 >/proc/sys/net/core/netdev_max_backlog
echo 1000 >/proc/sys/net/ipv4/igmp_max_memberships

# The kernel's first rule delivers packets to its own addresses through lo. Here that
# holds only for packets that a device has received. Packets that a program sends through
# a device, or from its address, are routed by that device's own table.
{
	echo "link set lo up"
	echo "link add switch mtu $mtu type bridge mcast_snooping 0"
	echo "link set switch up"
	for ((i = 0; i < ndevices; i++)); do
		address=10.8.0.$((i + 1))
		table=$((1000 + i))
		printf "link add net$i address $mac mtu $mtu" $((i + 1))
		echo " type veth peer name port$i mtu $mtu"
		echo "link set port$i master switch up"
		echo "link set net$i up"
		echo "address add $address/24 dev net$i"
		echo "route add 10.8.0.0/24 dev net$i src $address table $table"
		echo "route add 224.0.0.0/4 dev net$i src $address table $table"
		echo "route add local $address dev net$i table $table"
		echo "rule add pref $((1000 + i)) iif net$i lookup local"
		echo "rule add pref $((2000 + i)) oif net$i lookup $table"
		echo "rule add pref $((3000 + i)) from $address to 10.8.0.0/24 lookup $table"
	done
	echo "rule add pref 4000 lookup local"
	echo "rule del pref 0"
	# The MAC address of every IP address is set here. If the kernel had to ask for it,
	# the answer would come before the kernel waits for it, be missed, and cost a second.
	for ((i = 0; i < ndevices; i++)); do
		for ((j = 0; j < ndevices; j++)); do
			printf "neigh add 10.8.0.$((j + 1)) lladdr $mac dev net$i\n" $((j + 1))
		done
	done
} | ip -batch -

for ((i = 0; i < ndevices; i++)); do
	echo "link add rxe$i type rxe netdev net$i"
done | rdma --batch -
