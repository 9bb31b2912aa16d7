# Installation and the CMake package: find_package(russet) gives russet::russet.
include(CMakePackageConfigHelpers)
set(russet_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/russet)
install(TARGETS russet EXPORT russet-targets LIBRARY)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/russet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT russet-targets NAMESPACE russet:: DESTINATION ${russet_package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/russet-config.cmake.in
                              ${PROJECT_BINARY_DIR}/russet-config.cmake INSTALL_DESTINATION ${russet_package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/russet-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/russet-config.cmake ${PROJECT_BINARY_DIR}/russet-config-version.cmake
        DESTINATION ${russet_package_folder})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
