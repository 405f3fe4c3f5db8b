# WEFT_CLANG, the clang that compiles src/devlib: of LLVM's own version, as LLVM reads no bitcode that is newer, and with
# code for GPUs. Found and asked when CMake configures, so that a build, also that of a wheel, ends with a message here
# and not with a command that fails.
find_program(WEFT_CLANG NAMES clang++-22)
find_program(WEFT_CLANG NAMES clang++ PATHS /usr/lib/llvm-22/bin)
set(weft_clang_help "On Debian: apt-get install clang-22 (https://apt.llvm.org). Elsewhere: -DWEFT_CLANG=/path/to/clang++, \
for a wheel `pip wheel . --config-settings=cmake.define.WEFT_CLANG=/path/to/clang++`. Machines that run Weft need none.")
if(NOT WEFT_CLANG)
    message(FATAL_ERROR "src/devlib is compiled by clang 22, and there is no clang++-22. ${weft_clang_help}")
endif()
foreach(question --version --print-targets)
    execute_process(COMMAND ${WEFT_CLANG} ${question} OUTPUT_VARIABLE weft_clang_answer ERROR_VARIABLE weft_clang_error
        RESULT_VARIABLE weft_clang_result)
    if(NOT weft_clang_result EQUAL 0)
        message(FATAL_ERROR "src/devlib is compiled by clang 22, and ${WEFT_CLANG} ${question} fails: "
            "${weft_clang_result} ${weft_clang_error}. ${weft_clang_help}")
    endif()
    if(question STREQUAL "--version" AND NOT weft_clang_answer MATCHES "clang version 22\\.")
        string(REGEX REPLACE "\n.*" "" weft_clang_answer "${weft_clang_answer}")
        message(FATAL_ERROR "src/devlib is compiled by clang 22, and ${WEFT_CLANG} is '${weft_clang_answer}'. "
            "${weft_clang_help}")
    endif()
    if(question STREQUAL "--print-targets" AND NOT weft_clang_answer MATCHES "nvptx64")
        message(FATAL_ERROR "src/devlib is compiled for GPUs too, and ${WEFT_CLANG} has no target nvptx64. "
            "${weft_clang_help}")
    endif()
endforeach()
