# The libraries that russet stands on, by the names scripts/packages.sh installs.
if(APPLE AND NOT CMAKE_CROSSCOMPILING)
  # brew keeps libomp out of the common paths.
  execute_process(COMMAND brew --prefix OUTPUT_VARIABLE brew_prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND CMAKE_PREFIX_PATH ${brew_prefix} ${brew_prefix}/opt/libomp)
endif()
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
if(RUSSET_APPS)
  find_package(CLI11 REQUIRED)
endif()

# russet_library(TARGET HEADER LIBRARY...): an imported target for a library that is found by its header and file; without
# NAMES it is headers alone. PATH_SUFFIXES as find_library takes them.
function(russet_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER" "NAMES;PATH_SUFFIXES;HINTS")
  string(TOUPPER ${target} upper)
  add_library(${target} INTERFACE)
  if(arg_NAMES)
    find_library(${upper}_LIBRARY NAMES ${arg_NAMES} PATH_SUFFIXES ${arg_PATH_SUFFIXES} HINTS ${arg_HINTS} REQUIRED)
    target_link_libraries(${target} INTERFACE ${${upper}_LIBRARY})
  endif()
  if(arg_HEADER)
    find_path(${upper}_INCLUDE ${arg_HEADER} PATH_SUFFIXES ${arg_PATH_SUFFIXES} HINTS ${arg_HINTS} REQUIRED)
    target_include_directories(${target} SYSTEM INTERFACE ${${upper}_INCLUDE})
  endif()
endfunction()

# Not dnnl's own CMake package: it asks for OpenCL's development files, which russet does not use.
russet_library(russet_dnnl NAMES dnnl HEADER oneapi/dnnl/dnnl.hpp)
russet_library(russet_highway NAMES hwy HEADER hwy/highway.h)
# Loops are compiled for AVX-512, AVX2, and plain C++ for what is older; on Arm, for NEON.
target_compile_definitions(
  russet_highway INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
# Not libzip's own package either: Debian's asks for programs that are in other packages.
russet_library(russet_zip NAMES zip HEADER zip.h)
russet_library(russet_utf8proc NAMES utf8proc HEADER utf8proc.h)
if(RUSSET_APPS)
  # The command line's event files for TensorBoard: messages, and their checksums.
  russet_library(russet_isal NAMES isal HEADER isa-l/crc.h)
  russet_library(russet_protozero HEADER protozero/pbf_writer.hpp)
endif()
if(APPLE)
  add_library(russet_blas INTERFACE)
  target_link_libraries(russet_blas INTERFACE "-framework Accelerate")
  # Its interface since macOS 13.3; the one before is deprecated.
  target_compile_definitions(russet_blas INTERFACE ACCELERATE_NEW_LAPACK)
else()
  # The OpenMP build of OpenBLAS first: it shares the pool of threads. Distributions keep it in a folder of its own.
  russet_library(russet_blas NAMES openblas HEADER cblas.h PATH_SUFFIXES openblas-openmp openblas)
endif()

# One OpenMP runtime with either compiler: two runtimes in one process mean two pools. On Linux GCC's, which oneDNN is
# linked with. On macOS brew's libomp, which has GCC's entry points, too; brew's oneDNN is built without OpenMP. russet
# calls the entry points itself (src/base/parallel.cpp), so no compiler flag is needed.
if(APPLE)
  russet_library(russet_openmp NAMES omp)
else()
  set(gomp_compiler g++)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(gomp_compiler ${CMAKE_CXX_COMPILER})
  endif()
  execute_process(COMMAND ${gomp_compiler} -print-file-name=libgomp.so OUTPUT_VARIABLE gomp_file
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT IS_ABSOLUTE "${gomp_file}")
    set(gomp_file "")
  endif()
  get_filename_component(gomp_folder "${gomp_file}" DIRECTORY)
  russet_library(russet_openmp NAMES gomp libgomp.so.1 HINTS ${gomp_folder})
endif()
