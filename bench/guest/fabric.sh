#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# fabric.sh N: N RDMA devices in this one kernel, on one switch:
#
#   rxe0 on net0 === port0 \
#   rxe1 on net1 === port1 -- switch
#   ...                    /
#
# netI has addresses 10.8.0.(I + 1) and 02:00:00:00:00:(I + 1). Packets between them go
# over the switch, although the kernel knows that all the addresses are its own. What
# leaves port I goes to device I alone, so a `tc qdisc ... netem` belongs there.

set -euo pipefail

ndevices=$1
mac=02:00:00:00:00:%02x
mtu=4200 # 4096 bytes of payload and room for the headers of RoCE v2

# A source address of this kernel's own is not a forgery, and only the device that has an
# address answers for it. Bursts of all devices wait in one queue.
for scope in all default; do
	conf=/proc/sys/net/ipv4/conf/$scope
	echo 1 >"$conf/accept_local"
	echo 0 >"$conf/rp_filter"
	echo 1 >"$conf/arp_ignore"
	echo 2 >"$conf/arp_announce"
done
echo 20000 >/proc/sys/net/core/netdev_max_backlog
echo 1000 >/proc/sys/net/ipv4/igmp_max_memberships

# The usual first rule sends whatever has an address of this kernel's own through lo.
# Here it holds only for packets that have come in. Packets that go out by a device, or
# from its address, are routed by the device's own table first.
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
	# Neighbours are permanent. If they were resolved on demand, the answer would come
	# before the kernel begins to wait for it, and cost a second.
	for ((i = 0; i < ndevices; i++)); do
		for ((j = 0; j < ndevices; j++)); do
			printf "neigh add 10.8.0.$((j + 1)) lladdr $mac dev net$i\n" $((j + 1))
		done
	done
} | ip -batch -

for ((i = 0; i < ndevices; i++)); do
	echo "link add rxe$i type rxe netdev net$i"
done | rdma --batch -
