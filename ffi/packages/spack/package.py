# SPDX-License-Identifier: BSD-3-Clause
"""The package for Spack: ``packages/py_mpimcast/package.py`` of a repository.

Not tested: it follows the documentation of Spack 1, but no Spack has read it. There is
no release to fetch yet, so a version is a checkout: `spack develop`.
"""

from spack.package import depends_on, license, maintainers, variant, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyMpimcast(PythonPackage):
    """MPI collectives over multicast: a drop-in mpi4py communicator."""

    license("BSD-3-Clause")
    maintainers()

    version("0.1.0")

    variant("verbs", default=True, description="RDMA, by libraries opened at run time")
    variant(
        "protect", default=True, description="PROTECT, by libcrypto opened at run time"
    )

    depends_on("c", type="build")
    depends_on("cmake@3.26:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-scikit-build-core@0.11:", type="build")
    depends_on("py-cffi@1.15:", type=("build", "run"))
    depends_on("py-mpi4py@4:", type="run")
    depends_on("py-numpy@1.24:", type="run")
    depends_on("py-rich@13:", type="run")
    # The build needs its headers. At run time the module's search path leads to its
    # libraries.
    depends_on("rdma-core@32:", type=("build", "run"), when="+verbs")

    # Its libcrypto is opened at run time, and no header is needed.
    depends_on("openssl@3:", type="run", when="+protect")

    def config_settings(self, spec, prefix):
        """Tell CMake whether there is RDMA, whatever headers the system has."""
        found = "ON" if spec.satisfies("+verbs") else "OFF"
        return {"cmake.define.MPIMCAST_HAS_VERBS": found}
