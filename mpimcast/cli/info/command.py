# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast info``: what was built and found here, and what a job would use.

It lists the transports with the reason why one cannot be used, what a firewall has to
let through, RDMA devices, and every setting with its value, source and meaning. A
report of a problem should contain its output.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import textwrap
from importlib import metadata
from typing import Any

from mpimcast import __version__
from mpimcast._mpi.library import LibraryError, library_name, load
from mpimcast._native import segment
from mpimcast._settings.config import Config
from mpimcast._settings.ignored import ignored_variables
from mpimcast.cli import commands
from mpimcast.cli.info import firewall
from mpimcast.cli.info.counters import COUNTERS
from mpimcast.errors import ConfigError, TransportError

_PLACES = ("one host", "network")
_JOBS = {"one host": "one host", "network": "several hosts"}


def main(argv: list[str]) -> int:
    """Print the report; return 1 if the settings are bad."""
    parser = commands.parser("info", __doc__)
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument(
        "--counters",
        action="store_true",
        help="list instead the counters of Intracomm.stats(), with units and meanings",
    )
    options = parser.parse_args(argv)
    if options.counters:
        _print_counters()
        return 0
    try:
        report = gather(Config.read({}))
    except ConfigError as error:
        print(f"mpimcast: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0


def gather(config: Config) -> dict[str, Any]:
    """Collect the report, fit for JSON, without initialising MPI."""
    mpi = _mpi()
    try:
        from mpimcast._native import core
        from mpimcast.cli.info import codes, rdma
    except ImportError as error:
        why = f"mpimcast's C library cannot be loaded: {error}"
        wire_version = None
        interfaces = {place: {"reason": why} for place in _PLACES}
        found = {"reason": why}
        verbs = {"name": "verbs", "usable": False, "reason": why}
        shm = {"name": "shm", "usable": False, "reason": why}
        protecting = {"libraries": {}, "missing": {"all": why}}
        coding = {"codec": None, "reason": why}
        runner = None
    else:
        wire_version = core.wire_version()
        interfaces = {place: _interface(config, place) for place in _PLACES}
        found = rdma.gather(config)
        verbs = _verbs(config)
        shm = _shm(config)
        protecting = _protecting()
        coding = codes.gather()
        runner = _runner(config)
    transports = [shm, verbs, _udp(interfaces), mpi]
    # Whatever carries the data, ranks find each other by the MPI library.
    usable = [each["name"] for each in transports if each["usable"] and mpi["usable"]]
    return {
        "version": __version__,
        "built": {"wire_version": wire_version, "udp": wire_version is not None},
        "found": {
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "mpi4py": _version("mpi4py"),
            "mpi": mpi["reason"] if mpi["usable"] else None,
            "interfaces": interfaces,
            "rdma": found,
            "protection": protecting,
            "erasure_codes": coding,
        },
        "transports": transports,
        "firewall": firewall.passage(config),
        "chosen": {place: _chosen(config, place, usable) for place in _PLACES},
        "runner": runner,
        "settings": [setting._asdict() for setting in config.settings()],
        "ignored": ignored_variables(),
    }


def _chosen(config: Config, place: str, usable: list[str]) -> str | None:
    """Return the transport of a job at that place; None if it can use none."""
    if place == "network":
        names = [name for name in config.transports if name != "shm"]
    elif config.transport == "auto":
        names = ["shm", "mpi"]
    else:
        names = list(config.transports)
    return next((name for name in names if name in usable), None)


def _runner(config: Config) -> str:
    """Return what would run a rank's operations over a network."""
    from mpimcast._native import proxy

    if not config.has_proxy:
        return "host"
    name = config.proxy_name
    try:
        found = proxy.find(name)
    except TransportError as error:
        return f"proxy {name} ({error})"
    return str(found or f"proxy {name} (to be started by a rank)")


def _protecting() -> dict[str, Any]:
    """Return what PROTECT can use, by kind, and why it cannot use the rest."""
    from mpimcast._native import protection

    missing = protection.missing()
    return {
        "libraries": {
            each: protection.name(each) for each, why in missing.items() if not why
        },
        "missing": {protection.name(each): why for each, why in missing.items() if why},
    }


def _print_protection(found: dict[str, Any], wanted: str) -> None:
    print(f"\nprotection of datagrams (PROTECT={wanted})")
    for name in found["libraries"].values():
        print(f"  {name}: usable")
    for name, why in found["missing"].items():
        print(f"  {name}: not usable; {why}")


def _print_codes(found: dict[str, Any]) -> None:
    if found["codec"] == "ISA-L":
        print("\nerasure codes: computed by ISA-L")
    else:
        print(f"\nerasure codes: computed without ISA-L; {found['reason']}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _interface(config: Config, place: str) -> dict[str, Any]:
    """Return the interface that would be used, or the reason why there is none."""
    from mpimcast._native import devices

    same_host = place == "one host"
    try:
        found = devices.find_interface(config, same_host=same_host)
    except TransportError as error:
        return {"reason": str(error)}
    return {
        "name": found.name,
        "address": str(found.address.ip),
        "chunk_bytes": found.chunk_bytes_max,
    }


def _verbs(config: Config) -> dict[str, Any]:
    """Return the port for this host's first rank, or the reason why there is none."""
    from mpimcast._native import devices

    try:
        found = devices.find_device(config, 0)
    except TransportError as error:
        return {"name": "verbs", "usable": False, "reason": str(error)}
    reason = (
        f"{found.name}:{found.port}, GID {found.gid_index} ({found.gid}), chunks of "
        f"{found.chunk_bytes_max} bytes"
    )
    return {"name": "verbs", "usable": True, "reason": reason}


def _shm(config: Config) -> dict[str, Any]:
    """Return whether the ranks of this host can share memory, and how much."""
    if config.node_bytes == 0:
        return {"name": "shm", "usable": False, "reason": "NODE_BYTES=0"}
    try:
        os.close(segment.create(config.node_bytes))
    except TransportError as error:
        return {"name": "shm", "usable": False, "reason": str(error)}
    reason = f"{config.node_bytes} bytes for each set of processes"
    return {"name": "shm", "usable": True, "reason": reason}


def _udp(interfaces: dict[str, dict[str, Any]]) -> dict[str, Any]:
    reasons = [
        f"{place}: {each['reason']}"
        if "reason" in each
        else f"{place}: {each['name']} ({each['address']}), "
        f"chunks of {each['chunk_bytes']} bytes"
        for place, each in interfaces.items()
    ]
    usable = any("name" in each for each in interfaces.values())
    return {"name": "udp", "usable": usable, "reason": "; ".join(reasons)}


def _mpi() -> dict[str, Any]:
    try:
        import mpi4py
    except ImportError:
        pass
    else:
        mpi4py.rc.initialize = False
    try:
        load()
        name = library_name()
    except LibraryError as error:
        return {"name": "mpi", "usable": False, "reason": str(error)}
    return {"name": "mpi", "usable": True, "reason": name}


def _print(report: dict[str, Any]) -> None:
    found = report["found"]
    wire_version = report["built"]["wire_version"]
    print(f"mpimcast {report['version']}, wire version {wire_version}")
    print(f"  Python {found['python']}, mpi4py {found['mpi4py']}, {found['system']}")
    print("\ntransports")
    for each in report["transports"]:
        usable = "usable" if each["usable"] else "not usable"
        print(f"  {each['name']}: {usable}; {each['reason']}")
    if found["mpi"] is None:
        print("  no job can run without an MPI library, whatever the transport")
    else:
        for place, name in report["chosen"].items():
            used = f"uses {name}" if name else "can use none of these, and fails"
            print(f"  a job on {_JOBS[place]} {used}")
    if report["runner"] is not None:
        print(f"  over udp and verbs operations are run by {report['runner']}")
    said = f"udp: {firewall.sentence(report['firewall'])}"
    print(textwrap.fill(said, 80, initial_indent="  ", subsequent_indent="  "))
    _print_rdma(found["rdma"])
    wanted = {each["name"]: each["value"] for each in report["settings"]}
    _print_protection(found["protection"], wanted["PROTECT"])
    _print_codes(found["erasure_codes"])
    print("\nsettings (variables MPIMCAST_...)")
    for setting in report["settings"]:
        value = setting["value"] if setting["value"] != "" else "(empty)"
        print(f"  {setting['name']} = {value} ({setting['source']})")
        print(textwrap.indent(textwrap.fill(setting["doc"], 80), " " * 6))
    for sentence in report["ignored"]:
        print(f"\nwarning: {sentence}")


def _print_counters() -> None:
    for name, counter in COUNTERS.items():
        print(f"{name} ({counter.unit})")
        print(textwrap.indent(textwrap.fill(counter.meaning, 76), " " * 4))


def _print_rdma(found: dict[str, Any]) -> None:
    if "reason" in found:
        print(f"\nRDMA devices: {found['reason']}")
        return
    print(f"\nRDMA devices (by {found['source']})")
    for port in found["ports"]:
        if "reason" in port:
            print(f"  {port['device']}: {port['reason']}")
            continue
        print(
            f"  {port['device']}:{port['port']} {port['state']}, {port['link_layer']}, "
            f"MTU {port['mtu_bytes']}, {port['groups_max']} groups of "
            f"{port['group_members_max']} queue pairs"
        )
        for index, gid in port["gids"].items():
            print(f"    GID {index}: {gid}")
