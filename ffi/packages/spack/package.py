# SPDX-License-Identifier: BSD-3-Clause
"""For Spack, as ``packages/py_mpimcast/package.py`` of a repository.

Not tried: written after the documentation of Spack 1, which has never read it. There is
no release to fetch yet either, so a version is a checkout: `spack develop`.
"""

from spack.package import depends_on, license, maintainers, variant, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyMpimcast(PythonPackage):
    """MPI collectives over multicast: a drop-in mpi4py communicator."""

    license("BSD-3-Clause")
    maintainers()

    version("0.1.0")

    variant("verbs", default=True, description="RDMA, by libraries opened at run time")

    depends_on("c", type="build")
    depends_on("cmake@3.26:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-scikit-build-core@0.11:", type="build")
    depends_on("py-cffi@1.15:", type=("build", "run"))
    depends_on("py-mpi4py@4:", type="run")
    depends_on("py-numpy@1.24:", type="run")
    depends_on("py-rich@13:", type="run")
    # Its headers at build time; at run time its libraries, by the module's search path.
    depends_on("rdma-core@32:", type=("build", "run"), when="+verbs")

    def config_settings(self, spec, prefix):
        """Tell CMake whether there is RDMA, whatever headers the system has."""
        found = "ON" if spec.satisfies("+verbs") else "OFF"
        return {"cmake.define.MPIMCAST_HAS_VERBS": found}
