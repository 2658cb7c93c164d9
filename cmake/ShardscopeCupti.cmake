# CUPTI's headers (SHARDSCOPE_CUPTI_INCLUDE): those of the toolkit if it has the oldest supported version, else from
# wheels pinned by version and hash (cupti-wheels.txt). A program can read records of the CUPTI version it was built with
# and of newer ones. Built with a newer version than PyTorch's, it could not read PyTorch's records. No NVIDIA library is
# linked.
set(SHARDSCOPE_CUPTI ON CACHE BOOL "Records of the GPU for attached runs: needs CUPTI's headers, fetched where they are missing")
set(SHARDSCOPE_CUPTI_INCLUDE "")
if(NOT SHARDSCOPE_CUPTI AND NOT SHARDSCOPE_HAS_CUDA)
  return()
endif()

find_path(SHARDSCOPE_TOOLKIT_CUPTI cupti.h
          HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include /usr/local/cuda/include
                /usr/local/cuda/extras/CUPTI/include)
mark_as_advanced(SHARDSCOPE_TOOLKIT_CUPTI)
if(SHARDSCOPE_TOOLKIT_CUPTI)
  file(STRINGS ${SHARDSCOPE_TOOLKIT_CUPTI}/cupti_version.h version REGEX "define CUPTI_API_VERSION +[0-9]+")
  string(REGEX MATCH "[0-9]+$" version "${version}")
  if(version EQUAL 130001)
    set(SHARDSCOPE_CUPTI_INCLUDE ${SHARDSCOPE_TOOLKIT_CUPTI})
    return()
  endif()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(folder ${CMAKE_BINARY_DIR}/cupti)
# CUPTI's headers, and the CUDA header crt/host_defines.h that they include, which is in a separate wheel since CUDA 13.
file(GLOB header ${folder}/nvidia/*/include/cupti.h)
file(GLOB of_compiler ${folder}/nvidia/*/include/crt/host_defines.h)
if(NOT header OR NOT of_compiler)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -m pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all:
            --platform manylinux_2_27_${CMAKE_SYSTEM_PROCESSOR} --platform manylinux_2_25_${CMAKE_SYSTEM_PROCESSOR}
            --platform manylinux2014_${CMAKE_SYSTEM_PROCESSOR} -d ${folder} -r ${CMAKE_SOURCE_DIR}/cmake/cupti-wheels.txt
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  file(GLOB wheels ${folder}/*.whl)
  foreach(wheel ${wheels})
    file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${folder} PATTERNS "nvidia/*/include/*")
  endforeach()
  file(GLOB header ${folder}/nvidia/*/include/cupti.h)
  file(GLOB of_compiler ${folder}/nvidia/*/include/crt/host_defines.h)
  if(failed OR NOT header OR NOT of_compiler)
    message(WARNING "CUPTI: pip could not fetch what cmake/cupti-wheels.txt pins; attached runs will have no records of "
                    "the GPU (-DSHARDSCOPE_CUPTI=OFF asks for none):\n${said}")
    return()
  endif()
endif()
get_filename_component(SHARDSCOPE_CUPTI_INCLUDE ${header} DIRECTORY)
