# SPDX-License-Identifier: BSD-3-Clause
"""The scale study's quick cases give here, too, the numbers that are kept."""

from __future__ import annotations

import json

import pytest

from bench import scale

QUICK = [
    pytest.param(name, case, id=f"{name}: {case.name}")
    for name in scale.QUESTIONS
    for case in scale.question(name).cases()
    if case.quick
]


@pytest.mark.parametrize(("name", "case"), QUICK)
def test_numbers(name: str, case: scale.Case) -> None:
    """The same integers come out on every machine."""
    kept = json.loads((scale.RESULTS / "results.json").read_text(encoding="utf-8"))
    assert scale.measure(name, case) == kept[name][case.name]
