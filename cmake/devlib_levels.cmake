# src/devlib/spatial as object code inside the runtime: what is too large to be compiled with every kernel. Each source is
# compiled once for every level of processors, by clang at build time; runtime/cpu/library.h finds the best level that the
# machine has. Symbols carry their level (weft_lib_name_v3), the table of them is read from the object code itself.
#
# Included by CMakeLists.txt it adds the rules; run as a script (-P) it writes the table as C++.
if(CMAKE_SCRIPT_MODE_FILE)
    set(declarations "")
    set(rows "")
    list(GET LEVELS 0 first)
    foreach(object ${OBJECTS})
        execute_process(COMMAND ${NM} --defined-only --extern-only --format=posix ${object} OUTPUT_VARIABLE lines
            COMMAND_ERROR_IS_FATAL ANY)
        string(REGEX MATCHALL "[^\n]+" lines "${lines}")
        foreach(line ${lines})
            string(REGEX REPLACE " .*" "" symbol "${line}")
            if(symbol MATCHES "devlib_${first}")
                continue()
            endif()
            if(NOT symbol MATCHES "^weft_lib_.*_${first}$")
                message(FATAL_ERROR "${object} defines ${symbol}, which is neither in weft::devlib nor has a name made with "
                    "WEFT_LIBRARY(): the code for several levels of processors would clash")
            endif()
            string(REGEX REPLACE "_${first}$" "" name "${symbol}")
            set(addresses "")
            foreach(level ${LEVELS})
                string(APPEND declarations "void ${name}_${level}();\n")
                string(APPEND addresses "reinterpret_cast<void*>(${name}_${level}), ")
            endforeach()
            string(APPEND rows "    {\"${name}\", {${addresses}}},\n")
        endforeach()
    endforeach()
    string(REPLACE ";" "\", \"" levels "${LEVELS}")
    file(WRITE ${OUTPUT} "#include \"runtime/cpu/library.h\"\n\nextern \"C\" {\n${declarations}}\n\nnamespace weft::runtime {\n\n"
        "namespace {\n\nconstexpr const char* kLevels[] = {\"${levels}\"};\nconst LibraryRow kRows[] = {\n${rows}};\n\n"
        "}  // namespace\n\nstd::span<const char* const> library_levels() { return kLevels; }\n"
        "std::span<const LibraryRow> library_rows() { return kRows; }\n\n}  // namespace weft::runtime\n")
    return()
endif()

set(level_names base)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(level_names v2 v3 v4)
endif()
# As for the bitcode no contraction, unless the source says so; but loops and straight code become vectors.
set(level_flags -std=c++20 -O3 -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -fno-trapping-math
    -ffreestanding -nostdinc -fno-exceptions -fno-rtti -fno-asynchronous-unwind-tables -Wall -Wextra -Werror -Wno-psabi
    -I${CMAKE_CURRENT_SOURCE_DIR}/src)
list(GET level_names 0 first_level)
set(first_objects "")
foreach(level ${level_names})
    set(level_target --target=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
    if(NOT level STREQUAL "base")
        list(APPEND level_target -march=x86-64-${level})
    endif()
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/devlib/${level})
    foreach(source ${devlib_spatial_sources})
        get_filename_component(name ${source} NAME_WE)
        set(object ${CMAKE_BINARY_DIR}/devlib/${level}/${name}.o)
        # Of equal templates the linker keeps one, and that must not be the one for a newer processor: each level has a
        # namespace of its own.
        add_custom_command(OUTPUT ${object}
            COMMAND ${WEFT_CLANG} ${level_target} ${level_flags} -DWEFT_LEVEL=${level} -Ddevlib=devlib_${level}
                    -c ${source} -o ${object}
            DEPENDS ${source} ${devlib_headers} COMMENT "Compiling devlib/spatial/${name} for ${level}" VERBATIM)
        set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
        target_sources(weft_runtime PRIVATE ${object})
        if(level STREQUAL first_level)
            list(APPEND first_objects ${object})
        endif()
    endforeach()
endforeach()
set(levels_output ${CMAKE_BINARY_DIR}/generated/runtime/library_table.cpp)
add_custom_command(OUTPUT ${levels_output}
    COMMAND ${CMAKE_COMMAND} "-DOBJECTS=${first_objects}" "-DLEVELS=${level_names}" -DNM=${CMAKE_NM} -DOUTPUT=${levels_output}
            -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${first_objects} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
target_sources(weft_runtime PRIVATE ${levels_output})
