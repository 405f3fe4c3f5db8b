# libdevice, NVIDIA's mathematical functions for GPUs, inside the compiler (jit/libdevice.h), so that machines that run Weft
# need no CUDA toolkit. NVIDIA's licence lists this file among those that may be passed on (Attachment A). It is taken from
# the Python package of the dependency group `cuda` (pyproject.toml), which `make setup` and `make wheel` install, so that
# all builds have the same bytes; else from a CUDA toolkit. -DWEFT_LIBDEVICE=FILE names another one.
#
# Included by CMakeLists.txt it finds the file and adds the rule; run as a script (-P) it writes the bytes as C++.
if(CMAKE_SCRIPT_MODE_FILE)
    set(bytes "0")
    set(size 0)
    if(SOURCE)
        file(SIZE ${SOURCE} size)
        file(READ ${SOURCE} bytes HEX)
        string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    endif()
    file(WRITE ${OUTPUT} "#include \"jit/libdevice.h\"\n\nnamespace weft::jit {\n\n"
        "alignas(8) static constexpr unsigned char kBytes[] = {${bytes}};\n\n"
        "std::span<const unsigned char> bundled_libdevice() { return {kBytes, ${size}}; }\n\n}  // namespace weft::jit\n")
    return()
endif()

set(WEFT_LIBDEVICE "" CACHE FILEPATH "libdevice.10.bc, where it is not the Python package's or a CUDA toolkit's")
set(libdevice_license "")
if(WEFT_LIBDEVICE)
    if(NOT EXISTS ${WEFT_LIBDEVICE})
        message(FATAL_ERROR "WEFT_LIBDEVICE is '${WEFT_LIBDEVICE}', and there is no such file")
    endif()
    set(libdevice_file ${WEFT_LIBDEVICE})
else()
    # The file and its licence, of any of NVIDIA's packages. A build without the Python module asks whatever Python there is.
    set(libdevice_python ${Python_EXECUTABLE})
    if(NOT libdevice_python)
        find_program(libdevice_python NAMES python3 python NO_CACHE REQUIRED)
    endif()
    execute_process(COMMAND ${libdevice_python} -c [[
import importlib.metadata
for distribution in importlib.metadata.distributions():
    if (distribution.metadata["Name"] or "").startswith(("nvidia-cuda-nvcc", "nvidia-nvvm")):
        files = distribution.files or []
        bitcode = [file for file in files if file.name == "libdevice.10.bc"]
        license = [file for file in files if file.name == "License.txt"]
        if bitcode and license:
            print(bitcode[0].locate(), license[0].locate(), sep=";", end="")
            break
]] OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
    if(found)
        list(GET found 0 libdevice_file)
        list(GET found 1 libdevice_license)
    else()
        file(GLOB toolkits LIST_DIRECTORIES true /usr/local/cuda-*)
        list(SORT toolkits COMPARE NATURAL ORDER DESCENDING)
        find_file(libdevice_file libdevice.10.bc NO_DEFAULT_PATH NO_CACHE PATH_SUFFIXES nvvm/libdevice
                  PATHS $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda ${toolkits})
    endif()
endif()
if(libdevice_file)
    message(STATUS "libdevice: ${libdevice_file}")
else()
    message(WARNING "There is no libdevice here, so that kernels for CUDA devices that call functions like sin will ask for "
                    "one where they run. `make setup` installs it: pip install nvidia-cuda-nvcc-cu12; "
                    "-DWEFT_LIBDEVICE=.../libdevice.10.bc names a file.")
    set(libdevice_file "")
endif()
set(libdevice_output ${CMAKE_BINARY_DIR}/generated/jit/libdevice_bitcode.cpp)
add_custom_command(OUTPUT ${libdevice_output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${libdevice_file} -DOUTPUT=${libdevice_output} -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${libdevice_file} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
target_sources(weft_jit PRIVATE ${libdevice_output})
