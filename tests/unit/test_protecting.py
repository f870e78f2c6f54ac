# SPDX-License-Identifier: BSD-3-Clause
"""How ranks agree on protection, and the libraries and secrets that it takes."""

from __future__ import annotations

import pytest

from mpimcast import ConfigError
from mpimcast._native import protection
from mpimcast._native.transport import TRANSPORTS
from mpimcast._session import protecting
from mpimcast._settings.config import Config

KINDS = {kind.name: kind for kind in TRANSPORTS}

BOTH = {"aegis": "", "aes": ""}
SLOW = {"aegis": "no libaegis", "aes": ""}
FAST = {"aegis": "", "aes": "no libcrypto"}
NONE = {"aegis": "no libaegis", "aes": "no libcrypto"}


def choose(
    protect: str, told: list[dict[str, str]], kind: str = "udp"
) -> protection.Protection | None:
    """Choose as the ranks do that have told this."""
    config = Config.read({"protect": protect}, {})
    return protecting.choose(config, KINDS[kind], told, warns=False)


@pytest.mark.parametrize(
    ("told", "primitive"),
    [([BOTH, BOTH], "aegis"), ([BOTH, SLOW], "aes"), ([FAST, BOTH], "aegis")],
)
def test_the_fastest_that_all_have(told: list[dict[str, str]], primitive: str) -> None:
    """Ranks take the first primitive that none of them lacks."""
    for protect in ("authenticate", "encrypt"):
        for kind in KINDS:
            assert choose(protect, told, kind) == (protect, primitive)
    assert choose("auto", told) == ("authenticate", primitive)
    assert choose("auto", told, "verbs") is None
    assert choose("off", told) is None


@pytest.mark.parametrize(
    ("told", "culprits"),
    [([BOTH, NONE, SLOW], (1,)), ([NONE, BOTH, NONE], (0, 2)), ([SLOW, FAST], (0,))],
)
def test_nothing_in_common(
    told: list[dict[str, str]], culprits: tuple[int, ...]
) -> None:
    """If ranks have no primitive in common, an error names those to blame, and why."""
    assert choose("auto", told) is None
    for protect in ("authenticate", "encrypt"):
        with pytest.raises(ConfigError, match=f"rank {culprits[0]} has no") as caught:
            choose(protect, told)
        assert caught.value.ranks == culprits
        assert f"PROTECT={protect}" in str(caught.value)


def test_warning(caplog: pytest.LogCaptureFixture) -> None:
    """With `auto` one rank warns that nothing is protected."""
    config = Config.read({"protect": "auto"}, {})
    with caplog.at_level("WARNING", "mpimcast"):
        protecting.choose(config, KINDS["udp"], [BOTH, NONE], warns=True)
    assert "not protected: rank 1 has no library" in caplog.text
    assert "no libcrypto" in caplog.text


def test_libraries() -> None:
    """Each primitive has a name, and a reason if its library cannot be opened."""
    for primitive, why in protection.missing().items():
        assert protection.name(primitive)
        if why:
            pytest.skip(f"{protection.name(primitive)} cannot be opened: {why}")


def test_secrets_differ() -> None:
    """A secret is all zeros until it is drawn, and then no other has it."""
    secrets = [protection.Secret() for _ in range(3)]
    assert all(bytes(each.memory) == bytes(32) for each in secrets)
    for each in secrets:
        each.draw()
    assert len({bytes(each.memory) for each in secrets}) == 3
    for each in secrets:
        each.close()
