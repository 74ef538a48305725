# Builds worker/rust (tokenizers, chat templates, safetensors) with cargo into the static library
# kvsweep::rust. One library for all Rust code: two would clash on Rust's own symbols.
#
# Cargo's target folder is shared by all build folders (KVSWEEP_RUST_TARGET_DIR), because the crates
# take minutes to compile and do not depend on the preset.
include_guard(GLOBAL)

set(KVSWEEP_RUST_TARGET_DIR ${PROJECT_SOURCE_DIR}/build/rust CACHE PATH
    "Cargo's target folder, shared by the presets")
set(KVSWEEP_CARGO_MINIMUM 1.85)

find_program(KVSWEEP_CARGO NAMES cargo HINTS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin)
if(NOT KVSWEEP_CARGO)
  message(FATAL_ERROR "cargo not found. Run scripts/setup, or set KVSWEEP_WORKER=OFF.")
endif()
execute_process(COMMAND ${KVSWEEP_CARGO} --version OUTPUT_VARIABLE _cargo_version
                WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" _cargo_version "${_cargo_version}")
if(_cargo_version VERSION_LESS KVSWEEP_CARGO_MINIMUM)
  message(FATAL_ERROR "${KVSWEEP_CARGO} is version ${_cargo_version}; ${KVSWEEP_CARGO_MINIMUM} or "
          "newer is needed. Run scripts/setup, or set KVSWEEP_CARGO to a newer cargo.")
endif()

set(_crate ${PROJECT_SOURCE_DIR}/worker/rust)
set(_target_dir ${KVSWEEP_RUST_TARGET_DIR})
set(_built ${_target_dir}/release/libkvsweep_rs.a)
set(_rust_environment)
set(_rust_arguments)

# The fuzzers see into Rust code: the pass that clang's -fsanitize=fuzzer-no-link runs is part of
# rustc's LLVM too, and what it emits is what clang 14's libFuzzer reads. The C code among the crates
# (the regular expressions of tokenizers) gets the sanitizers as well. `--target` keeps the flags from
# build scripts and procedural macros, which have no fuzzer to link with.
if(KVSWEEP_FUZZ)
  set(_triple x86_64-unknown-linux-gnu)
  set(_target_dir ${PROJECT_BINARY_DIR}/cargo)
  set(_built ${_target_dir}/${_triple}/release/libkvsweep_rs.a)
  set(_rust_arguments --target ${_triple})
  set(_coverage -Cpasses=sancov-module)
  foreach(_option IN ITEMS level=3 inline-8bit-counters pc-table trace-compares)
    string(APPEND _coverage " -Cllvm-args=-sanitizer-coverage-${_option}")
  endforeach()
  string(REPLACE "clang++" "clang" _clang ${CMAKE_CXX_COMPILER})
  string(REPLACE "-" "_" _cc_triple ${_triple})
  set(_rust_environment RUSTFLAGS=${_coverage} CC_${_cc_triple}=${_clang}
    "CFLAGS_${_cc_triple}=${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
endif()

# A copy per build folder: its time stamp tells this folder's ninja whether to link again.
set(_library ${PROJECT_BINARY_DIR}/rust/libkvsweep_rs.a)
file(GLOB_RECURSE _sources CONFIGURE_DEPENDS ${_crate}/src/*.rs)

add_custom_command(
  OUTPUT ${_library}
  COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${_target_dir} ${_rust_environment}
          ${KVSWEEP_CARGO} build --release --locked --quiet --manifest-path ${_crate}/Cargo.toml
          ${_rust_arguments}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/rust
  COMMAND ${CMAKE_COMMAND} -E copy ${_built} ${_library}
  DEPENDS ${_sources} ${_crate}/Cargo.toml ${_crate}/Cargo.lock
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  COMMENT "Building the Rust library (minutes the first time)"
  VERBATIM)
add_custom_target(kvsweep_rust_build DEPENDS ${_library})

add_library(kvsweep_rust STATIC IMPORTED GLOBAL)
add_library(kvsweep::rust ALIAS kvsweep_rust)
add_dependencies(kvsweep_rust kvsweep_rust_build)
set_target_properties(kvsweep_rust PROPERTIES
  IMPORTED_LOCATION ${_library}
  INTERFACE_INCLUDE_DIRECTORIES ${_crate}
  INTERFACE_LINK_LIBRARIES "-lgcc_s;-lutil;-lrt;-lpthread;-lm;-ldl;-lc")

message(STATUS "cargo ${_cargo_version}: ${KVSWEEP_CARGO}")
