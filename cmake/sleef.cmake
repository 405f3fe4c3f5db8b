# SLEEF, the SIMD math library: the shared library that compiled kernels call into.
find_path(SLEEF_INCLUDE_DIR sleef.h REQUIRED)
find_library(SLEEF_LIBRARY sleef REQUIRED)
file(STRINGS ${SLEEF_INCLUDE_DIR}/sleef.h sleef_version_lines REGEX "#define SLEEF_VERSION_(MAJOR|MINOR|PATCHLEVEL) ")
string(REGEX MATCHALL "[0-9]+" sleef_version_parts "${sleef_version_lines}")
list(JOIN sleef_version_parts "." SLEEF_VERSION)
add_library(weft_sleef INTERFACE)
target_include_directories(weft_sleef SYSTEM INTERFACE ${SLEEF_INCLUDE_DIR})
target_link_libraries(weft_sleef INTERFACE ${SLEEF_LIBRARY})
