# Installs the library, its one header, petsctc.pc and the CMake package (target petsctc::petsctc, which brings PETSc along).
# makefile.petsc fills in the same templates.
install(TARGETS petsctc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES "${PROJECT_SOURCE_DIR}/include/petsctc.h" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(PETSCTC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
set(PETSCTC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
set(PETSCTC_SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
file(RELATIVE_PATH PETSCTC_LIBDIR_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}" "/")
foreach(name petsctc.pc petsctcConfig.cmake petsctcConfigVersion.cmake)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.in" "${PROJECT_BINARY_DIR}/${name}" @ONLY)
endforeach()
install(FILES "${PROJECT_BINARY_DIR}/petsctc.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES "${PROJECT_BINARY_DIR}/petsctcConfig.cmake" "${PROJECT_BINARY_DIR}/petsctcConfigVersion.cmake" DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/petsctc)
