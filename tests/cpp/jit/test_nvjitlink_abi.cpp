// nvJitLink's interface as jit/nvjitlink.def declares it, against nvJitLink.h if that is installed: compiling is
// most of the test.
#include <gtest/gtest.h>

#ifdef WEFT_NVJITLINK_HEADER
#include WEFT_NVJITLINK_HEADER

#include <cstddef>
#include <cstdint>
#include <type_traits>

#define WEFT_NVJITLINK(name, parameters)                                          \
    static_assert(std::is_same_v<decltype(&name), nvJitLinkResult(*) parameters>, \
                  #name " has other parameters in nvJitLink.h");
#include "jit/nvjitlink.def"
#undef WEFT_NVJITLINK
static_assert(sizeof(nvJitLinkResult) == sizeof(int) && sizeof(nvJitLinkInputType) == sizeof(int));
static_assert(std::is_pointer_v<nvJitLinkHandle>);
static_assert(NVJITLINK_SUCCESS == 0 && NVJITLINK_INPUT_PTX == 2);

TEST(NvJitLink, is_declared_as_in_its_header) { SUCCEED(); }
#else
TEST(NvJitLink, is_declared_as_in_its_header) { GTEST_SKIP() << "nvJitLink.h is not installed"; }
#endif
