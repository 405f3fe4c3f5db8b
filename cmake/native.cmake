# include/weft/native.h as text inside the compiler (jit/native_header.h): it stands in front of every @wp.func_native.
#
# Included by CMakeLists.txt it adds the rule; run as a script (-P) it writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
    file(READ ${SOURCE} text)
    string(REPLACE "#pragma once\n" "" text "${text}")
    file(WRITE ${HEADER} "#pragma once\ninline constexpr char kNativeHeader[] = R\"weft_header(${text})weft_header\";\n")
    return()
endif()

set(native_source ${CMAKE_CURRENT_SOURCE_DIR}/include/weft/native.h)
set(native_header ${CMAKE_BINARY_DIR}/generated/jit/native_header.h)
add_custom_command(OUTPUT ${native_header}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${native_source} -DHEADER=${native_header} -P ${CMAKE_CURRENT_LIST_DIR}/native.cmake
    DEPENDS ${native_source} ${CMAKE_CURRENT_LIST_DIR}/native.cmake VERBATIM)
add_custom_target(weft_native_header DEPENDS ${native_header})
add_dependencies(weft_jit weft_native_header)
