# SPDX-License-Identifier: BSD-3-Clause
"""Settings: where they come from, what they may be."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from mpimcast import ConfigError
from mpimcast.config import Config

NAMES = (
    "TRANSPORT NET_DEVICES MIN_BYTES CHAINS SUBGROUPS CHUNK_BYTES WINDOW_BYTES "
    "EAGER_BYTES REPAIR CHECKSUM TTL JOIN PKEY_INDEX SERVICE_LEVEL TRAFFIC_CLASS "
    "RECEIVES ZERO_COPY PROGRESS PROGRESS_THREAD TIMEOUT ENTRY_TIMEOUT FAULT LOG"
)


def test_defaults() -> None:
    """They are what the README promises."""
    config = Config.read({}, {})
    assert config == Config()
    assert config.transport == "auto"
    assert config.min_bytes == 65536
    assert config.repair == "auto"
    assert config.checksum == "header"
    assert config.ttl == 1
    assert config.timeout == 10
    assert config.entry_timeout == math.inf


def test_precedence() -> None:
    """An argument wins over a variable, and that over the default."""
    environment = {"MPIMCAST_MIN_BYTES": "1K", "MPIMCAST_TTL": "2"}
    config = Config.read({"min_bytes": 7, "log": None}, environment)
    assert (config.min_bytes, config.ttl, config.log) == (7, 2, "warn")
    sources = {each.name: each.source for each in config.settings()}
    assert sources["MIN_BYTES"] == "argument"
    assert sources["TTL"] == "variable"
    assert sources["LOG"] == "default"


def test_an_empty_variable_is_not_set() -> None:
    """``MPIMCAST_TTL= program`` takes the default."""
    assert Config.read({}, {"MPIMCAST_TTL": ""}).ttl == 1


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("min_bytes", "0", 0),
        ("min_bytes", "64k", 65536),
        ("min_bytes", "3M", 3 << 20),
        ("min_bytes", "1G", 1 << 30),
        ("chains", "auto", 0),
        ("chains", "3", 3),
        ("transport", "UDP", "udp"),
        ("timeout", "2.5", 2.5),
        ("entry_timeout", "inf", math.inf),
        ("net_devices", " lo,eth0 ", "lo,eth0"),
    ],
)
def test_good(name: str, text: str, value: object) -> None:
    """Values as people write them, in variables and as arguments."""
    assert getattr(Config.read({}, {f"MPIMCAST_{name.upper()}": text}), name) == value
    assert getattr(Config.read({name: text}, {}), name) == value


@pytest.mark.parametrize(
    ("name", "text", "choices"),
    [
        ("transport", "tcp", "auto or verbs or udp or mpi"),
        ("repair", "", "auto or nak or neighbour or read"),
        ("checksum", "crc", "off or header or full"),
        ("log", "loud", "error or warn or info or debug"),
        ("min_bytes", "-1", "64K"),
        ("min_bytes", "1T", "64K"),
        ("min_bytes", "1.5K", "64K"),
        ("min_bytes", str(2**63), "64K"),
        ("chunk_bytes", "70000", "65507"),
        ("chains", "0", "auto or all"),
        ("chains", "many", "auto or all"),
        ("subgroups", "0", "from 1"),
        ("ttl", "256", "255"),
        ("timeout", "0", "above 0"),
        ("timeout", "inf", "above 0"),
        ("timeout", "nan", "above 0"),
        ("entry_timeout", "never", "or inf"),
    ],
)
def test_bad(name: str, text: str, choices: str) -> None:
    """A bad value is an error that names it and the choices."""
    with pytest.raises(ConfigError, match=f"{name}={text}.*{choices}"):
        Config.read({name: text}, {})
    if text:
        variable = f"MPIMCAST_{name.upper()}"
        with pytest.raises(ConfigError, match=f"{variable}={text}.*{choices}"):
            Config.read({}, {variable: text})


def test_fault() -> None:
    """The C library judges FAULT, and says why it refuses."""
    good = "loss=0.1,dup=0.02,reorder=0.05,seed=99"
    assert Config.read({"fault": good}, {}).fault == good
    with pytest.raises(ConfigError, match=r"fault=loss=2 is not possible .*seed"):
        Config.read({"fault": "loss=2"}, {})


def test_unknown() -> None:
    """A misspelt keyword is an error that names the right ones."""
    with pytest.raises(ConfigError, match=r"min_byte; there are .*min_bytes"):
        Config.read({"min_byte": 0}, {})


def test_listing() -> None:
    """Every setting is listed, in terms of JSON, with its meaning."""
    settings = Config.read({"chains": "all"}, {}).settings()
    assert [each.name for each in settings] == NAMES.split()
    assert all(each.doc for each in settings)
    values = {each.name: each.value for each in settings}
    assert values["CHAINS"] == "all"
    assert values["ENTRY_TIMEOUT"] == "inf"
    json.dumps(values, allow_nan=False)


def test_what_ranks_agree_on() -> None:
    """All settings but those of one machine or one process."""
    local = {"NET_DEVICES", "PROGRESS", "LOG"}
    assert set(Config().agreed()) == set(NAMES.split()) - local


def test_frozen() -> None:
    """Nobody changes a setting that ranks have agreed on."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().ttl = 3  # type: ignore[misc]
