# SPDX-License-Identifier: BSD-3-Clause
"""Gloo, the library by which torch carries out collectives on CPUs, over TCP.

Its ranks are an MPI job's, like those of all contenders. It differs from the MPI
libraries in that its ranks sleep while they wait.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import site
import socket
import struct
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bench.jobs.contenders import GLOO_ENVIRONMENT

if TYPE_CHECKING:
    import numpy as np
    from mpi4py import MPI
    from numpy.typing import NDArray

_SIOCGIFADDR = 0x8915  # of <linux/sockios.h>
_LIMIT = timedelta(minutes=3)  # on a busy machine torch is imported slowly


class Gloo:
    """The collectives of gloo, by mpi4py's names, among the ranks of a communicator.

    Parameters
    ----------
    world
        The communicator. It carries the address at which the ranks find each other.
    interface
        The name of the network interface that gloo uses, such as ``"eth0"``.
    """

    def __init__(self, world: MPI.Intracomm, interface: str) -> None:
        site.addsitedir(str(next(GLOO_ENVIRONMENT.glob("lib/*/site-packages"))))
        self._torch = importlib.import_module("torch")
        # A rank has at most one core.
        self._torch.set_num_threads(1)
        self._calls = importlib.import_module("torch.distributed")
        os.environ["GLOO_SOCKET_IFNAME"] = interface
        self._calls.init_process_group(
            "gloo",
            store=self._store(world, interface),
            rank=world.rank,
            world_size=world.size,
            timeout=_LIMIT,
        )

    def _store(self, world: MPI.Intracomm, interface: str) -> Any:
        """Return the store in which ranks leave their addresses, which rank 0 keeps."""
        store, place = None, None
        if world.rank == 0:
            place = (_address(interface), 0)  # at a port that the kernel chooses
            store = self._open(place, world.size, keeps=True)
            place = (place[0], store.port)
        place = world.bcast(place)
        return store or self._open(place, world.size, keeps=False)

    def _open(self, place: tuple[str, int], nranks: int, *, keeps: bool) -> Any:
        """Open the store at an address and a port, or make it if this rank keeps it."""
        return self._calls.TCPStore(
            *place, nranks, is_master=keeps, timeout=_LIMIT, wait_for_workers=False
        )

    def version(self) -> str:
        """Return the version of torch."""
        version: str = self._torch.__version__
        return version

    def close(self) -> None:
        """Disconnect the ranks. Collective."""
        self._calls.destroy_process_group()

    # torch calls all_gather_into_tensor and reduce_scatter_tensor so from 2.13 on; each
    # call by the old name would print a warning.

    def Allgather(  # noqa: N802 -- mpi4py's name
        self, sendbuf: NDArray[np.uint8], recvbuf: NDArray[np.uint8]
    ) -> None:
        """Gather the blocks of all ranks."""
        self._calls.all_gather_single(self._flat(recvbuf), self._flat(sendbuf))

    def Iallgather(  # noqa: N802 -- mpi4py's name
        self, sendbuf: NDArray[np.uint8], recvbuf: NDArray[np.uint8]
    ) -> Request:
        """Start to gather the blocks of all ranks."""
        tensors = self._flat(recvbuf), self._flat(sendbuf)
        return Request(self._calls.all_gather_single(*tensors, async_op=True))

    def Bcast(self, buf: NDArray[np.uint8], root: int) -> None:  # noqa: N802
        """Send the root's data to all ranks."""
        self._calls.broadcast(self._flat(buf), root)

    def Ireduce_scatter_block(  # noqa: N802 -- mpi4py's name
        self, sendbuf: NDArray[np.float32], recvbuf: NDArray[np.float32]
    ) -> Request:
        """Start to sum the blocks of all ranks, of which each rank gets its own."""
        tensors = self._flat(recvbuf), self._flat(sendbuf)
        return Request(self._calls.reduce_scatter_single(*tensors, async_op=True))

    def _flat(self, array: NDArray[Any]) -> Any:
        """Return a tensor of one dimension in the memory of an array."""
        return self._torch.from_numpy(array).view(-1)


class Request:
    """A collective of gloo that has been started."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def Wait(self) -> None:  # noqa: N802 -- mpi4py's name
        """Wait until the collective is complete on this rank."""
        self._work.wait()


def _address(interface: str) -> str:
    """Return the IPv4 address of a network interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack("256s", interface.encode())
        answer = fcntl.ioctl(asked, _SIOCGIFADDR, request)
    return socket.inet_ntoa(answer[20:24])
