# SPDX-License-Identifier: BSD-3-Clause
"""Settings that a communicator passes on to those derived from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mpimcast._settings.config import Config
from mpimcast._settings.setting import shown
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class InheritedSettings:
    """Settings that a communicator passes on to those derived from it.

    Attributes
    ----------
    config : Config
        The settings.
    thread_level : int or None
        The least thread level of all ranks; None until they have agreed on it and on
        the settings.
    """

    config: Config
    thread_level: int | None = None

    def updated(self, settings: Mapping[str, object]) -> InheritedSettings:
        """Return these with the keywords of a further handle, which must not conflict.

        A setting that no keyword has given yet can be given until all ranks have
        agreed on the settings.
        """
        wanted = Config.read(settings)
        changes: dict[str, Any] = {}
        for name in settings:
            old, new = getattr(self.config, name), getattr(wanted, name)
            if settings[name] is None or old == new:
                continue
            fixed = self.config.sources.get(name) == "argument"
            if fixed or self.thread_level is not None:
                why = (
                    "was given"
                    if self.thread_level is None
                    else "all ranks have agreed on"
                )
                raise ConfigError(
                    f"{name}={shown(name, new)} conflicts with {shown(name, old)}, "
                    f"which {why} for this communicator; to use other settings, "
                    "duplicate the communicator of the MPI library"
                )
            changes[name] = new
        given = [name for name in settings if settings[name] is not None]
        sources = {**self.config.sources, **dict.fromkeys(given, "argument")}
        return InheritedSettings(
            replace(self.config, **changes, sources=sources), self.thread_level
        )
