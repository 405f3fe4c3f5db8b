# include/weft/native.h, native_cuda.h and native_nvrtc.h as text inside the compiler (jit/native_header.h): they stand in front of every
# @wp.func_native.
#
# Included by CMakeLists.txt it adds the rule; run as a script (-P) it writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
    set(all "#pragma once\n")
    foreach(name native native_cuda native_nvrtc)
        file(READ ${SOURCE_DIR}/${name}.h text)
        string(REPLACE "#pragma once\n" "" text "${text}")
        string(REPLACE "native" "Native" variable ${name})
        string(REPLACE "_cuda" "Cuda" variable ${variable})
        string(REPLACE "_nvrtc" "Nvrtc" variable ${variable})
        string(APPEND all "inline constexpr char k${variable}Header[] = R\"weft_header(${text})weft_header\";\n")
    endforeach()
    file(WRITE ${HEADER} "${all}")
    return()
endif()

set(native_folder ${CMAKE_CURRENT_SOURCE_DIR}/include/weft)
set(native_header ${CMAKE_BINARY_DIR}/generated/jit/native_header.h)
add_custom_command(OUTPUT ${native_header}
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${native_folder} -DHEADER=${native_header}
            -P ${CMAKE_CURRENT_LIST_DIR}/native.cmake
    DEPENDS ${native_folder}/native.h ${native_folder}/native_cuda.h ${native_folder}/native_nvrtc.h ${CMAKE_CURRENT_LIST_DIR}/native.cmake VERBATIM)
add_custom_target(weft_native_header DEPENDS ${native_header})
add_dependencies(weft_jit weft_native_header)
