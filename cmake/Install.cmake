# `cmake --install build/release --prefix DIR`: a tree that may be moved and copied to other
# machines: bin/ with the programs, lib/ with every shared library they need except those of the C
# and C++ runtime, which must be Debian 12's or newer.
include_guard(GLOBAL)

set(_programs)
foreach(_program kvsweep kvsweep-worker)
  if(TARGET ${_program})
    list(APPEND _programs ${_program})
  endif()
endforeach()

if(_programs)
  # An old-style run path, not RUNPATH: it also holds for the libraries that libraries need.
  foreach(_program IN LISTS _programs)
    target_link_options(${_program} PRIVATE "LINKER:--disable-new-dtags")
  endforeach()
  # In the build tree, too, the programs lie side by side: kvsweep starts kvsweep-worker from there.
  set_target_properties(${_programs} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../lib"
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${_programs} RUNTIME_DEPENDENCY_SET kvsweep_libraries RUNTIME DESTINATION bin)
  install(RUNTIME_DEPENDENCY_SET kvsweep_libraries
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|util|pthread|resolv|gcc_s|stdc\\+\\+)\\.so"
    LIBRARY DESTINATION lib)
endif()

if(TARGET kvsweep-worker)
  file(GLOB _torch_licences ${KVSWEEP_DEPS_DIR}/python/torch-*.dist-info/licenses/*)
  install(FILES ${_torch_licences} DESTINATION share/licenses/torch)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/licenses/kvsweep RENAME kvsweep.txt)
