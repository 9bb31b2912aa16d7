# What comes from the table of public functions (src/functional/table): headers and Tensor's methods. Made when CMake
# runs, which it does again when the table or its reader changes.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(russet_generated ${PROJECT_BINARY_DIR}/generated)
file(GLOB function_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/functional/table/*.txt
     ${PROJECT_SOURCE_DIR}/scripts/functions/*.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${function_files})
execute_process(COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/scripts/functions/generate.py
                        ${PROJECT_SOURCE_DIR}/src/functional/table ${russet_generated} COMMAND_ERROR_IS_FATAL ANY)
target_sources(russet PRIVATE ${russet_generated}/methods.cpp)
target_include_directories(russet PUBLIC $<BUILD_INTERFACE:${russet_generated}/include>)
install(DIRECTORY ${russet_generated}/include/russet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
