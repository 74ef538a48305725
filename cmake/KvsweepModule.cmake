# kvsweep_module(NAME part SOURCES ... HEADERS ... DEPS ... [LINK ...])
#   One folder = one static library `kvsweep_<part>` with alias `kvsweep::<part>`.
#   DEPS are other modules, LINK third-party targets (both PUBLIC).
# kvsweep_test(NAME part SOURCES ... DEPS ... [LINK ...] [LABELS ...])
#   One GoogleTest program per part, its cases discovered by ctest.
include_guard(GLOBAL)
include(GoogleTest)

add_library(kvsweep_flags INTERFACE)
target_compile_features(kvsweep_flags INTERFACE cxx_std_20)
target_include_directories(kvsweep_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(kvsweep_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers -Werror>)

function(kvsweep_module)
  cmake_parse_arguments(M "" "NAME" "SOURCES;HEADERS;DEPS;LINK" ${ARGN})
  add_library(kvsweep_${M_NAME} STATIC ${M_SOURCES} ${M_HEADERS})
  add_library(kvsweep::${M_NAME} ALIAS kvsweep_${M_NAME})
  target_link_libraries(kvsweep_${M_NAME} PUBLIC kvsweep_flags)
  foreach(dep IN LISTS M_DEPS)
    target_link_libraries(kvsweep_${M_NAME} PUBLIC kvsweep::${dep})
  endforeach()
  target_link_libraries(kvsweep_${M_NAME} PUBLIC ${M_LINK})
endfunction()

function(kvsweep_test)
  cmake_parse_arguments(T "" "NAME" "SOURCES;DEPS;LINK;LABELS" ${ARGN})
  if(NOT KVSWEEP_TESTS)
    return()
  endif()
  add_executable(${T_NAME}_test ${T_SOURCES})
  target_link_libraries(${T_NAME}_test PRIVATE kvsweep_flags GTest::gtest GTest::gmock
                        GTest::gtest_main ${T_LINK})
  foreach(dep IN LISTS T_DEPS)
    target_link_libraries(${T_NAME}_test PRIVATE kvsweep::${dep})
  endforeach()
  # Listing the cases starts the program; with torch and a sanitizer on a busy machine that takes
  # longer than the default of 5 s.
  gtest_discover_tests(${T_NAME}_test TEST_PREFIX ${T_NAME}. DISCOVERY_MODE PRE_TEST
                       DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES
                       PROPERTIES LABELS "${T_NAME};${T_LABELS}" TIMEOUT 300)
endfunction()
