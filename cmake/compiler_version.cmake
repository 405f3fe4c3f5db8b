# The compiler's version as the disk cache sees it: a hash of every source that can change what a kernel compiles to. It is
# taken at build time, so that a cache never outlives the compiler that filled it.
#
# Included by CMakeLists.txt it adds the rule; run as a script (-P) it writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
    file(GLOB_RECURSE sources RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/*.h ${SOURCE_DIR}/*.cpp ${SOURCE_DIR}/*.def)
    list(FILTER sources EXCLUDE REGEX "^(bindings|frontend)/")
    list(SORT sources)
    set(hashes "")
    foreach(source ${sources})
        file(SHA256 ${SOURCE_DIR}/${source} hash)
        string(APPEND hashes "${source} ${hash}\n")
    endforeach()
    string(SHA256 version "${hashes}")
    # Written only when it differs: configure_file leaves an equal file, and what depends on it, alone.
    set(text "#pragma once\n#define WEFT_COMPILER_VERSION \"${version}\"\n#define WEFT_SLEEF_VERSION \"${SLEEF_VERSION}\"\n")
    file(CONFIGURE OUTPUT ${HEADER} CONTENT "${text}" @ONLY)
    return()
endif()

set(compiler_version_header ${CMAKE_BINARY_DIR}/generated/jit/compiler_version.h)
file(GLOB_RECURSE compiler_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*.h
     ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/src/*.def)
list(FILTER compiler_sources EXCLUDE REGEX "/src/(bindings|frontend)/")
add_custom_command(OUTPUT ${compiler_version_header}
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR}/src -DHEADER=${compiler_version_header}
            -DSLEEF_VERSION=${SLEEF_VERSION} -P ${CMAKE_CURRENT_LIST_DIR}/compiler_version.cmake
    DEPENDS ${compiler_sources} ${CMAKE_CURRENT_LIST_DIR}/compiler_version.cmake
    COMMENT "Hashing the compiler's sources" VERBATIM)
add_custom_target(weft_compiler_version DEPENDS ${compiler_version_header})
add_dependencies(weft_jit weft_compiler_version)
get_target_property(jit_type weft_jit TYPE)
if(NOT jit_type STREQUAL "INTERFACE_LIBRARY")
    target_include_directories(weft_jit PRIVATE ${CMAKE_BINARY_DIR}/generated)
endif()
