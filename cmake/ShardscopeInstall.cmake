# Files that `cmake --install` installs, in two components: `cli` (does not link OpenGL) and `gui` (the dashboard). The
# programs locate one another and share/shardscope relative to themselves (app/cli/program_files.h), so an installed
# prefix can be moved.
include(GNUInstallDirs)
set(share ${CMAKE_INSTALL_DATAROOTDIR})

install(TARGETS shardscope zero_train zero_simulate RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cli)
install(TARGETS shardscope_c nccl_profiler_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cli)
install(DIRECTORY instrumentation/include/shardscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cli)
install(FILES ${CMAKE_BINARY_DIR}/instrumentation/shardscope.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT cli)

# Files from which pip builds the Python package, for the Python that runs the training.
install(TARGETS shardscope_reader LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cli)
if(TARGET shardscope_gpu)
  install(TARGETS shardscope_gpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cli)
endif()
install(DIRECTORY python/shardscope python/src DESTINATION ${share}/shardscope/python COMPONENT cli PATTERN __pycache__ EXCLUDE)
install(FILES python/CMakeLists.txt python/pyproject.toml DESTINATION ${share}/shardscope/python COMPONENT cli)
install(FILES app/arrow/reader.h app/arrow/c_data.h DESTINATION ${share}/shardscope/app/arrow COMPONENT cli)
foreach(folder LIB INCLUDE BIN)
  file(RELATIVE_PATH PYTHON_TO_${folder} ${CMAKE_INSTALL_FULL_DATAROOTDIR}/shardscope/python
       ${CMAKE_INSTALL_FULL_${folder}DIR})
endforeach()
configure_file(python/installed.cmake.in ${CMAKE_BINARY_DIR}/installed.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/installed.cmake DESTINATION ${share}/shardscope/python COMPONENT cli)
# Documents and samples are also the training text of a run without --data.
install(DIRECTORY samples docs DESTINATION ${share}/shardscope COMPONENT cli
        PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE)
install(DIRECTORY assets/hardware DESTINATION ${share}/shardscope/assets COMPONENT cli)
install(FILES README.md CHANGELOG.md DESTINATION ${share}/shardscope COMPONENT cli)
install(FILES LICENSE DESTINATION ${share}/doc/shardscope-cli RENAME copyright COMPONENT cli)

# Generated from the definitions of the verbs (app/cli/CMakeLists.txt); the pages of the other programs are handwritten.
install(DIRECTORY ${CMAKE_BINARY_DIR}/manual/man ${CMAKE_BINARY_DIR}/manual/bash-completion ${CMAKE_BINARY_DIR}/manual/fish
        DESTINATION ${share} COMPONENT cli)
# Two folders: Debian's zsh reads another one below /usr than zsh's default below /usr/local.
foreach(folder site-functions vendor-completions)
  install(FILES ${CMAKE_BINARY_DIR}/manual/zsh/_shardscope DESTINATION ${share}/zsh/${folder} COMPONENT cli)
endforeach()
set(VERSION ${PROJECT_VERSION})
foreach(page zero_train.1 zero_simulate.1 shardscope-gui.1)
  configure_file(assets/man/${page}.in ${CMAKE_BINARY_DIR}/manual-written/${page} @ONLY)
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/manual-written/zero_train.1 ${CMAKE_BINARY_DIR}/manual-written/zero_simulate.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT cli)

if(SHARDSCOPE_GUI)
  install(TARGETS shardscope-gui RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT gui)
  install(FILES ${CMAKE_BINARY_DIR}/manual-written/shardscope-gui.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT gui)
  install(FILES assets/desktop/shardscope.desktop DESTINATION ${share}/applications COMPONENT gui)
  install(FILES assets/desktop/shardscope.svg DESTINATION ${share}/icons/hicolor/scalable/apps COMPONENT gui)
  install(FILES assets/desktop/shardscope.xml DESTINATION ${share}/mime/packages COMPONENT gui)
  install(FILES LICENSE DESTINATION ${share}/doc/shardscope RENAME copyright COMPONENT gui)
endif()
