# libweft: the kernels of wp.compile_aot_module() in C++ programs without Python. One shared library with the runtime
# wing; of what it is made of, only the classes of include/weft are visible. `make install` puts it, the headers and a
# CMake package in place:
#
#   find_package(weft REQUIRED)
#   target_link_libraries(program PRIVATE weft::weft)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

file(GLOB library_sources CONFIGURE_DEPENDS src/embed/*.cpp)
add_library(weft SHARED ${library_sources})
target_compile_features(weft PUBLIC cxx_std_20)
target_include_directories(weft PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(weft PRIVATE weft_program)
target_link_options(weft PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(weft PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

set(weft_package ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(TARGETS weft EXPORT weft LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT library)
install(DIRECTORY include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT weft NAMESPACE weft:: FILE weft-config.cmake DESTINATION ${weft_package} COMPONENT library)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/weft-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/weft-config-version.cmake DESTINATION ${weft_package} COMPONENT library)
