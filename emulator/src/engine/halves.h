#pragma once
// Floats of 16 bits outside of lane functions.
#include <cstdint>

namespace weft::emulator {

double half_value(uint16_t bits, bool brain);
uint16_t half_bits(double value, bool brain);

}  // namespace weft::emulator
