# SPDX-License-Identifier: BSD-3-Clause
"""The conda recipe, built from the checkout.

Tests may run where conda-forge cannot be reached. So a channel of stand-ins has the
packages that the recipe names; its Python is this environment's.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import skip_or_fail

COMPILER = ("gcc_linux-64", "sysroot_linux-64")
TOOLS = ("cmake", "ninja", "pip", "cffi", "scikit-build-core", "rdma-core")
LIBRARIES = ("mpi4py", "numpy", "rich")
VERSION = "99"  # new enough for any requirement

# A virtual environment that also has this environment's packages.
PYTHON = """
packages=$PREFIX/lib/python{version}/site-packages
mkdir -p "$PREFIX/bin" "$packages"
ln -s '{program}' "$PREFIX/bin/python"
echo 'home = {program.parent}' >"$PREFIX/pyvenv.cfg"
echo '{packages}' >"$packages/stand-in.pth"
"""


def stand_ins(channel: Path) -> None:
    """Fill a channel with packages of the names that the recipe asks for."""
    from rattler_build import Stage0Recipe

    def build(name: str, version: str, how: Mapping[str, object]) -> None:
        parts = {"package": {"name": name, "version": version}, "build": how}
        recipe = Stage0Recipe.from_dict(parts)
        recipe.run_build(output_dir=channel, channels=[channel.as_uri()])

    script = PYTHON.format(
        version=sysconfig.get_python_version(),
        program=Path(sys.executable).resolve(),
        packages=sysconfig.get_path("purelib"),
    )
    channel.mkdir()
    version = ".".join(map(str, sys.version_info[:3]))
    unmoved = {"binary_relocation": False}
    build("python", version, {"script": script, "dynamic_linking": unmoved})
    for name in (*COMPILER, *TOOLS, *LIBRARIES):
        known = "2.28" if name.startswith("sysroot") else VERSION
        build(name, known, {"noarch": "generic"})


@pytest.mark.long
@pytest.mark.timeout(600)
def test_recipe(tree: Path, tmp_path: Path) -> None:
    """The recipe builds, its tests pass, and it requires only what mpimcast needs."""
    try:
        from rattler_build import Package, Stage0Recipe, VariantConfig
    except ImportError:
        skip_or_fail("py-rattler-build is not installed")
    stand_ins(tmp_path / "channel")
    channels = [(tmp_path / "channel").as_uri()]
    folder = tree / "ffi/packages/conda"
    recipe = Stage0Recipe.from_file(folder / "recipe.yaml")
    variants = VariantConfig.from_file(folder / "variants.yaml")
    (built,) = recipe.run_build(
        variants, output_dir=tmp_path / "built", channels=channels
    )
    package = Package.from_file(built.packages[0])
    needed = {each.split()[0] for each in package.depends}
    assert needed == {"python", "cffi", "mpi4py", "numpy", "rich"}
    assert list(package.constrains) == ["openssl >=3"]
    modules = [name for name in map(str, package.files) if name.endswith(".so")]
    assert {Path(name).name for name in modules} == {"_core.abi3.so", "_small.abi3.so"}
    results = package.run_tests(channel=channels)
    assert [result.success for result in results] == [True, True], results
