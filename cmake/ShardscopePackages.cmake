# `cpack` in the build folder makes a Debian package of each component. dpkg-shlibdeps determines the dependencies on
# shared libraries; programs and libraries that are started or loaded by name are listed here.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shardscope)
set(CPACK_PACKAGE_CONTACT "Shardscope maintainers <maintainers@shardscope.invalid>" CACHE STRING "Maintainer of the packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL cli)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)

set(CPACK_DEBIAN_CLI_PACKAGE_NAME shardscope-cli)
set(CPACK_COMPONENT_CLI_DESCRIPTION "watch, stop and compare ZeRO training (command line)
 Trains with ZeRO on CPU ranks or records a PyTorch training as it is, and
 summarizes, compares, simulates and exports recordings. Links no OpenGL: the
 dashboard is in the package shardscope.")
set(CPACK_DEBIAN_CLI_PACKAGE_DEPENDS "openmpi-bin")
# pip builds the Python package (share/shardscope/python) for the Python that trains, usually in a virtual environment.
set(CPACK_DEBIAN_CLI_PACKAGE_SUGGESTS "python3-pip, python3-venv, python3-dev, g++, cmake, pkg-config")

if(SHARDSCOPE_GUI)
  list(APPEND CPACK_COMPONENTS_ALL gui)
  set(CPACK_DEBIAN_GUI_PACKAGE_NAME shardscope)
  set(CPACK_COMPONENT_GUI_DESCRIPTION "watch, stop and compare ZeRO training (dashboard)
 Draws timelines, partition maps and memory of a run while it goes on, steps it
 through its fetches and releases, and shows recordings.")
  # GLFW loads the libraries of the window system by name.
  set(CPACK_DEBIAN_GUI_PACKAGE_DEPENDS "shardscope-cli (= ${PROJECT_VERSION}), libx11-6, libxcursor1, libxext6, libxi6, libxinerama1, libxrandr2, libxkbcommon0, libwayland-client0, libwayland-cursor0, libwayland-egl1, libgl1, libegl1")
  set(CPACK_DEBIAN_GUI_PACKAGE_RECOMMENDS "fonts-inter, fonts-jetbrains-mono, libgl1-mesa-dri")
endif()
include(CPack)
