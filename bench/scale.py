# SPDX-License-Identifier: BSD-3-Clause
"""Study how the protocol scales, on simulated fabrics: ``python -m bench.scale``.

Every number is an integer that depends on nothing but the code: the study gives the
same results on any machine, which ``--check`` proves.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

from bench.study import page
from bench.study.case import Case, Numbers, Question

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results/scale"

QUESTIONS = (
    *("traffic", "times", "overlap", "choices", "chains"),
    *("losses", "codes", "tails", "forecasts", "broadcasts", "groups", "limits"),
)


def question(name: str) -> Question:
    """Return the module that answers a question."""
    return import_module(f"bench.study.{name}")


def measure(name: str, case: Case) -> Numbers:
    """Measure one case of a question."""
    return question(name).measure(*case.arguments)


def measure_all(
    names: Iterable[str], nprocesses: int, *, quick: bool
) -> dict[str, dict[str, Numbers]]:
    """Measure the cases of questions side by side, and tell how far it is."""
    wanted = [
        (name, case)
        for name in names
        for case in question(name).cases()
        if case.quick or not quick
    ]
    found: dict[str, dict[str, Numbers]] = {}
    with ProcessPoolExecutor(nprocesses) as pool:
        futures = [pool.submit(measure, *each) for each in wanted]
        for number, ((name, case), future) in enumerate(
            zip(wanted, futures, strict=True), 1
        ):
            found.setdefault(name, {})[case.name] = future.result()
            print(f"{number}/{len(wanted)} {name}: {case.name}", file=sys.stderr)
    return found


def read(folder: Path) -> dict[str, dict[str, Numbers]]:
    """Read the results that a folder has."""
    path = folder / "results.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(folder: Path, found: dict[str, dict[str, Numbers]]) -> None:
    """Write results, and the page about them, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    chapters = [
        question(name).chapter(found[name], folder)
        for name in QUESTIONS
        if name in found
    ]
    page.write(folder, chapters)


def differing(
    found: dict[str, dict[str, Numbers]], kept: dict[str, dict[str, Numbers]]
) -> list[str]:
    """Return the cases whose numbers are not those that were kept."""
    return [
        f"{name}: {case}"
        for name, numbers in found.items()
        for case, each in numbers.items()
        if kept.get(name, {}).get(case) != each
    ]


def main() -> int:
    """Study, or check that the study gives what it gave."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="default: all")
    parser.add_argument(
        "--quick", action="store_true", help="check the quick cases alone"
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with the results in the folder"
    )
    parser.add_argument(
        "--page", action="store_true", help="write the page again, from the results"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=RESULTS)
    options = parser.parse_args()
    names = options.questions or QUESTIONS
    if unknown := set(names) - set(QUESTIONS):
        parser.error(f"{', '.join(unknown)}: the questions are {', '.join(QUESTIONS)}")
    if options.quick and not options.check:
        parser.error("--quick is for --check: the page needs all cases")
    kept = read(options.folder)
    if options.page:
        write(options.folder, kept)
        return 0
    found = measure_all(names, options.processes, quick=options.quick)
    if options.check:
        different = differing(found, kept)
        print("\n".join(different) or "every number is the same")
        return 1 if different else 0
    write(
        options.folder,
        {name: (kept | found)[name] for name in QUESTIONS if name in kept | found},
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
