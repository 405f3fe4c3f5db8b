// Products of small matrices, their loads, and copies that are finished later. The layouts of fragments are those of
// the PTX ISA: "Matrix Fragments for mma".
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/decoder.h"
#include "engine/halves.h"
#include "engine/warp.h"

namespace weft::emulator {

namespace {

Warp& warp_of(Lanes& lanes) { return static_cast<Warp&>(lanes); }

const RegisterCode* list_of(Lanes& lanes, const Instruction& instruction) {
    return warp_of(lanes).frame().function->lists.data() + instruction.extra;
}

void expect_whole_warp(const Lanes& lanes) {
    if (lanes.mask == kAllLanes) return;
    const int lane = __builtin_ctz(~lanes.mask);
    throw Fault(FaultKind::MissingLane, __builtin_ctz(lanes.mask),
                "lane " + std::to_string(lane) + " is missing: the instruction needs all 32 lanes of the warp");
}

// The sum of products and an element of c. Tensor cores add in an order of their own and need not round to the nearest:
// PTX promises single precision. Here the products are added exactly, as far as 53 bits hold them, and the sum is
// rounded toward zero.
float toward_zero(double sum) {
    const auto nearest = float(sum);
    if (!std::isfinite(sum)) return nearest;
    if (std::isinf(nearest)) return std::copysign(std::numeric_limits<float>::max(), nearest);
    return std::fabs(double(nearest)) > std::fabs(sum) ? std::nextafter(nearest, 0.0f) : nearest;
}

// d = a b + c of 16 x k and k x 8. A register has `per_register` elements that are neighbours along k, and value(bits,
// i) is one of them.
template <class Value>
void multiply(Lanes& lanes, const Instruction& instruction, int per_register, const Value& value) {
    expect_whole_warp(lanes);
    const RegisterCode* list = list_of(lanes, instruction);
    const int depth = instruction.flags, steps = depth / (4 * per_register);  // registers along k
    double a[16][16], b[16][8];
    for (int lane = 0; lane < kLanes; ++lane) {
        const int group = lane / 4, in_group = lane % 4;
        for (int step = 0; step < steps; ++step) {
            for (int i = 0; i < per_register; ++i) {
                const int k = step * 4 * per_register + in_group * per_register + i;
                for (int half = 0; half < 2; ++half) {
                    const RegisterCode code = list[4 + 2 * step + half];
                    a[group + 8 * half][k] = value(lanes.at<uint32_t>(code)[lane], i);
                }
                b[k][group] = value(lanes.at<uint32_t>(list[4 + 2 * steps + step])[lane], i);
            }
        }
    }
    float result[4][kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
        for (int i = 0; i < 4; ++i) {
            const int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
            double sum = lanes.at<float>(list[4 + 3 * steps + i])[lane];
            for (int k = 0; k < depth; ++k) sum += a[row][k] * b[k][column];
            result[i][lane] = toward_zero(sum);
        }
    }
    for (int i = 0; i < 4; ++i) std::memcpy(lanes.at<float>(list[i]), result[i], sizeof result[i]);
}

}  // namespace

namespace handlers {

void multiply_halves(Lanes& lanes, const Instruction& instruction) {
    multiply(lanes, instruction, 2, [](uint32_t bits, int i) { return half_value(uint16_t(bits >> (16 * i)), false); });
}

void multiply_brains(Lanes& lanes, const Instruction& instruction) {
    multiply(lanes, instruction, 2, [](uint32_t bits, int i) { return half_value(uint16_t(bits >> (16 * i)), true); });
}

// The low 13 bits are not read.
void multiply_tf32(Lanes& lanes, const Instruction& instruction) {
    multiply(lanes, instruction, 1,
             [](uint32_t bits, int) { return double(__builtin_bit_cast(float, bits & 0xffffe000)); });
}

// Fused multiply-adds in the order of k.
void multiply_doubles(Lanes& lanes, const Instruction& instruction) {
    expect_whole_warp(lanes);
    const RegisterCode* list = list_of(lanes, instruction);
    const double* const a = lanes.at<double>(list[2]);
    const double* const b = lanes.at<double>(list[3]);
    double result[2][kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
        for (int i = 0; i < 2; ++i) {
            const int row = lane / 4, column = lane % 4 * 2 + i;
            double sum = lanes.at<double>(list[4 + i])[lane];
            for (int k = 0; k < 4; ++k) sum = std::fma(a[row * 4 + k], b[column * 4 + k], sum);
            result[i][lane] = sum;
        }
    }
    for (int i = 0; i < 2; ++i) std::memcpy(lanes.at<double>(list[i]), result[i], sizeof result[i]);
}

// Lanes 8 m to 8 m + 7 have the addresses of the rows of matrix m.
void load_matrix(Lanes& lanes, const Instruction& instruction) {
    expect_whole_warp(lanes);
    Warp& warp = warp_of(lanes);
    const RegisterCode* list = list_of(lanes, instruction);
    uint64_t rows[kLanes];
    std::memcpy(rows, lanes.at<uint64_t>(instruction.source[0]), sizeof rows);
    for (int matrix = 0; matrix < instruction.count; ++matrix) {
        uint16_t values[8][8];
        for (int row = 0; row < 8; ++row) {
            const int lane = 8 * matrix + row;
            const std::byte* place =
                warp.reach(ptx::Space::Shared, lane, rows[lane] + uint64_t(instruction.immediate), 16, Access::Load);
            std::memcpy(values[row], place, 16);
        }
        uint32_t* const result = lanes.at<uint32_t>(list[matrix]);
        for (int lane = 0; lane < kLanes; ++lane) {
            const int row = lane / 4, column = lane % 4 * 2;
            result[lane] = instruction.flags ? values[column][row] | uint32_t(values[column + 1][row]) << 16
                                             : values[row][column] | uint32_t(values[row][column + 1]) << 16;
        }
    }
}

void copy_async(Lanes& lanes, const Instruction& instruction) {
    Warp& warp = warp_of(lanes);
    for (Mask rest = lanes.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const uint32_t read = lanes.at<uint32_t>(instruction.source[2])[lane];
        if (read > instruction.width) {
            throw Fault(
                FaultKind::OutOfBounds, lane,
                "cp.async reads " + std::to_string(read) + " bytes; it copies " + std::to_string(instruction.width));
        }
        warp.start_copy(lane, lanes.at<uint64_t>(instruction.source[0])[lane] + uint64_t(instruction.immediate),
                        lanes.at<uint64_t>(instruction.source[1])[lane] + uint64_t(int64_t(int32_t(instruction.extra))),
                        instruction.width, read);
    }
}

void commit_copies(Lanes& lanes, const Instruction&) { warp_of(lanes).commit_copies(); }

void wait_copies(Lanes& lanes, const Instruction& instruction) {
    warp_of(lanes).wait_for_copies(uint32_t(instruction.immediate), instruction.flags != 0);
}

}  // namespace handlers

void Warp::start_copy(int lane, uint64_t to, uint64_t from, uint32_t size, uint32_t read) {
    AsyncCopy made{lane, groups_[lane], size, to, {}};
    if (from & (size - 1)) {
        throw Fault(FaultKind::Misaligned, lane,
                    "cp.async of " + std::to_string(size) + " bytes from " + hexadecimal(from) +
                        ", which is no multiple of " + std::to_string(size));
    }
    // Only as many bytes as it reads need to be there.
    for (uint32_t at = 0; at < read;) {
        const uint32_t part = read - at >= 4 ? 4 : 1;
        std::memcpy(made.bytes + at, reach(ptx::Space::Global, lane, from + at, part, Access::Load), part);
        at += part;
    }
    std::byte spoiled[16];
    std::memset(spoiled, 0xdb, sizeof spoiled);
    reach(ptx::Space::Shared, lane, to, size, Access::Store, spoiled);
    copies_.push_back(made);
}

void Warp::commit_copies() {
    for (Mask rest = mask; rest; rest &= rest - 1) ++groups_[__builtin_ctz(rest)];
}

void Warp::wait_for_copies(uint32_t but, bool all) {
    std::erase_if(copies_, [&](const AsyncCopy& one) {
        if (!(mask >> one.lane & 1)) return false;
        // groups_[lane] is the number of the group that is not committed yet
        if (!all && one.group + but >= groups_[one.lane]) return false;
        reach(ptx::Space::Shared, one.lane, one.to, one.size, Access::Store, one.bytes);
        return true;
    });
}

}  // namespace weft::emulator
