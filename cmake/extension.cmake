# The extension module warp._weft: every room, the frontend and the bindings in one shared library whose only visible
# symbol is its init function. During development the package is laid out in <build>/py with links to the sources:
#     PYTHONPATH=build/py python -c 'import warp'
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT)
find_package(nanobind CONFIG REQUIRED)

file(GLOB extension_sources CONFIGURE_DEPENDS src/frontend/*.cpp src/bindings/*.cpp)
nanobind_add_module(_weft NB_STATIC NOMINSIZE ${extension_sources})
target_link_libraries(_weft PRIVATE weft_program)
target_link_options(_weft PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(_weft PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/py/warp)
add_custom_command(TARGET _weft POST_BUILD
    COMMAND cp -rsf ${CMAKE_CURRENT_SOURCE_DIR}/python/warp ${CMAKE_BINARY_DIR}/py/ VERBATIM)
install(TARGETS _weft LIBRARY DESTINATION warp COMPONENT python)
