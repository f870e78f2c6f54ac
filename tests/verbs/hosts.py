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
export MPIMCAST_NET_DEVICES="rxe$host"
boot=$(mktemp)
printf "00000000-0000-4000-8000-%012d\\n" "$host" >"$boot"
exec unshare --mount sh -c \
    'mount --bind "$0" /proc/sys/kernel/random/boot_id; exec "$@"' "$boot" "$@"
"""


def on_hosts(places: Sequence[int]) -> str:
    """Return the script for `wrap` of ranks.job that puts each rank on its host.

    Parameters
    ----------
    places
        The number of each rank's host, which is also that of the host's device.
    """
    return _SCRIPT.format(places=" ".join(map(str, places)))
