# The files of src/device/gpu/kernels as strings of the library: Metal compiles text, and a text cannot include files.
# Run as `cmake -D FOLDER=... -D OUTPUT=... -P EmbedKernels.cmake`, or include it for the function below.
function(russet_embed_kernels target folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${folder}/*.metal ${folder}/*.h)
  set(output ${PROJECT_BINARY_DIR}/generated/kernel_files.cpp)
  add_custom_command(OUTPUT ${output} DEPENDS ${files} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
                     COMMAND ${CMAKE_COMMAND} -D FOLDER=${folder} -D OUTPUT=${output} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
                     COMMENT "Embedding kernel files")
  target_sources(${target} PRIVATE ${output})
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  file(GLOB_RECURSE files ${FOLDER}/*.metal ${FOLDER}/*.h)
  list(SORT files)
  set(text "// Generated from the files of kernels/ by cmake/EmbedKernels.cmake.\n#include \"device/gpu/kernel_files.h\"\n\n")
  string(APPEND text "namespace russet::gpu {\n\nconst KernelFile kernel_files[] = {\n")
  foreach(file IN LISTS files)
    file(RELATIVE_PATH name ${FOLDER} ${file})
    file(READ ${file} content)
    string(APPEND text "{\"${name}\", R\"kernel(${content})kernel\"},\n")
  endforeach()
  string(APPEND text "{\"\", \"\"}};\n\n}  // namespace russet::gpu\n")
  file(WRITE ${OUTPUT} "${text}")
endif()
