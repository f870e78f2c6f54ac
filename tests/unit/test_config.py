# SPDX-License-Identifier: BSD-3-Clause
"""Settings: their sources and their valid values."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
import os

import pytest

from mpimcast import ConfigError
from mpimcast._native.proxy import NAME_BYTES_MAX
from mpimcast._settings.config import Config
from mpimcast._settings.ignored import ignored_variables
from mpimcast._settings.options import PROXY_NAME_MAX
from mpimcast._settings.ranges import Groups, Ports

NAMES = (
    "TRANSPORT NET_DEVICES MIN_BYTES NODE_BYTES RAILS CHOICE CHAINS SUBGROUPS "
    "WORKERS CODER GROUP PORTS CHUNK_BYTES WINDOW_BYTES EAGER_BYTES REPAIR "
    "RELIABILITY CODE "
    "CHECKSUM PROTECT TTL JOIN PKEY_INDEX SERVICE_LEVEL TRAFFIC_CLASS RECEIVES "
    "ZERO_COPY PROGRESS "
    "PROXY PROGRESS_THREAD TIMEOUT ENTRY_TIMEOUT LATE_TIMEOUT WARN_AFTER FAULT LOG "
    "TRACE"
)


def test_defaults() -> None:
    """The settings have the defaults that programs rely on."""
    config = Config.read({}, {})
    assert config == Config()
    assert config.transport == "auto"
    assert config.min_bytes is None
    assert config.node_bytes == 64 << 20
    assert config.repair == "auto"
    assert config.checksum == "header"
    assert config.protect == "auto"
    assert config.ttl == 1
    assert config.timeout == 10
    assert config.entry_timeout == math.inf


def test_precedence() -> None:
    """An argument wins over a variable, and a variable over the default."""
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
        ("min_bytes", "Auto", None),
        ("node_bytes", "0", 0),
        ("node_bytes", "256M", 256 << 20),
        ("chains", "auto", 0),
        ("chains", "3", 3),
        ("transport", "UDP", "udp"),
        ("transport", "udp, MPI", "udp,mpi"),
        ("timeout", "2.5", 2.5),
        ("entry_timeout", "inf", math.inf),
        ("net_devices", " lo,eth0 ", "lo,eth0"),
        ("group", "239.1.2.3", Groups(0xEF010203, 0xEF010203)),
        ("group", "239.1.2.0 - 239.1.2.15", Groups(0xEF010200, 0xEF01020F)),
        ("group", "239.1.2.0/28", Groups(0xEF010200, 0xEF01020F)),
        ("progress", "Proxy", "proxy"),
        ("proxy", " job-7.a_b ", "job-7.a_b"),
        ("proxy", "p" * 63, "p" * 63),
        ("ports", "AUTO", None),
        ("ports", "30000", Ports(30000, 30000)),
        ("ports", "30000-30999", Ports(30000, 30999)),
        ("ports", "1-65535", Ports(1, 65535)),
    ],
)
def test_valid_values(name: str, text: str, value: object) -> None:
    """A text has the same value in a variable and in a keyword."""
    assert getattr(Config.read({}, {f"MPIMCAST_{name.upper()}": text}), name) == value
    assert getattr(Config.read({name: text}, {}), name) == value


def test_transports() -> None:
    """Transports are tried in the order in which they are written."""
    assert Config().transports == ("shm", "verbs", "udp", "mpi")
    assert Config(transport="udp").transports == ("udp",)
    assert Config(transport="udp,verbs").transports == ("udp", "verbs")


@pytest.mark.parametrize(
    ("settings", "may_share", "over_memory", "over_network"),
    [
        ({}, True, 4 << 10, 64 << 10),
        ({"min_bytes": 0}, True, 0, 0),
        ({"min_bytes": "1M"}, True, 1 << 20, 1 << 20),
        ({"min_bytes": "auto", "transport": "udp"}, False, 4 << 10, 64 << 10),
        ({"transport": "shm,udp"}, True, 4 << 10, 64 << 10),
        ({"node_bytes": 0}, False, 4 << 10, 64 << 10),
    ],
)
def test_least_bytes(
    settings: dict[str, object], may_share: bool, over_memory: int, over_network: int
) -> None:
    """MIN_BYTES=auto is less over shared memory; a given number is so everywhere."""
    config = Config.read(settings, {})
    assert config.may_share is may_share
    assert config.least_bytes(shared=True) == over_memory
    assert config.least_bytes(shared=False) == over_network


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("transport", "tcp", "verbs, udp and mpi"),
        ("transport", "udp,auto", "verbs, udp and mpi"),
        ("transport", "udp,udp", "verbs, udp and mpi"),
        ("transport", "mpi,udp", "mpi last"),
        ("transport", "upd", "did you mean udp"),
        ("repair", "", "auto, nak, neighbour or read"),
        ("checksum", "crc", "off, header or full"),
        ("protect", "on", "off, auto, authenticate or encrypt"),
        ("log", "loud", "error, warn, info or debug"),
        ("zero_copy", "perhaps", "on or off"),
        ("min_bytes", "-1", "bytes"),
        ("min_bytes", "12X", "end in K, M or G"),
        ("min_bytes", "1T", "end in K, M or G"),
        ("min_bytes", "1.5K", "a whole number of bytes"),
        ("min_bytes", str(2**63), str(2**62)),
        ("min_bytes", "atuo", "did you mean auto"),
        ("node_bytes", "auto", "a whole number of bytes"),
        ("chunk_bytes", "70000", "65507"),
        ("chains", "0", "auto or all"),
        ("chains", "atuo", "did you mean auto"),
        ("subgroups", "0", "from 1"),
        ("subgroups", "1.5", "a whole number"),
        ("ttl", "256", "255"),
        ("timeout", "0", "above 0"),
        ("timeout", "1e10", "up to 1000000000"),
        ("timeout", "inf", "above 0"),
        ("timeout", "nan", "above 0"),
        ("entry_timeout", "never", "or inf"),
        ("group", "10.0.0.1", "239.1.2.3"),
        ("group", "224.0.0.251", "from 224.0.1.0 on"),
        ("group", "239.1.2.9-239.1.2.3", "239.1.2.0-239.1.2.15"),
        ("group", "239.1.2.1/28", "239.1.2.0/28"),
        ("group", "ff0e::1", "IPv4"),
        ("group", "239.0.0.0-240.0.0.0", "IPv4 multicast"),
        ("ports", "0-100", "from 1 to 65535"),
        ("ports", "30000-65536", "from 1 to 65535"),
        ("ports", "30010-30000", "30000-30999"),
        ("ports", "30000-", "30000-30999"),
        ("ports", "udp", "auto, or ports"),
        ("progress", "proxi", "did you mean proxy"),
        ("proxy", "my proxy", "letters, digits, dots"),
        ("proxy", "p" * 64, "nothing, or up to 63"),
        ("fault", "los=0.1", "unknown key 'los'"),
        ("fault", "loss=5%", "a number from 0 to 1"),
    ],
)
def test_invalid_values(name: str, text: str, words: str) -> None:
    """A bad value is an error that says which values are valid, with an example."""
    variable = f"MPIMCAST_{name.upper()}"
    with pytest.raises(ConfigError) as caught:
        Config.read({name: text}, {})
    said = str(caught.value)
    assert said.startswith(f"{name}={text} is not valid")
    assert words in said
    example = ast.literal_eval(said.rpartition(f"for example {name}=")[2])
    Config.read({name: example}, {})
    if text:
        with pytest.raises(ConfigError) as caught:
            Config.read({}, {variable: text})
        said = str(caught.value)
        assert said.startswith(f"{variable}={text} is not valid")
        assert words in said
        Config.read({}, {variable: said.rpartition(f"for example {variable}=")[2]})


def test_every_example() -> None:
    """Every setting's example is a valid value other than its default."""
    for option in dataclasses.fields(Config):
        if not option.metadata:
            continue
        example = option.metadata["values"].example
        (given,) = {
            getattr(Config.read({option.name: example}, {}), option.name),
            getattr(
                Config.read({}, {f"MPIMCAST_{option.name.upper()}": str(example)}),
                option.name,
            ),
        }
        assert given != option.default


def test_fault() -> None:
    """The C library checks FAULT, and says why it refuses a value."""
    good = "loss=0.1,dup=0.02,reorder=0.05,seed=99"
    assert Config.read({"fault": good}, {}).fault == good
    with pytest.raises(ConfigError, match=r"fault=loss=2 is not valid .*seed"):
        Config.read({"fault": "loss=2"}, {})


def test_groups_for_subgroups() -> None:
    """A GROUP with fewer groups than SUBGROUPS is an error."""
    assert Config.read({"group": "239.1.2.0/30", "subgroups": 4}, {}).group.count == 4
    with pytest.raises(ConfigError, match=r"SUBGROUPS=4 .* GROUP=239.1.2.3 has 1: "):
        Config.read({"group": "239.1.2.3", "subgroups": 4}, {})


def test_names_of_proxies() -> None:
    """Without PROXY a proxy has the number of the user, and not every rank has one."""
    assert Config.read({"progress": "proxy"}, {}).proxy_name == str(os.geteuid())
    named = Config.read({"progress": "proxy", "proxy": "seven"}, {})
    assert (named.proxy_name, named.has_proxy) == ("seven", True)
    assert not Config.read({"proxy": "seven"}, {}).has_proxy
    for word in ("auto", "poll", "event"):
        assert not Config.read({"progress": word}, {}).has_proxy


def test_the_longest_name_fits_into_c() -> None:
    """A name that is valid has room in the C library's structures."""
    assert PROXY_NAME_MAX == NAME_BYTES_MAX


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"progress_thread": "off"}, r"PROGRESS_THREAD=off wants .* leave out one"),
        ({"trace": "traces"}, r"TRACE=traces traces .* leave out one"),
    ],
)
def test_what_a_proxy_excludes(settings: dict[str, object], words: str) -> None:
    """Settings that need this process's own engine are refused beside a proxy."""
    with pytest.raises(ConfigError, match=words):
        Config.read({"progress": "proxy", **settings}, {})
    Config.read(settings, {})


def test_draws_from_ranges() -> None:
    """Random groups and ports cover their range; after the last port comes the first.

    A draw of several groups returns the first of consecutive groups within the range.
    """
    groups = Groups.parse("239.1.2.3-239.1.2.6")
    drawn = {groups.draw(3) for _ in range(200)}  # three of the four groups
    assert drawn == {groups.first, groups.first + 1}
    ports = Ports(30000, 30002)
    assert {ports.draw() for _ in range(200)} == {30000, 30001, 30002}
    assert [ports.after(port) for port in range(30000, 30003)] == [30001, 30002, 30000]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("group", "239.1.2.3"),
        ("group", "239.1.2.0-239.1.2.15"),
        ("ports", "30000"),
        ("ports", "30000-30999"),
        ("ports", "auto"),
    ],
)
def test_ranges_are_shown_as_they_are_read(name: str, text: str) -> None:
    """A range is shown as it was written: ranks compare it, and users copy it."""
    config = Config.read({name: text}, {})
    assert config.agreed()[name.upper()] == text
    assert Config.read({name: str(config.agreed()[name.upper()])}, {}) == config


@pytest.mark.parametrize(
    ("given", "meant"),
    [("min_byte", "min_bytes"), ("TTL", "ttl"), ("transpor", "transport")],
)
def test_misspelt_keywords(given: str, meant: str) -> None:
    """A misspelt keyword is an error that suggests the nearest name and lists all."""
    words = (
        rf"there is no such setting: {given} \(did you mean {meant}\?\); "
        ".*, subgroups, "
    )
    with pytest.raises(ConfigError, match=words):
        Config.read({given: 1}, {})


def test_keyword_unlike_any() -> None:
    """The error about an unknown keyword suggests no name if none is similar."""
    with pytest.raises(
        ConfigError, match=r"there is no such setting: xyzzy; the settings are"
    ):
        Config.read({"xyzzy": 1}, {})


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("MPIMCAST_TRANSPROT", "did you mean MPIMCAST_TRANSPORT?"),
        ("MPIMCAST_ttl", "did you mean MPIMCAST_TTL?"),
        ("mpimcast_log", "did you mean MPIMCAST_LOG?"),
        ("MPIMCAST_MINBYTES", "did you mean MPIMCAST_MIN_BYTES?"),
        ("MPIMCAST_LOG_LEVEL", "did you mean MPIMCAST_LOG?"),
        ("MPICAST_TRANSPORT", "did you mean MPIMCAST_TRANSPORT?"),
        ("MPIMCAST_XYZZY", "lists the settings"),
    ],
)
def test_misspelt_variables(variable: str, meant: str) -> None:
    """A misspelt variable is reported as ignored, with the nearest name."""
    (sentence,) = ignored_variables({variable: "udp", "MPIMCAST_TTL": "2"})
    assert sentence.startswith(f"{variable}=udp is ignored: there is no such setting; ")
    assert sentence.endswith(meant)


@pytest.mark.parametrize(
    "variable",
    [
        *("MPIMCAST_TEST_SEED", "MPI4PY_RC_THREADS", "MPIR_CVAR_POLLS_BEFORE_YIELD"),
        *("TRANSPORT", "MPI_TRANSPORT", "MPICH_ASYNC_PROGRESS"),
    ],
)
def test_variables_of_others(variable: str) -> None:
    """Variables of the tests and of other libraries are not reported as misspelt."""
    assert ignored_variables({variable: "1"}) == []


def test_empty_misspelt_variable() -> None:
    """A misspelt variable that is empty counts as not set, so it is not reported."""
    assert ignored_variables({"MPIMCAST_TRANSPROT": ""}) == []


def test_listing() -> None:
    """Every setting is listed with its meaning, and its value is valid JSON."""
    settings = Config.read({"chains": "all"}, {}).settings()
    assert [each.name for each in settings] == NAMES.split()
    assert all(each.doc for each in settings)
    values = {each.name: each.value for each in settings}
    assert values["CHAINS"] == "all"
    assert values["ENTRY_TIMEOUT"] == "inf"
    json.dumps(values, allow_nan=False)


def test_what_ranks_agree_on() -> None:
    """Ranks must have equal settings, except those of one machine or one process."""
    local = {"NET_DEVICES", "PROGRESS", "PROXY", "WARN_AFTER", "LOG"}
    assert set(Config().agreed()) == set(NAMES.split()) - local


def test_frozen() -> None:
    """Settings are read-only, since ranks have agreed on them."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().ttl = 3  # type: ignore[misc]
