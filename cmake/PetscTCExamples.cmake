# Every file of examples/tutorials is one program of the same name
find_package(ZLIB REQUIRED)
file(GLOB example_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/tutorials/*.c" "${PROJECT_SOURCE_DIR}/examples/tutorials/*.cxx")
foreach(source IN LISTS example_sources)
  get_filename_component(name "${source}" NAME_WE)
  get_filename_component(ext "${source}" LAST_EXT)
  if(TARGET ${name}) # the same example in both languages
    string(REPLACE "." "_" ext "${ext}")
    set(name "${name}${ext}")
  endif()
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE petsctc_flags petsctc::petsctc ZLIB::ZLIB)
endforeach()
