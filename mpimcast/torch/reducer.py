# SPDX-License-Identifier: BSD-3-Clause
"""Reduce-Scatter of tensors by the MPI library, in a thread of its own."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from mpi4py import MPI

from mpimcast._mpi.completion import complete_transfer
from mpimcast._native import engine
from mpimcast.errors import ConfigError
from mpimcast.torch import reduction, tensors
from mpimcast.torch.work import Work

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

    from mpimcast.comm import Intracomm


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

    The MPI library waits forever for a rank that has ended. So mpimcast calls the roll
    of the communicator meanwhile.

    Parameters
    ----------
    comm
        A communicator that is open, and carries nothing else.

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
        begin_ns = time.monotonic_ns()
        state = self._comm._need_state()  # noqa: SLF001 -- our own class
        private = state._private  # noqa: SLF001 -- our own class
        absence = None if private is None else private.absence("Reduce-Scatter")

        def wait(request: MPI.Request, tensors: object) -> None:
            complete_transfer(request, tensors, absence)

        output.copy_(reduction.reduce_scatter(self._comm, whole, kind, wait))
        state.thresholds.tally.add_library("Reduce_scatter", output.nbytes, begin_ns)

    def close(self) -> None:
        """Finish what was started, and end the thread."""
        self._executor.shutdown()
