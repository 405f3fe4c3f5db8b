// The driver itself: its version, its errors, the addresses of its functions.
#include <cstring>

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

CUresult cuGetProcAddress_v2(const char* symbol, void** address, int version, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
    return entry(
        [&] {
            require(symbol && address && version <= State::instance().version());
            *address = nullptr;
            for (const Entry& one : kEntries) {
                if (is_named(one.name, symbol)) *address = one.address;
            }
            // 0: found, 1: there is no such function
            if (status) *status = *address ? 0 : 1;
            require(*address || status, CUDA_ERROR_NOT_FOUND);
        },
        false);
}

}  // extern "C"

}  // namespace weft::emulator
