# The runtime's own kernels for CUDA devices (src/devlib/cuda) as PTX text inside the runtime (runtime/cuda_kernels.h):
# compiled by clang at build time for the oldest GPUs, which all later ones take.
#
# Included by CMakeLists.txt it adds the rules; run as a script (-P) it writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
    set(header "#pragma once\n")
    foreach(source ${SOURCES})
        get_filename_component(name ${source} NAME_WE)
        file(READ ${source} text)
        string(APPEND header "inline constexpr char k_${name}_ptx[] = R\"weft_ptx(${text})weft_ptx\";\n")
    endforeach()
    file(WRITE ${HEADER} "${header}")
    return()
endif()

# Files that give the bounds of their launches, for which clang has attributes in CUDA alone. They use no CUDA headers.
set(cuda_kernels_in_cuda matmul_f32 matmul_f64 matmul_f16 matmul_bf16 matmul_tf32)
# Those that need tensor cores, which GPUs of sm_80 and later have.
set(cuda_kernels_of_sm_80 matmul_f16 matmul_bf16 matmul_tf32)
set(cuda_kernels_texts "")
foreach(name copy reduce reduce_columns scan sort radix_sort_8 radix_sort_16 radix_sort_32 radix_sort_64 sort_segments
        run_length_encode matmul_f32 matmul_f64 matmul_f16 matmul_bf16 matmul_tf32 matmul_small add condition refit build
        hash_grid voxels)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/src/devlib/cuda/${name}.cpp)
    set(text ${CMAKE_BINARY_DIR}/devlib/cuda/${name}.ptx)
    set(architecture sm_75)
    set(version ptx63)
    if(name IN_LIST cuda_kernels_of_sm_80)
        set(architecture sm_80)
        set(version ptx70)
    endif()
    set(language --target=nvptx64-nvidia-cuda -march=${architecture})
    if(name IN_LIST cuda_kernels_in_cuda)
        set(language -x cuda --cuda-device-only --cuda-gpu-arch=${architecture} --cuda-path=/none -nocudainc -nocudalib)
    endif()
    add_custom_command(OUTPUT ${text}
        COMMAND ${WEFT_CLANG} ${language} -Xclang -target-feature -Xclang +${version}
                ${devlib_flags} -isystem ${CMAKE_CURRENT_SOURCE_DIR}/src/devlib/freestanding -S ${source} -o ${text}
        DEPENDS ${source} ${devlib_headers} ${CMAKE_CURRENT_SOURCE_DIR}/src/types/types.def
                ${CMAKE_CURRENT_SOURCE_DIR}/src/types/float_format.h
        COMMENT "Compiling devlib/cuda/${name}.cpp to PTX" VERBATIM)
    list(APPEND cuda_kernels_texts ${text})
endforeach()
set(cuda_kernels_header ${CMAKE_BINARY_DIR}/generated/runtime/cuda_kernels.h)
add_custom_command(OUTPUT ${cuda_kernels_header}
    COMMAND ${CMAKE_COMMAND} "-DSOURCES=${cuda_kernels_texts}" -DHEADER=${cuda_kernels_header}
            -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${cuda_kernels_texts} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
add_custom_target(weft_cuda_kernels DEPENDS ${cuda_kernels_header})
add_dependencies(weft_runtime weft_cuda_kernels)
target_include_directories(weft_runtime PRIVATE ${CMAKE_BINARY_DIR}/generated)
