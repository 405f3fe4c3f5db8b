# find_package that says what to install.
#
# weft_find_package(<name> [<arguments of find_package>...] DEBIAN <package>)
macro(weft_find_package name)
    cmake_parse_arguments(WANTED "" "DEBIAN" "" ${ARGN})
    find_package(${name} QUIET ${WANTED_UNPARSED_ARGUMENTS})
    if(NOT ${name}_FOUND)
        message(FATAL_ERROR
            "${name} (${WANTED_UNPARSED_ARGUMENTS}) was not found. On Debian: apt-get install ${WANTED_DEBIAN}. "
            "Elsewhere install it and name its folder with -D${name}_ROOT=. `make setup` does this by itself where it may.")
    endif()
endmacro()
