# SPDX-License-Identifier: BSD-3-Clause
"""Reduce-Scatter of tensors by the MPI library, in a thread of its own."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from mpimcast._native import engine
from mpimcast._support.naming import named
from mpimcast.errors import ConfigError, Error
from mpimcast.torch import reduction, tensors
from mpimcast.torch.work import Work

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

    from mpimcast.comm import Intracomm

# How long a description of a call may be.
_TERMS_BYTES = 64


class _Call:
    """A call in the thread, as a `Work` awaits it."""

    def __init__(self, future: Future[None]) -> None:
        self._future = future

    def Wait(self) -> None:  # noqa: N802 -- mpi4py's name
        self._future.result()

    def Test(self) -> bool:  # noqa: N802 -- mpi4py's name
        if self._future.done():
            self._future.result()
        return self._future.done()


class Reducer:
    """The Reduce-Scatter of one communicator.

    The MPI library's collectives wait forever for a rank that has ended. So before each
    of them there is a small Allgather of mpimcast's, which tells of ranks that have
    left, and of calls that differ.

    Parameters
    ----------
    comm
        The communicator, which must carry nothing else. Whatever their size, mpimcast
        must carry its Allgathers (``MIN_BYTES=0``).

    Raises
    ------
    ConfigError
        If MPI was initialised without support for threads.
    """

    def __init__(self, comm: Intracomm) -> None:
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise ConfigError(
                "a Reduce-Scatter beside an Allgather needs MPI.THREAD_MULTIPLE, but "
                f"MPI was initialised with thread level {MPI.Query_thread()}: leave "
                'mpi4py.rc.thread_level at "multiple", and use an MPI library with it'
            )
        self._comm = comm
        self._executor = ThreadPoolExecutor(
            1, "mpimcast reduce-scatter", initializer=engine.unbind_thread
        )

    def start(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        op: dist.ReduceOp | dist.ReduceOp.RedOpType,
    ) -> Work:
        """Start a Reduce-Scatter of tensors.

        Parameters
        ----------
        output_tensor, input_tensor, op
            As for ``torch.distributed.reduce_scatter_single``.

        Raises
        ------
        ValueError
            If the tensors do not fit, or MPI cannot reduce them so.
        """
        kind = reduction.kind_of(op)
        reduction.check(kind, input_tensor.dtype)
        tensors.check_blocks(output_tensor, input_tensor, self._comm.Get_size())
        output, whole = map(tensors.flat, (output_tensor, input_tensor))
        future = self._executor.submit(self._run, output, whole, kind)
        return Work([_Call(future)], [output_tensor])

    def _run(
        self,
        output: torch.Tensor,
        whole: torch.Tensor,
        kind: dist.ReduceOp.RedOpType,
    ) -> None:
        self._agree(f"{whole.numel()} items of {whole.dtype} by {kind.name}")
        begin_ns = time.monotonic_ns()
        reduction.reduce_scatter(self._comm, output, whole, kind)
        state = self._comm._need_state()  # noqa: SLF001 -- our own class
        state.thresholds.tally.add_library("Reduce_scatter", output.nbytes, begin_ns)

    def _agree(self, terms: str) -> None:
        """Raise Error unless all ranks are here, and call with the same terms."""
        own = np.frombuffer(terms.encode().ljust(_TERMS_BYTES), "u1")
        found = np.empty((self._comm.Get_size(), _TERMS_BYTES), "u1")
        self._comm.Allgather(own, found)
        others = np.flatnonzero((found != own).any(axis=1))
        if len(others) > 0:
            ranks = others.tolist()
            theirs = found[ranks[0]].tobytes().decode(errors="replace").strip()
            raise Error(
                f"Reduce-Scatter: this rank reduces {terms}, but {named(ranks)} "
                f"{theirs}: all ranks must train the same parameters in the same order",
                ranks=ranks,
            )

    def close(self) -> None:
        """End the thread and free the communicator. Collective."""
        self._executor.shutdown()
        self._comm.Free()
