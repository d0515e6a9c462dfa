# Installs the library, its one header, petsctc.pc and the CMake package (target petsctc::petsctc, which brings PETSc along)
include(CMakePackageConfigHelpers)

install(TARGETS petsctc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES "${PROJECT_SOURCE_DIR}/include/petsctc.h" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_file("${PROJECT_SOURCE_DIR}/cmake/petsctc.pc.in" "${PROJECT_BINARY_DIR}/petsctc.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/petsctc.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/petsctc)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/petsctcConfig.cmake.in" "${PROJECT_BINARY_DIR}/petsctcConfig.cmake" INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/petsctcConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/petsctcConfig.cmake" "${PROJECT_BINARY_DIR}/petsctcConfigVersion.cmake" DESTINATION ${package_dir})
