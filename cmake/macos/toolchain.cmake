# macOS on Apple silicon, compiled on Linux by zig. scripts/macos.sh makes the folder `prefix` beside the build: links to
# the dependencies' headers, and the compiler.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(russet_prefix ${CMAKE_CURRENT_LIST_DIR}/../../build/macos-prefix)
set(CMAKE_CXX_COMPILER ${russet_prefix}/bin/clang++)
# Nothing is installed.
set(CMAKE_INSTALL_NAME_TOOL install_name_tool)

# Headers, libraries and packages from there alone: this machine's are for Linux.
set(CMAKE_FIND_ROOT_PATH ${russet_prefix})
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_PREFIX_PATH /)
set(CMAKE_FRAMEWORK_PATH ${CMAKE_CURRENT_LIST_DIR}/frameworks)

# What libc++ of macOS 14 lacks is an error.
set(CMAKE_CXX_FLAGS_INIT -U_LIBCPP_HAS_NO_VENDOR_AVAILABILITY_ANNOTATIONS)
# Without optimisation, functions of metal-cpp are compiled that nothing calls, and that name what no stub has.
foreach(kind SHARED EXE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-F${CMAKE_CURRENT_LIST_DIR}/frameworks -Wl,-dead_strip")
endforeach()
foreach(package fmt nlohmann_json CLI11)
  set(${package}_DIR ${CMAKE_CURRENT_LIST_DIR}/packages)
endforeach()
