# cmake -D FOLDER=... -D OUT=FILE.cpp -P embed_kernels.cmake: writes a C++ file that holds the text of every *.metal and
# *.h under FOLDER, in the table that src/device/gpu/kernels.cpp reads.
file(GLOB_RECURSE names RELATIVE ${FOLDER} ${FOLDER}/*.metal ${FOLDER}/*.h)
list(SORT names)
set(rows "")
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name} text)
  string(FIND "${text}" ")kernel\"" delimiter)
  if(NOT delimiter EQUAL -1)
    message(FATAL_ERROR "${name} holds the mark that ends an embedded text")
  endif()
  string(APPEND rows "    {\"${name}\", R\"kernel(${text})kernel\"},\n")
endforeach()
file(WRITE ${OUT} "// Generated from src/device/gpu/kernels.
#include \"device/gpu/kernels.h\"

namespace russet::gpu {
namespace {
constexpr KernelFile texts[] = {
${rows}};
}  // namespace

std::span<const KernelFile> kernel_files() { return texts; }

}  // namespace russet::gpu
")
