// Tiles of an array in shared memory: a thread of a block has kScanItems numbers that follow each other, and
// neighbouring threads read neighbouring addresses. Each warp exchanges its own part, in pieces of 16 bytes, which are
// placed so that no two lanes meet in a bank.
#pragma once

#include <cstdint>

#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

using Piece = std::uint32_t __attribute__((vector_size(16)));
inline constexpr int kScanWarps = kScanThreads / kWarp;
inline constexpr int kWarpNumbers = kScanItems * kWarp;

// Numbers in memory, and their sums. Integers of 32 bits are added in 32 bits, which gives the same low bits.
template <typename Number, typename SumType>
struct PlainNumbers {
    using Stored = Number;
    using Sum = SumType;
    static constexpr bool kHasPieces = true;
    template <typename Plan>
    static Stored load(const Plan&, const char* from, std::int64_t at) {
        return reinterpret_cast<const Number*>(from)[at];
    }
    static void store(const ScanPlan& plan, std::int64_t at, Stored number) {
        reinterpret_cast<Number*>(plan.to)[at] = number;
    }
    static void copy(char* to, const char* from, std::int64_t) {
        *reinterpret_cast<Number*>(to) = *reinterpret_cast<const Number*>(from);
    }
};

// Of a type that the plan says, widened.
template <typename SumType>
struct WidenedNumbers {
    using Stored = SumType;
    using Sum = SumType;
    static constexpr bool kHasPieces = false;
    template <typename Plan>
    static Stored load(const Plan& plan, const char* from, std::int64_t at) {
        return load_number<Sum>(static_cast<Scalar>(plan.scalar), from + at * plan.bytes);
    }
    static void store(const ScanPlan& plan, std::int64_t at, Stored number) {
        const auto scalar = static_cast<Scalar>(plan.scalar);
        store_number(number, scalar, scalar, plan.to + at * plan.bytes);
    }
    static void copy(char* to, const char* from, std::int64_t bytes) {
        for (std::int64_t byte = 0; byte < bytes; ++byte) to[byte] = from[byte];
    }
};

// Calls move(place in the warp's numbers, index in the array) for those numbers of the lane that are there.
template <typename Move>
void for_each_number(std::int64_t begin, std::int64_t count, const Move& move) {
    for (int i = 0; i < kScanItems; ++i) {
        const int place = i * static_cast<int>(kWarp) + lane_in_warp();
        move(place, begin + place, begin + place < count);
    }
}

// The numbers of a warp in shared memory.
template <typename Stored>
class Exchange {
public:
    static constexpr int kNumbers = sizeof(Piece) / sizeof(Stored);  // of a piece
    static constexpr int kPieces = kScanItems / kNumbers;            // of a thread
    using Shared = __attribute__((address_space(3))) Piece;

    explicit Exchange(Shared* pieces) : pieces_(pieces) {}

    Shared& piece(int at) const { return pieces_[(at & ~7) | ((at ^ at >> 3) & 7)]; }
    __attribute__((address_space(3))) Stored& number(int at) const {
        return reinterpret_cast<__attribute__((address_space(3))) Stored*>(&piece(at / kNumbers))[at % kNumbers];
    }

    // Calls visit(number) for the numbers of a lane, and keeps what it changes.
    template <typename Visit>
    void for_each(int lane, const Visit& visit) const {
        struct Numbers {
            Stored numbers[kNumbers];
        };
        for (int i = 0; i < kPieces; ++i) {
            const Piece before = piece(lane * kPieces + i);
            auto some = __builtin_bit_cast(Numbers, before);
            for (Stored& each : some.numbers) visit(each);
            piece(lane * kPieces + i) = __builtin_bit_cast(Piece, some);
        }
    }

    // Brings the warp's numbers here, from `begin` on, and zeros for those behind the last of `count`.
    template <typename Format, typename Plan>
    void load(const Plan& plan, const char* from, std::int64_t begin, std::int64_t count, std::int64_t components,
              std::int64_t component) const {
        if (Format::kHasPieces && plan.in_pieces && begin + kWarpNumbers <= count) {
            const auto* const source = reinterpret_cast<const Piece*>(from + begin * std::int64_t{sizeof(Stored)});
            Piece loaded[kPieces];
            for (int i = 0; i < kPieces; ++i) loaded[i] = source[i * kWarp + lane_in_warp()];
            for (int i = 0; i < kPieces; ++i) piece(i * static_cast<int>(kWarp) + lane_in_warp()) = loaded[i];
        } else {
            for_each_number(begin, count, [&](int place, std::int64_t at, bool is_there) {
                number(place) = is_there ? Format::load(plan, from, at * components + component) : Stored{};
            });
        }
        __nvvm_bar_warp_sync(kAllLanes);
    }

private:
    Shared* pieces_;
};

}  // namespace weft::devlib
