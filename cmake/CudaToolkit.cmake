# Enables CUDA with the toolkit that `scripts/setup --cuda` unpacked and repaired in .deps/cuda, or
# with the one that CUDACXX or CMAKE_CUDA_COMPILER names. Included only when KVSWEEP_CUDA is on, and
# from the top level, because enable_language is.
#
# Kernels are C++17 (CMake 3.25 silently drops CUDA_STANDARD 20 for this nvcc) and link the static
# runtime, so a binary with kernels starts on a machine without a driver.
include_guard(GLOBAL)

set(KVSWEEP_DEPS_DIR ${PROJECT_SOURCE_DIR}/.deps CACHE PATH
    "Where scripts/setup unpacked the wheels")
set(_toolkit ${KVSWEEP_DEPS_DIR}/cuda)

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  if(NOT EXISTS ${_toolkit}/bin/nvcc)
    message(FATAL_ERROR "CUDA: ${_toolkit}/bin/nvcc is missing. Run scripts/setup --cuda, or set "
            "CUDACXX to an nvcc of version 13, or KVSWEEP_CUDA=OFF.")
  endif()
  set(CMAKE_CUDA_COMPILER ${_toolkit}/bin/nvcc CACHE FILEPATH "nvcc")
  set(CUDAToolkit_ROOT ${_toolkit} CACHE PATH "CUDA toolkit")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real CACHE STRING "CUDA architectures")
endif()

set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
enable_language(CUDA)
find_package(CUDAToolkit 13 REQUIRED)
