// The driver itself: its version, its errors, the addresses of its functions.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "driver/state.h"

namespace weft::emulator {

namespace {

struct Entry {
    const char* name;
    void* address;
};
const Entry kEntries[] = {
#define WEFT_DRIVER(name, parameters) {#name, reinterpret_cast<void*>(name)},
#include "driver/driver.def"
#undef WEFT_DRIVER
};

struct Result {
    CUresult result;
    const char *name, *text;
};
constexpr Result kResults[] = {
#define WEFT_RESULT(name, number, text) {name, #name, text},
#include "driver/codes.def"
};

const Result& result_row(CUresult result) {
    for (const Result& row : kResults) {
        if (row.result == result) return row;
    }
    fail(CUDA_ERROR_INVALID_VALUE);
}

// Functions that are newer than CUDA 11.0, and the version that they came with.
struct Since {
    std::string_view name;
    int version;
};
constexpr Since kSince[] = {
#define WEFT_SINCE(name, base, cuda) {#name, cuda},
#include "driver/codes.def"
};

int version_of(std::string_view name) {
    const auto* const found = std::ranges::find(kSince, name, &Since::name);
    return found == std::end(kSince) ? 0 : found->version;
}

// Whether an entry is the function of this name, or a later version of it: "cuMemAlloc" is now "cuMemAlloc_v2".
bool is_named(const char* entry, const char* name) {
    const size_t length = std::strlen(name);
    if (std::strncmp(entry, name, length) != 0) return false;
    const char* rest = entry + length;
    return *rest == 0 || (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '2' && rest[2] <= '9' && rest[3] == 0);
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int flags) {
    return entry(
        [&] {
            require(flags == 0);
            const std::string& problem = Settings::of_environment().problem;
            note_refusal(problem);
            require(problem.empty());
            State::instance().initialised = true;
        },
        false);
}

CUresult cuDriverGetVersion(int* version) {
    return entry(
        [&] {
            require(version);
            *version = State::instance().version();
        },
        false);
}

CUresult cuGetErrorName(CUresult error, const char** text) {
    return entry(
        [&] {
            require(text);
            *text = nullptr;
            *text = result_row(error).name;
        },
        false);
}

CUresult cuGetErrorString(CUresult error, const char** text) {
    return entry(
        [&] {
            require(text);
            *text = nullptr;
            *text = result_row(error).text;
        },
        false);
}

// The newest form of the function that the program's version of CUDA and the driver have.
CUresult cuGetProcAddress_v2(const char* symbol, void** address, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    return entry(
        [&] {
            require(symbol && address && version >= 0 && flags <= 2);
            *address = nullptr;
            bool is_known = false;
            for (const Entry& one : kEntries) {
                if (!is_named(one.name, symbol)) continue;
                is_known = true;
                if (version_of(one.name) <= std::min(version, State::version())) *address = one.address;
            }
            const int found = *address   ? CU_GET_PROC_ADDRESS_SUCCESS
                              : is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                         : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
            if (status) *status = found;
            require(*address || status, CUDA_ERROR_NOT_FOUND);
        },
        false);
}

}  // extern "C"

}  // namespace weft::emulator
