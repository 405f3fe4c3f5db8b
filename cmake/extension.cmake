# The extension module warp._weft: every room, the frontend and the bindings in one shared library that shows
# its init function and GDB's list of code (extension.map) only. During development the package is laid out in
# <build>/py with links to the sources, and `make setup` puts that folder on the path of .venv.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT RESULT_VARIABLE nanobind_result)
if(nanobind_result)
    message(FATAL_ERROR "nanobind is not installed for ${Python_EXECUTABLE}: `${Python_EXECUTABLE} -m pip install "
                        "nanobind`, or name the Python of .venv with -DPython_EXECUTABLE=")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB_RECURSE extension_sources CONFIGURE_DEPENDS src/frontend/*.cpp src/bindings/*.cpp)
nanobind_add_module(_weft NB_STATIC NOMINSIZE ${extension_sources})
target_link_libraries(_weft PRIVATE weft_program)
if(WEFT_TOGETHER)
    # Files of bindings call their own functions alike (refuse(), functions[], traverse()): each is compiled for itself, and
    # what most of them include once.
    file(GLOB_RECURSE bindings CONFIGURE_DEPENDS src/bindings/*.cpp)
    set_source_files_properties(${bindings} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set_target_properties(_weft PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    target_precompile_headers(_weft PRIVATE cmake/headers/bindings.h)
    set_target_properties(nanobind-static PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()
target_compile_definitions(_weft PRIVATE WEFT_VERSION="${PROJECT_VERSION}" WEFT_LLVM_VERSION="${LLVM_PACKAGE_VERSION}")
# The map hides all other symbols: torch, JAX and Triton carry an LLVM of their own into the same process.
set(symbols ${CMAKE_CURRENT_SOURCE_DIR}/cmake/extension.map)
target_link_options(_weft PRIVATE -Wl,--version-script=${symbols} -Wl,--gc-sections)
set_target_properties(_weft PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/py/warp
    LINK_DEPENDS ${symbols})

# TBB under a name of our own, beside the module: of the name libtbb.so.12 a process has one, which is Paddle's where that
# was imported first. In a wheel auditwheel does the same.
if(NOT SKBUILD)
    set(private_tbb ${CMAKE_BINARY_DIR}/py/warp/weft-tbb.so)
    set(private_library ${CMAKE_CURRENT_SOURCE_DIR}/tools/release/private_library.py)
    add_custom_command(OUTPUT ${private_tbb}
        COMMAND ${Python_EXECUTABLE} ${private_library} $<TARGET_FILE:TBB::tbb> ${private_tbb}
        DEPENDS ${private_library} $<TARGET_FILE:TBB::tbb>
        VERBATIM)
    add_custom_target(private_tbb DEPENDS ${private_tbb})
    add_dependencies(_weft private_tbb)
    # The first library that has a symbol gives it, and the room's own TBB is then not needed.
    target_link_options(_weft PRIVATE ${private_tbb} -Wl,--as-needed)
    set_target_properties(_weft PROPERTIES BUILD_RPATH \$ORIGIN)
    set_property(TARGET _weft APPEND PROPERTY LINK_DEPENDS ${private_tbb})
endif()

# The emulated CUDA device lies beside the module, where WARP_CUDA_DRIVER=emulated looks for it.
set_target_properties(emulated_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/py/warp)

# Links to the Python sources, renewed at each build: new files appear, links to removed ones go. The type stub is made
# from the module itself.
add_custom_target(python_package ALL
    COMMAND cp -rsf ${CMAKE_CURRENT_SOURCE_DIR}/python/warp ${CMAKE_BINARY_DIR}/py/
    COMMAND find ${CMAKE_BINARY_DIR}/py -xtype l -delete
    COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${CMAKE_BINARY_DIR}/py ${Python_EXECUTABLE} -B
            ${CMAKE_CURRENT_SOURCE_DIR}/tools/generate/gen_stubs.py ${CMAKE_BINARY_DIR}/py/warp
    VERBATIM)
add_dependencies(python_package _weft)

install(TARGETS _weft emulated_cuda LIBRARY DESTINATION warp COMPONENT python)
install(FILES ${CMAKE_BINARY_DIR}/py/warp/__init__.pyi ${CMAKE_BINARY_DIR}/py/warp/py.typed
        DESTINATION warp COMPONENT python)
if(SKBUILD)
    include(cmake/licenses.cmake)
endif()
