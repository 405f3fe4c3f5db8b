# lld, where it is there: LLVM's libraries link in a second instead of ten. GCC looks for a linker called ld.lld in the
# folders of -B and on PATH, and Debian's is in LLVM's own folder.
find_program(WEFT_LLD ld.lld HINTS /usr/lib/llvm-22/bin)
if(WEFT_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    cmake_path(GET WEFT_LLD PARENT_PATH lld_folder)
    add_link_options(-B${lld_folder} -fuse-ld=lld)
elseif(WEFT_LLD)
    add_link_options(--ld-path=${WEFT_LLD})
endif()
# LLVM names libraries (z3, libxml2) that the parts in use do not need.
add_link_options(-Wl,--as-needed)
