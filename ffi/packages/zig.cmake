# SPDX-License-Identifier: BSD-3-Clause
#
# A toolchain that builds for MPIMCAST_MACHINE, x86_64 or aarch64, with the glibc of
# RHEL 8 or later, whatever this machine has: zig's C compiler brings the stubs and the
# headers of each glibc along. MPIMCAST_PYTHON has the package ziglang, MPIMCAST_HEADERS
# is a folder with those headers that zig has not. CMAKE_SYSTEM_NAME is left alone: what
# CMake knows to be a cross build may not ask Python where its headers are.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MPIMCAST_MACHINE MPIMCAST_PYTHON MPIMCAST_HEADERS)
set(CMAKE_C_COMPILER "${MPIMCAST_PYTHON}" -m ziglang cc
                     -target "${MPIMCAST_MACHINE}-linux-gnu.2.28"
                     -isystem "${MPIMCAST_HEADERS}")
# Here rather than at installation, where this machine's strip knows no other's files.
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-s")
