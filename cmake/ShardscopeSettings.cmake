# Language level, warnings and sanitizers, the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(SHARDSCOPE_CCACHE ccache)
if(SHARDSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the clone are hashed relative to the build folder, so that one clone uses what another compiled.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${SHARDSCOPE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

# Every target of the project links this.
add_library(shardscope_settings INTERFACE)
target_include_directories(shardscope_settings INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# Looking for them is a twelfth of a compilation: who only builds to run leaves them out (`./shardscope`).
option(SHARDSCOPE_WARNINGS "Compile with warnings" ON)
if(SHARDSCOPE_WARNINGS OR SHARDSCOPE_WERROR)
  # -Wno-restrict: g++ 12 reports std::string's operator+ at -O3 (GCC bug 105651).
  target_compile_options(shardscope_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wno-sign-conversion -Wno-restrict>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${SHARDSCOPE_WERROR}>>:-Werror>)
else()
  target_compile_options(shardscope_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-w>)
endif()
# A unit of 32 files makes g++ look for garbage all the time, a tenth to a fifth of its compilation; twice as much heap
# before the next search costs a compiler 200 MB. What it makes is the same.
target_compile_options(shardscope_settings INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-expand=200 --param ggc-min-heapsize=524288>")
if(SHARDSCOPE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${SHARDSCOPE_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${SHARDSCOPE_SANITIZE})
  if(SHARDSCOPE_SANITIZE MATCHES "address" AND SHARDSCOPE_SANITIZE MATCHES "undefined")
    # Accesses through null and beyond an object are AddressSanitizer's already; looking for them twice is a quarter of a
    # compilation.
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=null,object-size>)
  endif()
  # Instrumented code is often taken for uninitialised (GCC's manual, -fsanitize; bug 105562 of std::regex): the release
  # build says where it is.
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

# Most of a compilation is reading headers: several files of a library or a test are compiled as one (a cold build takes
# about half the time). Who edits may prefer each on its own: -DSHARDSCOPE_UNITY=OFF. 32 files of a library take a
# compiler up to 800 MB.
option(SHARDSCOPE_UNITY "Compile several files of a target at once" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 32)
if(SHARDSCOPE_UNITY)
  # g++ takes a file that another includes for a header, where a member of a type of an anonymous namespace is a mistake.
  target_compile_options(shardscope_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# For code whose optimising takes longer than it ever saves: what runs once, and tests. -Og takes two thirds of -O1's time to
# compile, and little more than half of it under a sanitizer. Not -O0: the functions of headers that a program keeps are
# often its test's, and tests of the plan took four times as long. -Og takes much for uninitialised that is not.
function(shardscope_little_optimized name)
  if(CMAKE_BUILD_TYPE STREQUAL Release OR SHARDSCOPE_SANITIZE)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og> $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
endfunction()

# shardscope_library(NAME [DECODES] [AT_START] [LEAN] SOURCES... LINK ...): a static library under the project's settings.
# DECODES: it reads what others wrote, so the fuzzers are given which of its branches an input takes. AT_START: it runs
# once in a program and waits for nothing but people and files; optimising it would be most of its compilation. LEAN: no step
# of training and no event passes through it; optimised a little (a third less to compile). Under a sanitizer compiling takes
# longer than all tests, so there every library is; kernels, which compute, have options of their own.
function(shardscope_library name)
  cmake_parse_arguments(ARG "DECODES;AT_START;LEAN" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(ARG_AT_START OR SHARDSCOPE_SANITIZE)
    shardscope_little_optimized(${name})
  elseif(ARG_LEAN)
    target_compile_options(${name} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${SHARDSCOPE_UNITY})
  if(ARG_DECODES AND SHARDSCOPE_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize-coverage=trace-pc,trace-cmp)
    target_link_libraries(${name} PUBLIC shardscope_branches)
  endif()
  target_link_libraries(${name} PUBLIC shardscope_settings ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
endfunction()

# What a user runs, without the tests; what the sanitizer builds of `tests/run` make.
add_custom_target(programs)
add_custom_target(demo_programs)
add_custom_target(asan_tests)
add_custom_target(tsan_tests)

# shardscope_test(NAME SOURCES... LINK ... [LABELS ...] [RANKS n] [SHARDS n] [ARGS ...]): a GoogleTest program.
# RANKS runs it under mpirun with that many processes. SHARDS makes that many tests of it, each of a part of its cases.
# LABELS default to `unit`; `asan` and `tsan` add the program to those builds' runs, there without the cases of
# NOT_SANITIZED: those that take minutes and read nothing that other cases and the fuzzers do not. `tests/run` runs several
# at once; `waits`: the test mostly waits, and more may run.
function(shardscope_test name)
  cmake_parse_arguments(ARG "" "RANKS;SHARDS;TIMEOUT" "SOURCES;LINK;LABELS;ARGS;NOT_SANITIZED" ${ARGN})
  if(SHARDSCOPE_SANITIZE AND ARG_NOT_SANITIZED)
    list(JOIN ARG_NOT_SANITIZED ":" left_out)
    list(APPEND ARG_ARGS "--gtest_filter=-${left_out}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${SHARDSCOPE_UNITY} UNITY_BUILD_BATCH_SIZE 32)
  # Assertions are most of what a test compiles; what they look at is optimised as always.
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
