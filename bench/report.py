# SPDX-License-Identifier: BSD-3-Clause
"""Write a page on the measurements in a folder: ``python -m bench.report DIR``.

The folder is from ``make bench`` or a batch job. The page contains its pictures, and is
made from the measurements alone. ``--markdown`` prints one of the page's tables
instead, for a README.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.cells import report as cells_report
from bench.cells import summary
from bench.jobs.measurement import read
from bench.scaling import report as scaling_report
from bench.scaling.results import RESULTS

_TABLES = {
    "goals": cells_report.goals_table,
    "largest": cells_report.largest_table,
}


def main() -> None:
    """Write the page, or print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument(
        "folder", type=Path, help="the folder of `make bench` or of a batch job"
    )
    parser.add_argument(
        "--markdown",
        choices=_TABLES,
        help="print this table alone: the goals, or each scenario's largest blocks",
    )
    options = parser.parse_args()
    if options.markdown:
        measurements = read(sorted(options.folder.glob("*.jsonl")))
        table = _TABLES[options.markdown]
        print("\n".join(table(summary.summarise(measurements))))
    elif (options.folder / RESULTS).exists():
        print(scaling_report.write(options.folder))
    else:
        print(cells_report.write(options.folder))


if __name__ == "__main__":
    main()
