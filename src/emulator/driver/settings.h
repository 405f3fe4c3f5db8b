#pragma once
// What the environment says of the emulated devices: WEFT_EMULATED_ARCH and so on, as docs/guide/emulated-cuda.md lists
// them. Read once. A setting that is empty is as one that is not there.
#include <cstdint>
#include <string>

#include "emulator/driver/abi.h"
#include "emulator/driver/task.h"

namespace weft::emulator {

struct Settings {
    int architecture = 90;
    int version = 13000;                  // of CUDA, that the driver says it has
    uint64_t memory = uint64_t(8) << 30;  // of a device
    uint64_t most_instructions = 0;       // of a warp in one block; 0: no limit
    bool finds_races = true;
    Order order;
    // The call of a function that fails; no name: none.
    std::string failing;
    uint64_t failing_call = 0;
    CUresult failure = CUDA_SUCCESS;
    // What is wrong with them, and what was expected, all in one text. Empty: nothing. The driver does not start else.
    std::string problem;

    static const Settings& of_environment();
};

}  // namespace weft::emulator
