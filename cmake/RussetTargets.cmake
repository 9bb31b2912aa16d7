# What every target of the project is compiled with.

# Compile options of one target: warnings, sanitizers, nothing machine-dependent (kernels choose at run time).
function(russet_target name)
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  if(RUSSET_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Calls inside the library need no detour through its own dynamic symbols (clang assumes this already).
    target_compile_options(${name} PRIVATE -fno-semantic-interposition)
    # The compiler's memory is not searched for what is free before there is this much of it (KiB), which with a
    # precompiled header would be at once. Of six tests' files four took 12 to 30 % less time and two as much as before,
    # with 10 to 17 % more memory.
    target_compile_options(${name} PRIVATE --param=ggc-min-heapsize=2000000)
  endif()
  if(RUSSET_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=${RUSSET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${name} PRIVATE -fsanitize=${RUSSET_SANITIZE})
  endif()
  if(RUSSET_THREADS_STD)
    target_compile_definitions(${name} PRIVATE RUSSET_THREADS_STD=1)
  endif()
endfunction()

# Headers of other projects that most files include, compiled once for a target, which saves a quarter of the time that
# the command line takes to build. Files still include what they use: the builds for macOS and aarch64, and clang-tidy,
# do without (CMAKE_DISABLE_PRECOMPILE_HEADERS).
set(russet_precompiled <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <map> <memory> <mutex> <numeric>
                       <optional> <set> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)

# russet_precompile(TARGET HEADER...): these, and further ones.
function(russet_precompile name)
  target_precompile_headers(${name} PRIVATE ${russet_precompiled} ${ARGN})
endfunction()

# russet_together(TARGET FOLDER...): the files of each folder, up to eight at a time, are compiled as one, which is
# faster. For folders whose files do not use one name for two things; the others' files are compiled one by one.
# The builds that do without precompiled headers do without this as well.
function(russet_together name)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A file's own types are no header's, though it is included.
    target_compile_options(${name} PRIVATE -Wno-subobject-linkage)
  endif()
  get_target_property(sources ${name} SOURCES)
  foreach(folder IN LISTS ARGN)
    set(count 0)
    foreach(source IN LISTS sources)
      get_filename_component(parent ${source} DIRECTORY)
      if(NOT parent STREQUAL "${PROJECT_SOURCE_DIR}/${folder}")
        continue()
      endif()
      math(EXPR part "${count} / 8")
      string(MAKE_C_IDENTIFIER "${folder}_${part}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
      math(EXPR count "${count} + 1")
    endforeach()
  endforeach()
endfunction()
