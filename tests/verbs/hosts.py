# SPDX-License-Identifier: BSD-3-Clause
"""Let the ranks of a job in a guest be on several hosts, with several ranks on each.

Ranks are on one host if their kernels name the same boot. Each host here has a name of
its own for that, mounted over the kernel's where only its ranks see it. So the ranks of
a host share memory, and its node leader multicasts over the host's own RDMA device,
through the switch.
"""

from __future__ import annotations

from collections.abc import Sequence

_SCRIPT = """
host=$(set -- {places}; shift "$OMPI_COMM_WORLD_RANK"; echo "$1")
export MPIMCAST_NET_DEVICES="{devices}"
boot=$(mktemp)
printf "00000000-0000-4000-8000-%012d\\n" "$host" >"$boot"
exec unshare --mount sh -c \
    'mount --bind "$0" /proc/sys/kernel/random/boot_id; exec "$@"' "$boot" "$@"
"""


# The hosts that may have a second device: host number 0 has rxe0 and rxe4.
_NHOSTS = 4


def on_hosts(places: Sequence[int], ndevices: int = 1) -> str:
    """Return the script for `wrap` of ranks.job that puts each rank on its host.

    Parameters
    ----------
    places
        The number of each rank's host, which is also that of the host's first device.
    ndevices
        The devices of each host.
    """
    devices = ",".join(f"rxe$((host + {n * _NHOSTS}))" for n in range(ndevices))
    return _SCRIPT.format(places=" ".join(map(str, places)), devices=devices)
