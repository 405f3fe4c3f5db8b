// The lane functions of lanes/integer.def. Sums and products are unsigned, so that overflow is defined.
#include "lanes/floats.h"
#include "lanes/loops.h"

namespace weft::emulator::WEFT_LEVEL {

namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
constexpr bool kSigned = std::is_signed_v<T>;
template <class T>
constexpr u32 kBits = sizeof(T) * 8;
// The type of a product. For 16 unsigned bits it is u32, since int would overflow.
template <class T>
using Product = std::conditional_t<sizeof(T) == 8, std::conditional_t<kSigned<T>, s128, u128>,
                                   std::conditional_t<sizeof(T) == 4, std::conditional_t<kSigned<T>, s64, u64>,
                                                      std::conditional_t<kSigned<T>, s32, u32>>>;

template <class T>
T add(T a, T b) {
    return T(Unsigned<T>(a) + Unsigned<T>(b));
}
template <class T>
T sub(T a, T b) {
    return T(Unsigned<T>(a) - Unsigned<T>(b));
}
template <class T>
T mul(T a, T b) {
    return T(Product<Unsigned<T>>(Unsigned<T>(a)) * Unsigned<T>(b));
}
template <class T>
T mul_high(T a, T b) {
    return T((Product<T>(a) * Product<T>(b)) >> kBits<T>);
}
template <class T>
T mad(T a, T b, T c) {
    return add(mul(a, b), c);
}
template <class T>
T mad_high(T a, T b, T c) {
    return add(mul_high(a, b), c);
}
template <class W, class T>
W mul_wide(T a, T b) {
    return W(a) * W(b);
}
template <class W, class T>
W mad_wide(T a, T b, W c) {
    return add(W(W(a) * W(b)), c);
}
template <class T>
T mul24(T a, T b) {
    const T x = T(u32(a) << 8) >> 8, y = T(u32(b) << 8) >> 8;
    return T(u32(x) * u32(y));
}
// Division by zero gives all ones, and the remainder is the dividend, as in hardware.
template <class T>
T divide(T a, T b) {
    if (b == 0) return T(~Unsigned<T>(0));
    if (kSigned<T> && b == T(-1)) return sub(T(0), a);
    return T(a / b);
}
template <class T>
T remainder(T a, T b) {
    if (b == 0) return a;
    if (kSigned<T> && b == T(-1)) return 0;
    return T(a % b);
}
template <class T>
T smaller(T a, T b) {
    return a < b ? a : b;
}
template <class T>
T larger(T a, T b) {
    return a > b ? a : b;
}
template <class T>
T negate(T a) {
    return sub(T(0), a);
}
template <class T>
T magnitude(T a) {
    return a < 0 ? sub(T(0), a) : a;
}
template <class T, class U>
U difference(T a, T b, U c) {
    return U(c + (a < b ? U(U(b) - U(a)) : U(U(a) - U(b))));
}
s32 saturated(s64 value) { return s32(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value); }
s32 add_saturated(s32 a, s32 b) { return saturated(s64(a) + b); }
s32 sub_saturated(s32 a, s32 b) { return saturated(s64(a) - b); }

template <class T>
Carried<T> with_carry(u128 sum) {
    return {T(sum), u32(sum >> kBits<T>) & 1};
}
template <class T>
Carried<T> add_carry(T a, T b) {
    return with_carry<T>(u128(a) + b);
}
template <class T>
T add_with_carry(T a, T b, CarryIn carry) {
    return T(a + b + carry.bit);
}
template <class T>
Carried<T> add_with_carry_out(T a, T b, CarryIn carry) {
    return with_carry<T>(u128(a) + b + carry.bit);
}
// The condition code of a subtraction is its borrow.
template <class T>
Carried<T> sub_borrow(T a, T b) {
    return with_carry<T>(u128(a) - b);
}
template <class T>
T sub_with_borrow(T a, T b, CarryIn carry) {
    return T(a - b - carry.bit);
}
template <class T>
Carried<T> sub_with_borrow_out(T a, T b, CarryIn carry) {
    return with_carry<T>(u128(a) - b - carry.bit);
}
template <class T>
Carried<T> sum_of(T a, T b, u32 carry) {
    const Carried<Unsigned<T>> sum = with_carry<Unsigned<T>>(u128(Unsigned<T>(a)) + Unsigned<T>(b) + carry);
    return {T(sum.value), sum.carry};
}
template <class T>
Carried<T> mad_low_carry(T a, T b, T c) {
    return sum_of(mul(a, b), c, 0);
}
template <class T>
Carried<T> mad_high_carry(T a, T b, T c) {
    return sum_of(mul_high(a, b), c, 0);
}
template <class T>
T mad_low_with_carry(T a, T b, T c, CarryIn carry) {
    return sum_of(mul(a, b), c, carry.bit).value;
}
template <class T>
T mad_high_with_carry(T a, T b, T c, CarryIn carry) {
    return sum_of(mul_high(a, b), c, carry.bit).value;
}
template <class T>
Carried<T> mad_low_with_carry_out(T a, T b, T c, CarryIn carry) {
    return sum_of(mul(a, b), c, carry.bit);
}
template <class T>
Carried<T> mad_high_with_carry_out(T a, T b, T c, CarryIn carry) {
    return sum_of(mul_high(a, b), c, carry.bit);
}

template <class T>
T bit_and(T a, T b) {
    return a & b;
}
template <class T>
T bit_or(T a, T b) {
    return a | b;
}
template <class T>
T bit_xor(T a, T b) {
    return a ^ b;
}
template <class T>
T bit_not(T a) {
    return T(~a);
}
template <class T>
T is_zero(T a) {
    return a == 0;
}
// Shifts by the width or more shift everything out.
template <class T>
T shift_left(T a, u32 by) {
    return by >= kBits<T> ? T(0) : T(Unsigned<T>(a) << (by & (kBits<T> - 1)));
}
template <class T>
T shift_right(T a, u32 by) {
    const u32 most = kBits<T> - 1;
    if constexpr (kSigned<T>)
        return T(a >> (by > most ? most : by));
    else
        return by > most ? T(0) : T(a >> (by & most));
}
bool and_predicate(bool a, bool b) { return a & b; }
bool or_predicate(bool a, bool b) { return a | b; }
bool xor_predicate(bool a, bool b) { return a ^ b; }
bool not_predicate(bool a) { return !a; }
template <class T>
T same(T a) {
    return a;
}
template <class T>
T select(T a, T b, bool which) {
    return which ? a : b;
}
template <class T>
T select_sign(T a, T b, s32 which) {
    return which >= 0 ? a : b;
}
template <class T>
T select_float_sign(T a, T b, f32 which) {
    return which >= 0 ? a : b;
}
template <class T>
T select_flushed_sign(T a, T b, f32 which) {
    return flushed(which) >= 0 ? a : b;
}
template <class T>
u32 count_ones(T a) {
    return u32(__builtin_popcountll(a));
}
template <class T>
u32 leading_zeros(T a) {
    return a == 0 ? kBits<T> : u32(__builtin_clzll(a)) - (64 - kBits<T>);
}
template <class T>
T reversed(T a) {
    T result = 0;
    for (u32 i = 0; i < kBits<T>; ++i) result |= (a >> i & 1) << (kBits<T> - 1 - i);
    return result;
}
// The index of the highest bit that differs from the sign; all ones if there is none.
template <class T>
u32 find_bit(T a) {
    const Unsigned<T> bits = kSigned<T> && a < 0 ? ~Unsigned<T>(a) : Unsigned<T>(a);
    return bits ? kBits<T> - 1 - leading_zeros(bits) : 0xffffffffu;
}
template <class T>
u32 find_bit_shift(T a) {
    const u32 found = find_bit(a);
    return found == 0xffffffffu ? found : kBits<T> - 1 - found;
}
// Position and length are the low 8 bits of their operands; bits above the number are copies of its sign.
template <class T>
T extract_bits(T a, u32 position, u32 length) {
    const u32 begin = position & 0xff, count = length & 0xff;
    if (count == 0) return 0;
    const u32 last = begin + count - 1 < kBits<T> - 1 ? begin + count - 1 : kBits<T> - 1;
    const bool sign = kSigned<T> && (Unsigned<T>(a) >> last & 1);
    Unsigned<T> result = begin < kBits<T> ? Unsigned<T>(a) >> begin : 0;
    const u32 kept = begin <= last ? last - begin + 1 : 0;
    if (kept < kBits<T>) result &= (Unsigned<T>(1) << kept) - 1;
    if (sign && kept < kBits<T>) result |= Unsigned<T>(~Unsigned<T>(0)) << kept;
    return T(result);
}
template <class T>
T insert_bits(T a, T b, u32 position, u32 length) {
    const u32 begin = position & 0xff, count = length & 0xff;
    if (count == 0 || begin >= kBits<T>) return b;
    const T ones = count >= kBits<T> ? T(~T(0)) : T((T(1) << count) - 1);
    const T field = T(ones << begin);
    return (b & ~field) | (T(a << begin) & field);
}
u32 funnel(u32 low, u32 high, u32 by, bool left) {
    const u64 both = u64(high) << 32 | low;
    return left ? u32(both << by >> 32) : u32(both >> by);
}
u32 funnel_left_wrap(u32 a, u32 b, u32 by) { return funnel(a, b, by & 31, true); }
u32 funnel_right_wrap(u32 a, u32 b, u32 by) { return funnel(a, b, by & 31, false); }
u32 funnel_left_clamp(u32 a, u32 b, u32 by) { return funnel(a, b, by > 32 ? 32 : by, true); }
u32 funnel_right_clamp(u32 a, u32 b, u32 by) { return funnel(a, b, by > 32 ? 32 : by, false); }

u32 byte_of(u32 a, u32 b, u32 index) { return u32((u64(b) << 32 | a) >> (8 * (index & 7))) & 0xff; }
u32 permute_bytes(u32 a, u32 b, u32 selector) {
    u32 result = 0;
    for (u32 i = 0; i < 4; ++i) {
        const u32 pick = selector >> (4 * i) & 15;
        u32 byte = byte_of(a, b, pick);
        if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}
// The modes select four bytes by one number of two bits.
u32 four_bytes(u32 a, u32 b, u32 first, u32 second, u32 third, u32 fourth) {
    return byte_of(a, b, first) | byte_of(a, b, second) << 8 | byte_of(a, b, third) << 16 | byte_of(a, b, fourth) << 24;
}
u32 permute_forward(u32 a, u32 b, u32 c) {
    c &= 3;
    return four_bytes(a, b, c, c + 1, c + 2, c + 3);
}
u32 permute_backward(u32 a, u32 b, u32 c) {
    c &= 3;
    return four_bytes(a, b, c, c + 7, c + 6, c + 5);
}
u32 permute_replicate(u32 a, u32 b, u32 c) {
    c &= 3;
    return four_bytes(a, b, c, c, c, c);
}
u32 permute_edge_left(u32 a, u32 b, u32 c) {
    c &= 3;
    return four_bytes(a, b, c, c > 1 ? c : 1, c > 2 ? c : 2, 3);
}
u32 permute_edge_right(u32 a, u32 b, u32 c) {
    c &= 3;
    return four_bytes(a, b, 0, c < 1 ? c : 1, c < 2 ? c : 2, c);
}
u32 permute_replicate16(u32 a, u32 b, u32 c) {
    c = (c & 1) * 2;
    return four_bytes(a, b, c, c + 1, c, c + 1);
}
u32 any_logic(u32 a, u32 b, u32 c, u32 table) {
    u32 result = 0;
    for (u32 i = 0; i < 8; ++i) {
        if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    return result;
}

#define WEFT_UNSIGNED(KIND, op, fn) KIND(op "u16", fn<u16>) KIND(op "u32", fn<u32>) KIND(op "u64", fn<u64>)
#define WEFT_SIGNED(KIND, op, fn) KIND(op "s16", fn<s16>) KIND(op "s32", fn<s32>) KIND(op "s64", fn<s64>)
#define WEFT_INTEGERS(KIND, op, fn) WEFT_UNSIGNED(KIND, op, fn) WEFT_SIGNED(KIND, op, fn)
#define WEFT_BITS(KIND, op, fn) KIND(op "b16", fn<u16>) KIND(op "b32", fn<u32>) KIND(op "b64", fn<u64>)
#define WEFT_CARRY_MAD(T)                             \
    SLOW("mad.lo.cc." #T, mad_low_carry<T>)           \
    SLOW("mad.hi.cc." #T, mad_high_carry<T>)          \
    SLOW("madc.lo." #T, mad_low_with_carry<T>)        \
    SLOW("madc.hi." #T, mad_high_with_carry<T>)       \
    SLOW("madc.lo.cc." #T, mad_low_with_carry_out<T>) \
    SLOW("madc.hi.cc." #T, mad_high_with_carry_out<T>)

constexpr Row kRows[] = {
#include "lanes/integer.def"
};

}  // namespace

RowTable rows_of_integers() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace weft::emulator::WEFT_LEVEL
