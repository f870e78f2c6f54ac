# SPDX-License-Identifier: BSD-3-Clause
"""Opens endpoints with other ranks: finds devices, creates endpoints, connects them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpimcast._session.attachment import need_proxy
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._native.endpoint import Endpoint
    from mpimcast._native.protection import Secret
    from mpimcast._native.transport import Transport

    Part = tuple[int, ...]

# The answer of a rank that cannot have the port which all ranks of its part need.
_TAKEN = "taken"


class Opening:
    """The endpoints that disjoint parts of all ranks open, each part for itself.

    All ranks take part in every step, even those in no part, so that no step needs a
    communicator of only some ranks.

    Parameters
    ----------
    transport
        This rank's transport; None if its part has failed before, or if it has none.
    parts
        The parts, equal on all ranks.
    part
        This rank's part; empty if it has none.
    step
        Runs an act on the ranks whose parts have not failed, and returns all ranks'
        results, by rank. It may raise an error if a rank has failed.

    Attributes
    ----------
    endpoint : Endpoint or None
        This rank's endpoint, once created.
    """

    def __init__(
        self,
        transport: Transport | None,
        parts: Sequence[Part],
        part: Part,
        step: Callable[[Callable[[], object]], list[Any]],
    ) -> None:
        self.endpoint: Endpoint | None = None
        self._transport = transport
        self._parts = parts
        self._part = part
        self._step = step
        self._has_port = True

    def find(self) -> list[Any]:
        """Find all ranks' devices; return the facts of this rank's part.

        Return those of the first part if this rank has none.
        """
        found = self._step(lambda: self._mine().find())
        return [found[rank] for rank in self._part or self._parts[0]]

    def create(self, chunk_bytes: int) -> None:
        """Create all ranks' endpoints, each part's on a port that its ranks can have.

        A part for which no port is left tries its last port again, and fails.
        """
        told = self._step(lambda: self._create(chunk_bytes))
        while again := [
            part for part in self._parts if any(told[rank] == _TAKEN for rank in part)
        ]:
            if self._part in again:
                self.close()
                self._has_port = self._mine().take_next_port()
            told = self._step(lambda: self._create(chunk_bytes))
        self._addresses = [told[rank] for rank in self._part]

    def connect(self, secret: Secret | None = None) -> None:
        """Connect the endpoints of each part; they have then joined the groups.

        Those of a protected team take the `secret` of its ranks before.
        """
        self._step(lambda: self._connect(secret))

    def hand_over(self) -> Endpoint:
        """Return the endpoint, which the caller closes from here on."""
        endpoint, self.endpoint = self.endpoint, None
        assert endpoint is not None  # noqa: S101 -- `create` came first
        return endpoint

    def close(self) -> None:
        """Close this rank's endpoint, if it has one."""
        if self.endpoint is not None:
            self.endpoint.close()
            self.endpoint = None

    def _mine(self) -> Transport:
        assert self._transport is not None  # noqa: S101 -- acts are run only with one
        return self._transport

    def _create(self, chunk_bytes: int) -> str:
        """Create this rank's endpoint; return its address, or _TAKEN."""
        from mpimcast._native.core import PortTakenError

        if self.endpoint is None:
            need_proxy(self._mine().config)
            try:
                self.endpoint = self._mine().create(chunk_bytes)
            except PortTakenError as error:
                if self._has_port:
                    return _TAKEN
                raise TransportError(
                    f"{error}; every port that was tried is taken: widen PORTS"
                ) from error
        return self.endpoint.address().hex()

    def _connect(self, secret: Secret | None) -> None:
        assert self.endpoint is not None  # noqa: S101 -- `create` came first
        if secret is not None:
            self.endpoint.protect(secret)
        self.endpoint.connect(bytes.fromhex("".join(self._addresses)))
