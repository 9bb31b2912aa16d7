# Texts of kernels become a part of the library, so that an installed russet needs no files beside it.
file(GLOB_RECURSE russet_kernel_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/gpu/kernels/*.metal
     ${PROJECT_SOURCE_DIR}/src/device/gpu/kernels/*.h)
set(russet_embedded ${PROJECT_BINARY_DIR}/generated/kernel_files.cpp)
add_custom_command(OUTPUT ${russet_embedded}
  COMMAND ${CMAKE_COMMAND} -D FOLDER=${PROJECT_SOURCE_DIR}/src/device/gpu/kernels -D OUT=${russet_embedded}
          -P ${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake
  DEPENDS ${russet_kernel_files} ${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake
  COMMENT "Embedding texts of kernels" VERBATIM)
target_sources(russet PRIVATE ${russet_embedded})

# The compiler that the simulated GPU runs kernels with. Another one may be named when russet runs, by the environment
# variable of the same name.
find_program(RUSSET_SIMULATOR_CLANG NAMES clang++ clang++-14 DOC "clang++, with which the simulated GPU compiles kernels")
if(NOT RUSSET_SIMULATOR_CLANG)
  set_property(CACHE RUSSET_SIMULATOR_CLANG PROPERTY VALUE "")
endif()
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/device/gpu/simulator/prelude.cpp APPEND PROPERTY COMPILE_DEFINITIONS
             RUSSET_SIMULATOR_CLANG="${RUSSET_SIMULATOR_CLANG}")
