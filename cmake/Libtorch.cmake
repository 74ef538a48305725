# Finds libtorch in the torch wheel that scripts/setup unpacked, without find_package(Torch): that
# one stops on a CUDA wheel when there is no CUDA toolkit (docs/decisions/0001-build.md).
#
# Defines kvsweep::torch: the CPU part only (libtorch_cpu, libc10), so a binary that links it runs
# where there is no driver. Also sets KVSWEEP_TORCH_VERSION, such as 2.11.0.
include_guard(GLOBAL)

set(KVSWEEP_DEPS_DIR ${PROJECT_SOURCE_DIR}/.deps CACHE PATH
    "Where scripts/setup unpacked the wheels")

set(_python ${KVSWEEP_DEPS_DIR}/python)
set(_torch ${_python}/torch)
set(_cuda_libs ${_python}/nvidia/cu13/lib)

set(_needed
  ${_torch}/lib/libtorch_cpu.so
  ${_torch}/lib/libc10.so
  ${_torch}/lib/libgomp.so.1
  ${_cuda_libs}/libcudart.so.13
  ${_cuda_libs}/libcupti.so.13)

foreach(_file IN LISTS _needed ITEMS ${_torch}/include/ATen/core/Tensor.h ${_torch}/version.py)
  if(NOT EXISTS ${_file})
    message(FATAL_ERROR "libtorch: ${_file} is missing. Run scripts/setup, or point "
            "KVSWEEP_DEPS_DIR at the folder it filled, or set KVSWEEP_WORKER=OFF.")
  endif()
endforeach()

file(STRINGS ${_torch}/version.py _version REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" KVSWEEP_TORCH_VERSION "${_version}")

# The wheel and the Debian libraries must agree on the layout of std::string.
file(STRINGS ${_torch}/lib/libc10.so _cxx11 LIMIT_COUNT 1 REGEX "__cxx11")
if(NOT _cxx11)
  message(FATAL_ERROR "libtorch: ${_torch}/lib/libc10.so was built with the old C++ ABI and cannot "
          "be linked with this system's libraries. Run scripts/setup to get the pinned wheel.")
endif()

# The wheel's include folder also holds other projects' headers, fmt 12 among them, which would win
# over the system's fmt 9 that we link. Only what ATen needs is made visible, in one place for all
# build folders, so that they share the compiler cache. Relative links: they hold wherever .deps is
# seen from, and two checkouts that share it write the same.
set(_include ${KVSWEEP_DEPS_DIR}/libtorch-include)
file(MAKE_DIRECTORY ${_include})
foreach(_folder IN ITEMS ATen c10 torch)
  if(NOT EXISTS ${_include}/${_folder})  # making it anew would pull it from under other builds
    file(CREATE_LINK ../python/torch/include/${_folder} ${_include}/${_folder} SYMBOLIC)
  endif()
endforeach()

add_library(kvsweep_c10 SHARED IMPORTED GLOBAL)
set_target_properties(kvsweep_c10 PROPERTIES
  IMPORTED_LOCATION ${_torch}/lib/libc10.so
  IMPORTED_SONAME libc10.so)

# The wheel's own OpenMP, not the compiler's: one process must not have two thread pools.
add_library(kvsweep_gomp SHARED IMPORTED GLOBAL)
set_target_properties(kvsweep_gomp PROPERTIES
  IMPORTED_LOCATION ${_torch}/lib/libgomp.so.1
  IMPORTED_SONAME libgomp.so.1)

add_library(kvsweep_torch SHARED IMPORTED GLOBAL)
add_library(kvsweep::torch ALIAS kvsweep_torch)
set_target_properties(kvsweep_torch PROPERTIES
  IMPORTED_LOCATION ${_torch}/lib/libtorch_cpu.so
  IMPORTED_SONAME libtorch_cpu.so
  # Imported targets are SYSTEM includes: our warnings do not apply to ATen.
  INTERFACE_INCLUDE_DIRECTORIES ${_include}
  INTERFACE_COMPILE_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=1
  INTERFACE_LINK_LIBRARIES "kvsweep_c10;kvsweep_gomp"
  # libtorch_cpu finds libcudart and libcupti by its own run path; the linker need not.
  INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined")

message(STATUS "libtorch ${KVSWEEP_TORCH_VERSION}: ${_torch}")
