# SPDX-License-Identifier: BSD-3-Clause
"""The settings: what they mean, and where the value of each one comes from.

A keyword argument overrides the environment variable ``MPIMCAST_...`` of the setting's
name, and the variable overrides the default.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from mpimcast._settings.given import PREFIX, parse, unknown_keywords
from mpimcast._settings.options import TRANSPORTS, Options, option_names, options
from mpimcast._settings.ranges import Ports
from mpimcast._settings.setting import Setting, shown
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

# The least block that MIN_BYTES=auto takes from the MPI library, over shared memory and
# over a network.
_SHARED_MIN_BYTES = 4 << 10
_NETWORK_MIN_BYTES = 64 << 10

# The ports that groups may have with PORTS=auto. All are below 32768, the first port
# that the Linux kernel gives to sockets that ask for any.
_GROUP_PORTS = Ports(20480, 32767)

# The settings that may differ between ranks. All others must be equal.
LOCAL = frozenset({"net_devices", "progress", "proxy", "warn_after", "log", "trace"})


@dataclasses.dataclass(frozen=True)
class Config(Options):
    """All settings, and where each comes from."""

    sources: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """Raise ConfigError if settings contradict each other."""
        if self.group.count < self.subgroups:
            raise ConfigError(
                f"SUBGROUPS={self.subgroups} needs as many multicast groups, but "
                f"GROUP={self.group} has {self.group.count}: widen GROUP, or lower "
                "SUBGROUPS"
            )
        if self.has_proxy:
            self._check_proxy()
        if self.may_code and self.zero_copy:
            raise ConfigError(
                f"RELIABILITY={self.reliability} mends lost chunks from parity chunks, "
                "but with ZERO_COPY=on the device would put parity in the places of "
                "chunks: leave out one of them"
            )

    def _check_proxy(self) -> None:
        """Raise ConfigError if PROGRESS=proxy contradicts another setting."""
        if self.progress_thread == "off":
            raise ConfigError(
                "PROGRESS=proxy has a proxy progress operations while the program "
                "computes, but PROGRESS_THREAD=off wants that nobody does: leave out "
                "one of them"
            )
        if self.trace:
            raise ConfigError(
                f"TRACE={self.trace} traces what this process does, but with "
                "PROGRESS=proxy a proxy runs the operations: leave out one of them"
            )

    @classmethod
    def read(
        cls,
        arguments: Mapping[str, object],
        environment: Mapping[str, str] | None = None,
    ) -> Config:
        """Return the settings in effect.

        Parameters
        ----------
        arguments
            The user's keyword arguments, by the settings' names in lower case; None
            stands for an argument that was not given.
        environment
            Where to look for the variables; ``os.environ`` if None.

        Raises
        ------
        ConfigError
            If a value is not valid, or an argument is no setting.
        """
        if environment is None:
            environment = os.environ
        unknown = sorted(set(arguments) - set(option_names()))
        if unknown:
            raise ConfigError(unknown_keywords(unknown, option_names()))
        found: dict[str, Any] = {}
        sources = {}
        for option in options():
            variable = PREFIX + option.name.upper()
            if arguments.get(option.name) is not None:
                name, given, source = option.name, arguments[option.name], "argument"
            elif environment.get(variable, "") != "":
                name, given, source = variable, environment[variable], "variable"
            else:
                continue
            found[option.name] = parse(option.metadata["values"], given, name)
            sources[option.name] = source
        return cls(**found, sources=sources)

    @property
    def transports(self) -> tuple[str, ...]:
        """The transports to be tried, in the order in which to try them."""
        if self.transport == "auto":
            return TRANSPORTS
        return tuple(self.transport.split(","))

    @property
    def may_share(self) -> bool:
        """Whether shared memory may carry data where all ranks are on one node."""
        return "shm" in self.transports and self.node_bytes > 0

    @property
    def may_code(self) -> bool:
        """Whether lost chunks may be mended by a code."""
        return self.reliability != "repeat"

    @property
    def code_chunks(self) -> tuple[int, int]:
        """The data and parity chunks of a group; (0, 0) if there is no code."""
        if not self.may_code:
            return 0, 0
        data, parity = map(int, self.code.split(","))
        return data, parity

    def has_coder(self, nspare: int) -> bool:
        """Return whether a thread of this rank computes parity and mends.

        Parameters
        ----------
        nspare
            How many processors this rank has beside those that it uses anyway.
        """
        if not self.may_code or self.has_proxy:
            return False
        return self.coder == "on" or (self.coder == "auto" and nspare > 0)

    @property
    def reason_for_mpi(self) -> str:
        """Why the MPI library carries all operations; empty if it does not."""
        if self.transport == "mpi":
            return "TRANSPORT=mpi"
        if self.choice == "never" and "mpi" in self.transports:
            return "CHOICE=never"
        return ""

    @property
    def chooses(self) -> bool:
        """Whether trials choose between mpimcast and the MPI library."""
        return self.choice not in ("always", "never") and "mpi" in self.transports

    def least_bytes(self, *, shared: bool) -> int:
        """Return MIN_BYTES, or what "auto" means; `shared` says whether over shm."""
        if self.min_bytes is not None:
            return self.min_bytes
        return _SHARED_MIN_BYTES if shared else _NETWORK_MIN_BYTES

    @property
    def has_proxy(self) -> bool:
        """Whether a proxy runs this rank's operations over a network."""
        return self.progress == "proxy"

    @property
    def proxy_name(self) -> str:
        """The name of the proxy that PROGRESS=proxy uses."""
        return self.proxy or str(os.geteuid())

    @property
    def group_ports(self) -> Ports:
        """The range from which the port of a team's multicast groups is taken."""
        return self.ports or _GROUP_PORTS

    def settings(self) -> list[Setting]:
        """List every setting with its value, source and meaning."""
        return [
            Setting(
                option.name.upper(),
                shown(option.name, getattr(self, option.name)),
                self.sources.get(option.name, "default"),
                f"{option.metadata['doc']} ({option.metadata['values'].expected})",
            )
            for option in options()
        ]

    def given(self) -> dict[str, object]:
        """Return the keyword arguments that were given and must be equal on all ranks.

        The names are in lower case, and the values are such as `read` takes.
        """
        return {
            name: shown(name, getattr(self, name))
            for name, source in self.sources.items()
            if source == "argument" and name not in LOCAL
        }

    def agreed(self) -> dict[str, object]:
        """Return all values that must be equal on all ranks, by name in upper case."""
        values_of = {
            name.upper(): shown(name, getattr(self, name))
            for name in option_names()
            if name not in LOCAL
        }
        # Clocks are compared by all ranks; the directory is each one's own.
        return {**values_of, "TRACE": "given" if self.trace else ""}
