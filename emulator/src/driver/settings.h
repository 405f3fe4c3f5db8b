#pragma once
// Settings of the emulated devices from the environment: WEFT_EMULATED_ARCH and so on, as docs/guide/emulated-cuda.md
// lists them. Read once. An empty setting counts as absent.
#include <cstdint>
#include <string>

#include "driver/abi.h"
#include "driver/order.h"

namespace weft::emulator {

struct Settings {
    int architecture = 90;
    int version = 13000;                  // of CUDA, as the driver reports it
    uint64_t memory = uint64_t(8) << 30;  // per device
    uint64_t most_instructions = 0;       // of a warp in one block; 0: no limit
    bool finds_races = true;
    Order order;
    // Injected failure: function, call and code; an empty name: none.
    std::string failing;
    uint64_t failing_call = 0;
    CUresult failure = CUDA_SUCCESS;
    // All errors in the settings, with the expected values, in one text. If it is not empty, the driver does not start.
    std::string problem;

    static const Settings& of_environment();
};

}  // namespace weft::emulator
