# Header-only here: the functions' names hold the version, which is another one in Debian than in brew.
add_library(fmt::fmt INTERFACE IMPORTED)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
target_include_directories(fmt::fmt INTERFACE ${russet_prefix}/include)
