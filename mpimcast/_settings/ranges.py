# SPDX-License-Identifier: BSD-3-Clause
"""Ranges of multicast groups and of ports, such as a firewall lets through."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

# All IPv4 multicast groups but the first 256, which are for the protocols of a single
# link: routers and switches flood them (RFC 5771, section 4).
_GROUP_FIRST = 0xE0000100
_GROUP_LAST = 0xEFFFFFFF
_PORT_LAST = 65535


@dataclass(frozen=True)
class Range:
    """Whole numbers, from `first` to `last`."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """How many numbers the range has."""
        return self.last - self.first + 1

    def draw(self, nconsecutive: int = 1) -> int:
        """Return the first of `nconsecutive` numbers at a random place in the range."""
        return self.first + secrets.randbelow(self.count - nconsecutive + 1)

    def after(self, number: int) -> int:
        """Return the number that follows `number`; `last` is followed by `first`."""
        return self.first + (number + 1 - self.first) % self.count


def _ends(text: str) -> tuple[str, str]:
    """Return both ends of "first-last"; without a hyphen the text is both."""
    first, hyphen, last = text.partition("-")
    return first.strip(), (last if hyphen else first).strip()


class Groups(Range):
    """IPv4 multicast groups, as numbers."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read 239.1.2.3, 239.1.2.0-239.1.2.15 or 239.1.2.0/28.

        Raises
        ------
        ValueError
            If `text` has none of these forms, or a group is below 224.0.1.0 or above
            239.255.255.255.
        """
        if "/" in text:
            network = ipaddress.IPv4Network(text.strip())
            first, last = network[0], network[-1]
        else:
            first, last = map(ipaddress.IPv4Address, _ends(text))
        read = cls(int(first), int(last))
        if not _GROUP_FIRST <= read.first <= read.last <= _GROUP_LAST:
            raise ValueError
        return read

    def __str__(self) -> str:
        """Return the text that parse() reads."""
        first, last = map(ipaddress.IPv4Address, astuple(self))
        return str(first) if first == last else f"{first}-{last}"


class Ports(Range):
    """Ports of UDP and TCP."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read 30000-30099 or 30000; raise ValueError if `text` has neither form."""
        read = cls(*map(int, _ends(text)))
        if not 1 <= read.first <= read.last <= _PORT_LAST:
            raise ValueError
        return read

    def __str__(self) -> str:
        """Return the text that parse() reads."""
        return str(self.first) if self.count == 1 else f"{self.first}-{self.last}"
