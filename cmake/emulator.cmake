# weft-emulated-cuda.so, the emulated device (src/emulator): a library of its own that has the CUDA driver's functions and uses
# nothing but the standard library. The lane functions are compiled twice, for any processor and for one with AVX2 and FMA;
# which is used is decided when the library runs.
file(GLOB_RECURSE emulator_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/emulator/*.cpp)
file(GLOB emulator_lanes CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/emulator/lanes/*.cpp)
list(REMOVE_ITEM emulator_sources ${emulator_lanes})
set(emulator_table ${CMAKE_CURRENT_SOURCE_DIR}/src/emulator/lanes/table.cpp)
list(REMOVE_ITEM emulator_lanes ${emulator_table})
# Results must not depend on the processor: no contraction. Loops over lanes become vectors.
set(emulator_flags -O2 -ftree-vectorize -fno-math-errno -fno-trapping-math -ffp-contract=off -fvisibility=hidden)
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    list(APPEND emulator_flags -fvect-cost-model=dynamic)
endif()

function(weft_emulator_lanes level)
    add_library(emulator_lanes_${level} OBJECT ${emulator_lanes})
    target_include_directories(emulator_lanes_${level} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
    target_compile_definitions(emulator_lanes_${level} PRIVATE WEFT_LEVEL=${level})
    target_compile_options(emulator_lanes_${level} PRIVATE ${emulator_flags} ${ARGN})
endfunction()
weft_emulator_lanes(base)
set(emulator_objects $<TARGET_OBJECTS:emulator_lanes_base>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    weft_emulator_lanes(wide -march=x86-64-v3)
    list(APPEND emulator_objects $<TARGET_OBJECTS:emulator_lanes_wide>)
    set_source_files_properties(${emulator_table} PROPERTIES COMPILE_DEFINITIONS WEFT_WIDE_LANES)
endif()

# The objects: for the library, and for the tests, which look inside.
add_library(emulator_core OBJECT ${emulator_sources} ${emulator_table})
target_include_directories(emulator_core PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/src)
target_compile_options(emulator_core PRIVATE ${emulator_flags})
add_library(emulated_cuda MODULE $<TARGET_OBJECTS:emulator_core> ${emulator_objects})
set_target_properties(emulated_cuda PROPERTIES PREFIX "" OUTPUT_NAME weft-emulated-cuda)
target_link_libraries(emulated_cuda PRIVATE Threads::Threads)
# The standard library is inside, and calls stay inside: the process may have any other, and the real driver too.
set(emulator_symbols ${CMAKE_CURRENT_LIST_DIR}/emulator.map)
target_link_options(emulated_cuda PRIVATE -Wl,--gc-sections -static-libstdc++ -static-libgcc -Wl,-Bsymbolic -Wl,--version-script=${emulator_symbols})
set_target_properties(emulated_cuda PROPERTIES LINK_DEPENDS ${emulator_symbols})

if(WEFT_BUILD_TESTS)
    file(GLOB_RECURSE emulator_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/cpp/emulator/*.cpp)
    if(emulator_tests)
        add_executable(test_emulator ${emulator_tests} $<TARGET_OBJECTS:emulator_core> ${emulator_objects})
        target_include_directories(test_emulator PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/tests/cpp)
        add_dependencies(test_emulator emulated_cuda)
        target_compile_definitions(test_emulator PRIVATE WEFT_EMULATED_CUDA="$<TARGET_FILE:emulated_cuda>")
        find_path(CUDA_HEADER_DIR cuda.h PATHS /usr/local/cuda/include /usr/local/cuda-13.0/include NO_DEFAULT_PATH)
        if(CUDA_HEADER_DIR)
            set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/tests/cpp/emulator/test_driver_abi.cpp PROPERTIES
                COMPILE_DEFINITIONS WEFT_CUDA_HEADER="${CUDA_HEADER_DIR}/cuda.h"
                INCLUDE_DIRECTORIES "${CUDA_HEADER_DIR}")
        endif()
        target_link_libraries(test_emulator PRIVATE GTest::gtest GTest::gtest_main Threads::Threads ${CMAKE_DL_LIBS})
        add_test(NAME emulator COMMAND test_emulator WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    endif()
endif()
