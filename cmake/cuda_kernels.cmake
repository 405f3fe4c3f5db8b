# The runtime's own kernels for CUDA devices (src/devlib/cuda/copy.cpp) as PTX text inside the runtime
# (runtime/cuda_kernels.h): compiled by clang at build time for the oldest GPUs, which all later ones take.
#
# Included by CMakeLists.txt it adds the rules; run as a script (-P) it writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
    file(READ ${SOURCE} text)
    file(WRITE ${HEADER} "#pragma once\ninline constexpr char kCopyKernels[] = R\"weft_ptx(${text})weft_ptx\";\n")
    return()
endif()

set(cuda_kernels_source ${CMAKE_CURRENT_SOURCE_DIR}/src/devlib/cuda/copy.cpp)
set(cuda_kernels_text ${CMAKE_BINARY_DIR}/devlib/cuda/copy.ptx)
set(cuda_kernels_header ${CMAKE_BINARY_DIR}/generated/runtime/cuda_kernels.h)
add_custom_command(OUTPUT ${cuda_kernels_text}
    COMMAND ${WEFT_CLANG} --target=nvptx64-nvidia-cuda -march=sm_75 -Xclang -target-feature -Xclang +ptx63 ${devlib_flags}
            -S ${cuda_kernels_source} -o ${cuda_kernels_text}
    DEPENDS ${cuda_kernels_source} ${devlib_headers} COMMENT "Compiling devlib/cuda/copy.cpp to PTX" VERBATIM)
add_custom_command(OUTPUT ${cuda_kernels_header}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${cuda_kernels_text} -DHEADER=${cuda_kernels_header} -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${cuda_kernels_text} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
add_custom_target(weft_cuda_kernels DEPENDS ${cuda_kernels_header})
add_dependencies(weft_runtime weft_cuda_kernels)
target_include_directories(weft_runtime PRIVATE ${CMAKE_BINARY_DIR}/generated)
