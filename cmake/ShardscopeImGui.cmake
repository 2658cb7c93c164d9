# Dear ImGui with docking, ImPlot and GLFW 3.4 as the target shardscope_imgui: from a wheel pinned by version and hash
# (imgui-wheel.txt), downloaded by pip from its configured index, or the user's own packages by find_package.
set(SHARDSCOPE_IMGUI wheel CACHE STRING "Where Dear ImGui, ImPlot and GLFW come from: wheel, or package (find_package)")
set_property(CACHE SHARDSCOPE_IMGUI PROPERTY STRINGS wheel package)
set(SHARDSCOPE_IMGUI_WHEEL "" CACHE FILEPATH "A comma-deps-imgui wheel on this machine in place of the pinned one")
set(ways "Name another: -DSHARDSCOPE_IMGUI_WHEEL=FILE (a comma-deps-imgui wheel that you have), "
         "-DSHARDSCOPE_IMGUI=package (your own imgui with docking, implot and glfw3, by find_package), "
         "or -DSHARDSCOPE_GUI=OFF (no window)")
list(JOIN ways "" ways)
add_library(shardscope_imgui INTERFACE)

# Downloads the pinned wheel once per build folder; sets `result` to its path.
function(shardscope_fetch_imgui folder result)
  file(GLOB wheel ${folder}/*.whl)
  if(NOT wheel)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    set(platforms)
    # A machine may not offer what the wheel was tagged for by a newer pip's name: both names are given.
    foreach(tag manylinux_2_28 manylinux2014)
      list(APPEND platforms --platform ${tag}_${CMAKE_SYSTEM_PROCESSOR})
    endforeach()
    # The wheel is tagged for Python 3.12 but contains nothing that depends on Python.
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -m pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all:
              --python-version 3.12 ${platforms} -d ${folder} -r ${CMAKE_SOURCE_DIR}/cmake/imgui-wheel.txt
      RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
    file(GLOB wheel ${folder}/*.whl)
    if(failed OR NOT wheel)
      message(FATAL_ERROR "Dear ImGui: pip could not fetch what cmake/imgui-wheel.txt pins:\n${said}\n${ways}")
    endif()
  endif()
  set(${result} ${wheel} PARENT_SCOPE)
endfunction()

if(SHARDSCOPE_IMGUI STREQUAL "package")
  find_package(imgui CONFIG REQUIRED)
  find_package(implot CONFIG REQUIRED)
  find_package(glfw3 3.4 REQUIRED)
  target_link_libraries(shardscope_imgui INTERFACE implot::implot imgui::imgui glfw)
elseif(SHARDSCOPE_IMGUI STREQUAL "wheel")
  set(wheel ${SHARDSCOPE_IMGUI_WHEEL})
  if(NOT wheel)
    shardscope_fetch_imgui(${CMAKE_BINARY_DIR}/imgui wheel)
  elseif(NOT EXISTS ${wheel})
    message(FATAL_ERROR "SHARDSCOPE_IMGUI_WHEEL '${wheel}' does not exist. ${ways}")
  endif()
  # A folder per wheel, so that another wheel is unpacked too.
  file(SHA256 ${wheel} digest)
  string(SUBSTRING ${digest} 0 12 digest)
  set(unpacked ${CMAKE_BINARY_DIR}/imgui/${digest})
  if(NOT EXISTS ${unpacked})
    file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${unpacked})
  endif()
  file(GLOB_RECURSE header ${unpacked}/*/imgui.h)
  if(NOT header)
    message(FATAL_ERROR "${wheel} holds no imgui.h. ${ways}")
  endif()
  get_filename_component(include ${header} DIRECTORY)
  get_filename_component(install ${include} DIRECTORY)
  target_include_directories(shardscope_imgui SYSTEM INTERFACE ${include})
  target_link_libraries(shardscope_imgui INTERFACE ${install}/lib/libimgui.a ${install}/lib/libglfw3.a Threads::Threads
                                                   ${CMAKE_DL_LIBS} m)
else()
  message(FATAL_ERROR "SHARDSCOPE_IMGUI '${SHARDSCOPE_IMGUI}' is not known; it is wheel or package")
endif()
