# The licences of what a wheel carries besides Weft: inside its library (LLVM, BLIS, nanobind, libdevice) or beside it as
# shared libraries (TBB, SLEEF, zstd). Texts come from the packages that the build uses, so that they always fit.
set(licenses ${SKBUILD_METADATA_DIR}/licenses/third_party)
foreach(pair LLVM:llvm-22-dev oneTBB:libtbb-dev SLEEF:libsleef-dev BLIS:libblis-serial-dev zstd:libzstd-dev)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 library)
    list(GET pair 1 package)
    set(text /usr/share/doc/${package}/copyright)
    if(NOT EXISTS ${text})
        message(FATAL_ERROR "A wheel must carry the licence of ${library}, expected in ${text} (Debian package ${package})")
    endif()
    file(REAL_PATH ${text} text)
    install(FILES ${text} DESTINATION ${licenses} RENAME ${library}.txt COMPONENT python)
endforeach()
# nanobind, and the hash map inside it, whose licence stands at the top of its header.
execute_process(COMMAND ${Python_EXECUTABLE} -c [[
import importlib.metadata
files = importlib.metadata.files("nanobind")
for name in "LICENSE", "robin_map.h":
    print(next(file for file in files if file.name == name).locate(), end=";")
]] OUTPUT_VARIABLE files COMMAND_ERROR_IS_FATAL ANY)
list(GET files 0 nanobind_license)
list(GET files 1 robin_map_header)
install(FILES ${nanobind_license} DESTINATION ${licenses} RENAME nanobind.txt COMPONENT python)
file(READ ${robin_map_header} robin_map_license LIMIT 2000)
string(REGEX REPLACE "\\*/.*" "*/\n" robin_map_license "${robin_map_license}")
file(WRITE ${CMAKE_BINARY_DIR}/licenses/robin_map.txt "${robin_map_license}")
install(FILES ${CMAKE_BINARY_DIR}/licenses/robin_map.txt DESTINATION ${licenses} COMPONENT python)
# A wheel without libdevice would have no CUDA kernels that call mathematical functions.
if(NOT libdevice_license)
    message(FATAL_ERROR "A wheel must carry libdevice and its licence, expected from the Python package "
                        "nvidia-cuda-nvcc-cu12 (the dependency group `cuda` of pyproject.toml)")
endif()
install(FILES ${libdevice_license} DESTINATION ${licenses} RENAME libdevice.txt COMPONENT python)
