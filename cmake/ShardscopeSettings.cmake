# Language level, warnings and sanitizers, the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# CMake's -O3 compiles a tenth longer than -O2 and makes nothing of ours faster but kernels, which ask for it themselves
# (store_bench, emit_bench, collector_bench).
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(SHARDSCOPE_CCACHE ccache)
if(SHARDSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the clone are hashed relative to the build folder, so that clones share cached objects.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${SHARDSCOPE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

# Every target of the project links this.
add_library(shardscope_settings INTERFACE)
target_include_directories(shardscope_settings INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# Warnings take a twelfth of the compile time. `./shardscope`, which builds only to run, turns them off.
option(SHARDSCOPE_WARNINGS "Compile with warnings" ON)
if(SHARDSCOPE_WARNINGS OR SHARDSCOPE_WERROR)
  # -Wno-restrict: g++ 12 reports std::string's operator+ at -O3 (GCC bug 105651).
  target_compile_options(shardscope_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wno-sign-conversion -Wno-restrict>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${SHARDSCOPE_WERROR}>>:-Werror>)
else()
  target_compile_options(shardscope_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-w>)
endif()
# When compiling a unit of 32 files, g++ spends a tenth to a fifth of the time in its garbage collector. A larger heap
# growth between collections avoids this for 200 MB of memory per compiler. The generated code is the same.
target_compile_options(shardscope_settings INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-expand=200 --param ggc-min-heapsize=524288>")
if(SHARDSCOPE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${SHARDSCOPE_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${SHARDSCOPE_SANITIZE})
  if(SHARDSCOPE_SANITIZE MATCHES "address" AND SHARDSCOPE_SANITIZE MATCHES "undefined")
    # AddressSanitizer already detects accesses through null and beyond an object. Checking them twice takes a quarter of
    # the compile time.
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=null,object-size>)
  endif()
  # False positives in instrumented code (GCC's manual, -fsanitize; GCC bug 105562, std::regex). The release build keeps
  # this warning.
  target_compile_options(shardscope_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()

if(SHARDSCOPE_FUZZ)
  file(GLOB fuzzer_folders /usr/lib/llvm-*/lib/clang/*/lib/linux)
  find_library(SHARDSCOPE_LIBFUZZER NAMES libclang_rt.fuzzer-${CMAKE_SYSTEM_PROCESSOR}.a PATHS ${fuzzer_folders}
               NO_DEFAULT_PATH REQUIRED)
  add_library(shardscope_branches_object OBJECT ${CMAKE_SOURCE_DIR}/tests/fuzz/branches.cpp)
  target_link_libraries(shardscope_branches_object PRIVATE shardscope_settings)
  add_library(shardscope_branches STATIC $<TARGET_OBJECTS:shardscope_branches_object>)
endif()

# Unity build: most of the compile time is spent on headers, so several files of a library or test are compiled as one
# unit. This halves the time of a cold build. -DSHARDSCOPE_UNITY=OFF compiles each file separately, which suits frequent
# edits. A compiler needs up to 800 MB for 32 files of a library.
option(SHARDSCOPE_UNITY "Compile several files of a target at once" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 32)
if(SHARDSCOPE_UNITY)
  # In a unity build g++ takes the included files for headers, and warns about members whose type is in an anonymous
  # namespace.
  target_compile_options(shardscope_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# For code whose optimization takes longer than it saves: code that runs once or waits for users and files, and tests. -Og
# compiles in four fifths of -O1's time, and in little more than half of it under a sanitizer. Not -O0: the linker often keeps a test's copy of an
# inline function, so the code under test gets slow too (tests of the plan: four times). -Og has false positives of
# -Wmaybe-uninitialized.
function(shardscope_little_optimized name)
  if(CMAKE_BUILD_TYPE STREQUAL Release OR SHARDSCOPE_SANITIZE)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og> $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
endfunction()

# shardscope_library(NAME [DECODES] [LEAN] SOURCES... LINK ...): a static library under the project's settings. DECODES:
# decodes untrusted input, so it is instrumented for branch coverage by the fuzzers. LEAN: not on the path of a training
# step or an event, so little optimized. Under a sanitizer every library is, because compiling would take longer than all
# tests. Kernels have their own options.
function(shardscope_library name)
  cmake_parse_arguments(ARG "DECODES;LEAN" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(ARG_LEAN OR SHARDSCOPE_SANITIZE)
    shardscope_little_optimized(${name})
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${SHARDSCOPE_UNITY})
  if(ARG_DECODES AND SHARDSCOPE_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize-coverage=trace-pc,trace-cmp)
    target_link_libraries(${name} PUBLIC shardscope_branches)
  endif()
  target_link_libraries(${name} PUBLIC shardscope_settings ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
endfunction()

# Targets: the programs that users run, without the tests; and the test programs of the sanitizer builds of `tests/run`.
add_custom_target(programs)
add_custom_target(demo_programs)
add_custom_target(asan_tests)
add_custom_target(tsan_tests)

# shardscope_test(NAME SOURCES... LINK ... [LABELS ...] [RANKS n] [SHARDS n] [ARGS ...]): a GoogleTest program.
# RANKS: run it under mpirun with that many processes. SHARDS: split its cases into that many ctest tests. LABELS: default
# is `unit`; `asan` and `tsan` add the program to the runs of those builds, without the cases of NOT_SANITIZED. These take
# minutes and read nothing that other cases or the fuzzers do not. `tests/run` runs several tests in parallel; `waits`: the
# test mostly waits, so more tests may run beside it.
function(shardscope_test name)
  cmake_parse_arguments(ARG "" "RANKS;SHARDS;TIMEOUT" "SOURCES;LINK;LABELS;ARGS;NOT_SANITIZED" ${ARGN})
  if(SHARDSCOPE_SANITIZE AND ARG_NOT_SANITIZED)
    list(JOIN ARG_NOT_SANITIZED ":" left_out)
    list(APPEND ARG_ARGS "--gtest_filter=-${left_out}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${SHARDSCOPE_UNITY} UNITY_BUILD_BATCH_SIZE 32)
  # Most of a test's code is assertions; the libraries under test keep their own optimization.
  shardscope_little_optimized(${name})
  target_link_libraries(${name} PRIVATE shardscope_settings ${ARG_LINK} GTest::gtest GTest::gmock
                        $<IF:$<BOOL:${ARG_RANKS}>,GTest::gtest,GTest::gtest_main>)
  if(ARG_RANKS)
    add_test(NAME ${name}_${ARG_RANKS} COMMAND mpirun --allow-run-as-root --oversubscribe -n ${ARG_RANKS}
             $<TARGET_FILE:${name}> ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set(tests ${name}_${ARG_RANKS})
  elseif(ARG_SHARDS)
    set(tests "")
    foreach(shard RANGE 1 ${ARG_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${name}_${shard} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
      set_tests_properties(${name}_${shard} PROPERTIES
                           ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
      list(APPEND tests ${name}_${shard})
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set(tests ${name})
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${tests} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  foreach(sanitizer asan tsan)
    if(${sanitizer} IN_LIST ARG_LABELS)
      add_dependencies(${sanitizer}_tests ${name})
    endif()
  endforeach()
endfunction()
