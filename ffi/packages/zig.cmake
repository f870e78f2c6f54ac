# SPDX-License-Identifier: BSD-3-Clause
#
# A toolchain for wheels. It builds for the processor MPIMCAST_MACHINE (x86_64 or
# aarch64) and for the glibc of RHEL 8 or later, whatever glibc this machine has: zig's C
# compiler contains the headers and stubs of every glibc. MPIMCAST_PYTHON is a Python that
# has the package ziglang; MPIMCAST_HEADERS is a folder with the other headers needed.
#
# CMAKE_SYSTEM_NAME is not set: if CMake knew that this is a cross build, it would not run
# Python to find Python's headers.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MPIMCAST_MACHINE MPIMCAST_PYTHON MPIMCAST_HEADERS)
set(CMAKE_C_COMPILER "${MPIMCAST_PYTHON}" -m ziglang cc
                     -target "${MPIMCAST_MACHINE}-linux-gnu.2.28"
                     -isystem "${MPIMCAST_HEADERS}")
# Strips symbols at linking, since this machine's `strip`, which an installation would
# call, may not know the other machine's files.
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-s")
