#include "engine/halves.h"

#define WEFT_LEVEL base
#include "lanes/formats.h"

namespace weft::emulator {

double half_value(uint16_t bits, bool brain) {
    return brain ? base::wide(base::Brain{bits}) : base::wide(base::Half{bits});
}
uint16_t half_bits(double value, bool brain) {
    return brain ? base::narrow<base::Brain>(value).bits : base::narrow<base::Half>(value).bits;
}

}  // namespace weft::emulator
