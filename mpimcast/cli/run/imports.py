# SPDX-License-Identifier: BSD-3-Clause
"""Calls an action as soon as a program has imported a module."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def after_import(name: str, action: Callable[[], None]) -> None:
    """Call `action` once module `name` is imported, before its importer continues.

    Parameters
    ----------
    name
        The module's full name.
    action
        Called at once if the module has been imported already, else by its first
        import, which fails with whatever `action` raises.
    """
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(name, action))


class _Finder:
    """Leaves finding to the other finders, and adds an action to their result."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self._name = name
        self._action = action

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of the first other finder; see ``importlib.abc``."""
        if name != self._name:
            return None
        finders = (each for each in list(sys.meta_path) if each is not self)
        specs = (each.find_spec(name, path, target) for each in finders)
        spec = next((each for each in specs if each is not None), None)
        if spec is not None and spec.loader is not None:
            self._extend(spec.loader)
        return spec

    def _extend(self, loader: Loader) -> None:
        """Make the loader call the action after it has run the module's own code.

        The loader remains the one that was found, so that the module is the same as
        without mpimcast.
        """
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            sys.meta_path[:] = [each for each in sys.meta_path if each is not self]
            self._action()

        loader.exec_module = exec_module  # type: ignore[method-assign]
