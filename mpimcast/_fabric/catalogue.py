# SPDX-License-Identifier: BSD-3-Clause
"""Fabrics by name, such as ``clos2:radix=36,hosts=188``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._fabric.clos import clos2, clos3, fat_tree, paper, single
from mpimcast._fabric.dragonfly import dragonfly
from mpimcast._fabric.rails import rails
from mpimcast._fabric.sites import two_sites
from mpimcast._fabric.wiring import LINK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.link import Link


def _whole(text: str) -> int:
    """Return a whole number; builders say which are too large."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"{text!r} is no whole number of at least 1")
    return int(text)


def _real(text: str) -> float:
    """Return a number above 0."""
    number = float(text)
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{text!r} is no number above 0")
    return number


def _thousandths(text: str) -> int:
    """Return Gbit/s in Mbit/s, or microseconds in nanoseconds."""
    return round(1000 * _real(text))


class Key(NamedTuple):
    """A key in the description of a fabric, and the parameter that it sets.

    Attributes
    ----------
    parameter : str
        The builder's parameter.
    read : callable
        Reads the value; raises ValueError.
    needed : bool
        Whether it has to be said.
    """

    parameter: str
    read: Callable[[str], Any] = _whole
    needed: bool = False


class Entry(NamedTuple):
    """A kind of fabric: what builds it, and its keys."""

    build: Callable[..., Fabric]
    keys: Mapping[str, Key]


_HOSTS = {"hosts": Key("nhosts")}
_RADIX = {"radix": Key("radix", needed=True)}
_OVERSUBSCRIPTION = {"oversubscription": Key("oversubscription", _real)}

FABRICS = {
    "single": Entry(single, {"hosts": Key("nhosts", needed=True)}),
    "clos2": Entry(
        clos2, {**_RADIX, **_HOSTS, **_OVERSUBSCRIPTION, "parallel": Key("parallel")}
    ),
    "clos3": Entry(
        clos3,
        {
            **_RADIX,
            **_HOSTS,
            **_OVERSUBSCRIPTION,
            "spine-oversubscription": Key("spine_oversubscription", _real),
        },
    ),
    "fat-tree": Entry(fat_tree, {"k": Key("k", needed=True), **_HOSTS}),
    "paper": Entry(paper, _HOSTS),
    "dragonfly": Entry(
        dragonfly, {name: Key(name, needed=True) for name in "aph"} | _HOSTS
    ),
    "rails": Entry(
        rails,
        {
            "pods": Key("npods", needed=True),
            "nodes": Key("nnodes", needed=True),
            "rails": Key("nrails", needed=True),
            "spines": Key("nspines"),
        },
    ),
}

# Two data centres have the keys of the fabric that is at each of them, and these.
TWO_SITES = "two-sites"
_SITE = "site"
_LONG = {
    "long-rate": Key("mbits", _thousandths, needed=True),
    "long-latency": Key("latency_ns", _thousandths, needed=True),
}


def built(text: str, link: Link = LINK, nhosts: int | None = None) -> Fabric:
    """Return the fabric that a text describes.

    Parameters
    ----------
    text
        ``NAME`` or ``NAME:KEY=VALUE,...``: a name and keys of `FABRICS`, or `TWO_SITES`
        with the key ``site``, which is a name of `FABRICS`, ``long-rate`` in Gbit/s,
        ``long-latency`` in microseconds, and the keys of the site.
    link
        What the links are like.
    nhosts
        The number of hosts of a ``single`` switch if the text does not say it.

    Raises
    ------
    ValueError
        If there is no such fabric; the text of the error says why.
    """
    name, _, rest = text.partition(":")
    given = _pairs(rest)
    if name == TWO_SITES:
        site = given.pop(_SITE, "")
        if site not in FABRICS:
            raise ValueError(f"{TWO_SITES} needs {_SITE}, one of {', '.join(FABRICS)}")
        far = _values(name, _LONG, {key: given.pop(key, "") for key in _LONG})
        return two_sites(_built(site, given, link, nhosts), link=link, **far)
    return _built(name, given, link, nhosts)


def _built(name: str, given: dict[str, str], link: Link, nhosts: int | None) -> Fabric:
    if name not in FABRICS:
        known = ", ".join([*FABRICS, TWO_SITES])
        raise ValueError(f"there is no fabric {name!r}; there are {known}")
    if name == "single" and nhosts is not None:
        given = {"hosts": str(nhosts), **given}
    entry = FABRICS[name]
    return entry.build(link=link, **_values(name, entry.keys, given))


def _pairs(text: str) -> dict[str, str]:
    """Return the keys and values of a text."""
    pairs: dict[str, str] = {}
    for part in text.split(",") if text else []:
        key, equals, value = part.partition("=")
        if not equals or key in pairs:
            raise ValueError(f"{part!r} is not valid: each KEY=VALUE is given once")
        pairs[key] = value
    return pairs


def _values(
    name: str, keys: Mapping[str, Key], given: Mapping[str, str]
) -> dict[str, Any]:
    """Return the builder's arguments."""
    if unknown := sorted(set(given) - set(keys)):
        raise ValueError(f"{name} has no {unknown[0]!r}; it has {', '.join(keys)}")
    arguments = {}
    for key, (parameter, read, needed) in keys.items():
        if given.get(key):
            try:
                arguments[parameter] = read(given[key])
            except ValueError as error:
                raise ValueError(f"{key} of {name}: {error}") from None
        elif needed or key in given:
            raise ValueError(f"{name} needs a value of {key!r}")
    return arguments
