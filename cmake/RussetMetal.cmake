# The device mps. Its driver (src/device/gpu/metal) stands on metal-cpp, Apple's C++ face of Metal, whose headers `make
# setup` loads. On macOS it is built like the rest of the library. On Linux it runs on the simulator's stand-in for
# Metal's objects (src/device/gpu/simulator/objects), and its files are compiled by clang: metal-cpp's declarations hold
# blocks, which g++ does not know. Where something is missing, russet is built without the device and says why.
file(GLOB russet_metal_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/gpu/metal/*.cpp)
set(russet_metal_missing_source ${PROJECT_SOURCE_DIR}/src/device/gpu/metal/missing.cpp)
list(REMOVE_ITEM russet_metal_sources ${russet_metal_missing_source})

file(STRINGS ${PROJECT_SOURCE_DIR}/scripts/metal_cpp.txt russet_metal_cpp_version REGEX "^mlx-metal==")
string(REGEX REPLACE "^mlx-metal==([0-9.]+) .*" "\\1" russet_metal_cpp_version "${russet_metal_cpp_version}")
set(russet_user_cache $ENV{XDG_CACHE_HOME})
if(NOT russet_user_cache)
  set(russet_user_cache $ENV{HOME}/.cache)
endif()
set(RUSSET_METAL_CPP ${russet_user_cache}/russet/metal-cpp-${russet_metal_cpp_version} CACHE PATH
    "The folder of metal-cpp's headers")

set(russet_metal_missing "")
if(NOT EXISTS ${RUSSET_METAL_CPP}/Metal/Metal.hpp)
  set(russet_metal_missing "metal-cpp's headers were not there when russet was built (scripts/fetch_metal_cpp.sh)")
elseif(NOT APPLE AND NOT russet_simulator)
  set(russet_metal_missing "the simulator runs on x86-64 alone")
elseif(NOT APPLE AND NOT RUSSET_SIMULATOR_CLANG)
  set(russet_metal_missing "clang was not there when russet was built")
endif()

# russet_metal_objects(VARIABLE SOURCE...): object files of sources that include metal-cpp, compiled by clang (Linux).
function(russet_metal_objects variable)
  set(objects "")
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
    set(object ${PROJECT_BINARY_DIR}/metal/${name}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    set(include ${PROJECT_SOURCE_DIR}/src/device/gpu/simulator/objects/include)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${RUSSET_SIMULATOR_CLANG} -std=c++20 -fblocks -fPIC -O2 -DNDEBUG -Wall -Wextra -Werror
              -DMETALCPP_SYMBOL_VISIBILITY_HIDDEN -isystem ${RUSSET_METAL_CPP} -isystem ${include}
              -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/tests
              -MMD -MT ${object} -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d COMMENT "Compiling ${name} with clang" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

if(russet_metal_missing)
  message(STATUS "mps is left out: ${russet_metal_missing}")
  target_sources(russet PRIVATE ${russet_metal_missing_source})
  set_source_files_properties(${russet_metal_missing_source} PROPERTIES
                              COMPILE_DEFINITIONS "RUSSET_METAL_MISSING=\"${russet_metal_missing}\"")
elseif(APPLE)
  target_sources(russet PRIVATE ${russet_metal_sources})
  target_include_directories(russet SYSTEM PRIVATE ${RUSSET_METAL_CPP})
  target_compile_definitions(russet PRIVATE METALCPP_SYMBOL_VISIBILITY_HIDDEN)
  target_link_libraries(russet PRIVATE "-framework Foundation" "-framework Metal")
else()
  russet_metal_objects(russet_metal_object_files ${russet_metal_sources})
  set_source_files_properties(${russet_metal_object_files} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(russet PRIVATE ${russet_metal_object_files})
endif()
