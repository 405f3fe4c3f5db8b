# BLIS, the products of matrices: the single-threaded library, linked statically, because the threads are ours. Debian
# keeps it in a folder of its own beside the variants with threads; elsewhere it is found where libraries are.
find_path(BLIS_INCLUDE_DIR blis.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/blis-serial blis)
find_library(BLIS_LIBRARY NAMES libblis.a PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/blis-serial blis-serial)
if(NOT BLIS_INCLUDE_DIR OR NOT BLIS_LIBRARY)
    message(FATAL_ERROR
        "BLIS was not found. On Debian: apt-get install libblis-serial-dev. Elsewhere install a static, single-threaded "
        "build (https://github.com/flame/blis) and name it with -DBLIS_INCLUDE_DIR= and -DBLIS_LIBRARY=. `make setup` "
        "does this by itself where it may.")
endif()
add_library(weft_blis INTERFACE)
target_include_directories(weft_blis SYSTEM INTERFACE ${BLIS_INCLUDE_DIR})
target_link_libraries(weft_blis INTERFACE ${BLIS_LIBRARY} m)
