# SPDX-License-Identifier: BSD-3-Clause
#
# The compiler for a bare rv64 processor, with the extensions that the cores of SmartNICs
# have: no floating point, but byte swaps and single bits (Zbb, Zbs).
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR rv64)
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_ASM_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
string(CONCAT flags "-march=rv64imac_zicsr_zbb_zbs -mabi=lp64 -mcmodel=medany "
                    "-ffreestanding -ffunction-sections -fdata-sections")
set(CMAKE_C_FLAGS_INIT "${flags}")
set(CMAKE_ASM_FLAGS_INIT "${flags}")
