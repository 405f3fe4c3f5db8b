# src/devlib as LLVM bitcode inside the compiler (jit/devlib.cpp): compiled by clang at build time, for this machine's kind
# of processor and for GPUs, so that machines that run Weft need no clang.
#
# Included by CMakeLists.txt it adds the rules; run as a script (-P) it writes the bytes as C++.
if(CMAKE_SCRIPT_MODE_FILE)
    set(text "#include \"jit/devlib.h\"\n\nnamespace weft::jit {\n\nnamespace {\n\n")
    set(rows "")
    foreach(pair ${BITCODE})
        string(REPLACE "=" ";" pair "${pair}")
        list(GET pair 0 kind)
        list(GET pair 1 file)
        get_filename_component(name ${file} NAME_WE)
        file(READ ${file} bytes HEX)
        string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
        string(APPEND text "alignas(8) constexpr unsigned char k_${kind}_${name}[] = {${bytes}};\n")
        string(APPEND rows "    {Target::Kind::${kind}, k_${kind}_${name}, sizeof k_${kind}_${name}},\n")
    endforeach()
    string(APPEND text "constexpr DevlibPart kParts[] = {\n${rows}};\n\n}  // namespace\n\n")
    string(APPEND text "std::span<const DevlibPart> devlib_parts() { return kParts; }\n\n}  // namespace weft::jit\n")
    file(WRITE ${OUTPUT} "${text}")
    return()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/clang.cmake)
# No contraction: results do not depend on the processor that the code is compiled for.
set(devlib_flags -std=c++20 -O2 -fno-vectorize -fno-slp-vectorize -ffp-contract=off -fno-math-errno -ffreestanding
    -nostdinc -nogpulib -fno-exceptions -fno-rtti -Wall -Wextra -Werror -Wno-psabi -Wno-bitwise-instead-of-logical -I${CMAKE_CURRENT_SOURCE_DIR}/src)
file(GLOB devlib_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/devlib/*.cpp)
file(GLOB devlib_spatial_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/devlib/spatial/*.cpp)
set(devlib_cuda_sources ${CMAKE_CURRENT_SOURCE_DIR}/src/devlib/cuda/reports.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/src/devlib/cuda/objects.cpp)
file(GLOB_RECURSE devlib_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/devlib/*.h)
set(devlib_pairs "")
set(devlib_files "")
foreach(kind cpu cuda)
    set(devlib_target --target=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
    set(devlib_kind_sources ${devlib_sources})
    if(kind STREQUAL "cuda")
        set(devlib_target --target=nvptx64-nvidia-cuda)
        # What the host has as object code (devlib_levels.cmake), and what it has in the runtime.
        list(APPEND devlib_kind_sources ${devlib_spatial_sources} ${devlib_cuda_sources})
    endif()
    foreach(source ${devlib_kind_sources})
        get_filename_component(name ${source} NAME_WE)
        set(file ${CMAKE_BINARY_DIR}/devlib/${kind}/${name}.bc)
        file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/devlib/${kind})
        add_custom_command(OUTPUT ${file}
            COMMAND ${WEFT_CLANG} ${devlib_target} ${devlib_flags} -c -emit-llvm ${source} -o ${file}
            DEPENDS ${source} ${devlib_headers} COMMENT "Compiling devlib/${name} for ${kind}" VERBATIM)
        list(APPEND devlib_pairs ${kind}=${file})
        list(APPEND devlib_files ${file})
    endforeach()
endforeach()
set(devlib_output ${CMAKE_BINARY_DIR}/generated/jit/devlib_bitcode.cpp)
add_custom_command(OUTPUT ${devlib_output}
    COMMAND ${CMAKE_COMMAND} "-DBITCODE=${devlib_pairs}" -DOUTPUT=${devlib_output} -P ${CMAKE_CURRENT_LIST_DIR}/bitcode.cmake
    DEPENDS ${devlib_files} ${CMAKE_CURRENT_LIST_DIR}/bitcode.cmake VERBATIM)
target_sources(weft_jit PRIVATE ${devlib_output})
