# LLVM 22, linked statically: only the host's target and NVPTX, and (in the extension) hidden symbols, so that it never
# meets the LLVM inside torch, JAX or Triton.
# LLVM's own files look for these, and fail with a missing target where they are not.
weft_find_package(ZLIB DEBIAN zlib1g-dev)
weft_find_package(LLVM 22.1 CONFIG HINTS /usr/lib/llvm-22 DEBIAN llvm-22-dev)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(WEFT_LLVM_HOST X86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(WEFT_LLVM_HOST AArch64)
else()
    message(FATAL_ERROR "Weft compiles kernels for x86-64 and AArch64; this machine is ${CMAKE_SYSTEM_PROCESSOR}")
endif()
separate_arguments(WEFT_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
llvm_map_components_to_libnames(WEFT_LLVM_LIBRARIES
    core support bitreader linker transformutils passes orcjit jitlink object debuginfodwarf targetparser mcparser
    ${WEFT_LLVM_HOST}codegen ${WEFT_LLVM_HOST}asmparser ${WEFT_LLVM_HOST}desc ${WEFT_LLVM_HOST}info
    nvptxcodegen nvptxdesc nvptxinfo)

# Only codegen, jit and the files of runtime/cpu that tools/checks/check_layers.py names see LLVM's headers.
function(weft_use_llvm target scope)
    target_include_directories(${target} SYSTEM ${scope} ${LLVM_INCLUDE_DIRS})
    target_compile_definitions(${target} ${scope} ${WEFT_LLVM_DEFINITIONS})
    target_link_libraries(${target} ${scope} ${WEFT_LLVM_LIBRARIES})
endfunction()
