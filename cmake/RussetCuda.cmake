# The device cuda. Its driver (src/device/gpu/cuda) needs two headers of CUDA's toolkit when it is built, and NVIDIA's
# libraries only where it runs: it loads them. Where a header is missing, russet is built without the device and says
# why (`make cuda` loads the headers).
file(GLOB russet_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/gpu/cuda/*.cpp
                                               ${PROJECT_SOURCE_DIR}/src/device/gpu/cuda/helper/*.cpp)
set(russet_cuda_helper ${PROJECT_SOURCE_DIR}/src/device/gpu/cuda/helper/main.cpp)
list(REMOVE_ITEM russet_cuda_sources ${russet_cuda_helper})
set(russet_cuda_missing_source ${PROJECT_SOURCE_DIR}/src/device/gpu/cuda/missing/cuda.cpp)

file(STRINGS ${PROJECT_SOURCE_DIR}/scripts/cuda_headers.txt russet_cuda_headers REGEX "^nvidia-cuda-runtime==")
string(REGEX REPLACE "^nvidia-cuda-runtime==([0-9.]+) .*" "\\1" russet_cuda_headers "${russet_cuda_headers}")
find_path(RUSSET_CUDA_INCLUDE nvrtc.h
          HINTS $ENV{CUDA_HOME} /usr/local/cuda ${russet_user_cache}/russet/cuda-headers-${russet_cuda_headers}
          PATH_SUFFIXES include
          DOC "The folder of cuda.h and nvrtc.h")
set(russet_cuda_missing "")
if(NOT RUSSET_CUDA_INCLUDE OR NOT EXISTS ${RUSSET_CUDA_INCLUDE}/cuda.h)
  set(russet_cuda_missing "CUDA's headers were not there when russet was built")
else()
  file(STRINGS ${RUSSET_CUDA_INCLUDE}/cuda.h russet_cuda_version REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX REPLACE "[^0-9]" "" russet_cuda_version "${russet_cuda_version}")
  if(NOT russet_cuda_version GREATER_EQUAL 12000)  # graphs are made by other functions before
    set(russet_cuda_missing "CUDA's headers are older than 12")
  endif()
endif()

if(russet_cuda_missing)
  message(STATUS "cuda is left out: ${russet_cuda_missing}")
  target_sources(russet PRIVATE ${russet_cuda_missing_source})
  set_source_files_properties(${russet_cuda_missing_source} PROPERTIES
                              COMPILE_DEFINITIONS "RUSSET_CUDA_MISSING=\"${russet_cuda_missing}\"")
else()
  # NVIDIA's libraries for contractions: a folder each, and the header that it needs.
  foreach(library "cublaslt:cublasLt.h" "cudnn:cudnn_graph.h")
    string(REPLACE ":" ";" parts ${library})
    list(GET parts 0 name)
    list(GET parts 1 header)
    if(EXISTS ${RUSSET_CUDA_INCLUDE}/${header})
      file(GLOB library_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/gpu/cuda/${name}/*.cpp)
      list(APPEND russet_cuda_sources ${library_sources})
    else()
      message(STATUS "cuda does without ${name}: there is no ${header}")
      list(APPEND russet_cuda_sources ${PROJECT_SOURCE_DIR}/src/device/gpu/cuda/missing/${name}.cpp)
    endif()
  endforeach()
  target_sources(russet PRIVATE ${russet_cuda_sources})
  target_include_directories(russet SYSTEM PRIVATE ${RUSSET_CUDA_INCLUDE})
  target_link_libraries(russet PRIVATE ${CMAKE_DL_LIBS})

  # The program whose processes compile kernels: in russet/ beside the library, which starts it.
  get_target_property(russet_library_folder russet LIBRARY_OUTPUT_DIRECTORY)
  add_executable(russet-compile-for-cuda ${russet_cuda_helper})
  set_target_properties(russet-compile-for-cuda PROPERTIES OUTPUT_NAME compile-for-cuda INSTALL_RPATH ${russet_origin}/..
                        RUNTIME_OUTPUT_DIRECTORY ${russet_library_folder}/russet)
  russet_target(russet-compile-for-cuda)
  target_include_directories(russet-compile-for-cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(russet-compile-for-cuda PRIVATE russet)
  install(TARGETS russet-compile-for-cuda RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/russet)
endif()
