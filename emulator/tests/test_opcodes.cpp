// Each row of lanes/*.def, with each of its modifiers, on special and random numbers, with all lanes and with some:
// against the oracle. An opcode without an oracle fails.
#include <cmath>
#include <random>
#include <set>

#include "harness.h"
#include "lanes/table.h"
#include "oracle.h"

namespace weft::emulator {

namespace {

using oracle::Answer;
using oracle::Input;
using oracle::Oracle;

Oracle oracle_of(const std::string& opcode) {
    const oracle::Words words = oracle::words_of(opcode);
    for (const auto& family : {oracle::convert_oracle, oracle::compare_oracle, oracle::half_oracle,
                               oracle::float_oracle, oracle::integer_oracle}) {
        if (Oracle found = family(words)) return found;
    }
    return {};
}

// Numbers that are special in some type of that width, and random ones: any bits, floats of moderate size, small
// integers.
class Numbers {
public:
    uint64_t next(Slot slot) {
        if (slot.bits == 1) return random_() & 1;
        const uint64_t ones = slot.bits == 64 ? ~uint64_t(0) : (uint64_t(1) << slot.bits) - 1;
        switch (random_() % 8) {
            case 0:
                return special(slot) & ones;
            case 1:
                return random_() & ones;
            case 2:
                return (random_() % 70) & ones;
            case 3:
                return (0 - random_() % 70) & ones;
            default:
                return moderate(slot) & ones;
        }
    }

private:
    static uint64_t pick(const std::vector<uint64_t>& all, uint64_t random) { return all[random % all.size()]; }
    uint64_t special(Slot slot) {
        static const std::vector<uint64_t> word = {
            0,          1,          0x7f,       0x80,       0xff,       0x7fff,     0x8000,     0xffff,
            0x10000,    0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
            0x7fc00000, 0x00800000, 0x007fffff, 0x80000001, 0x7f7fffff, 0x3f000000, 0x3fc00000, 0x40200000,
            0x4f000000, 0xcf000000, 0x4f800000, 0x477ff000, 0x33000000, 0x33000001, 0x387fc000};
        static const std::vector<uint64_t> half = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00,
                                                   0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3800,
                                                   0x3e00, 0x3f80, 0xbf80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0,
                                                   0x80,   0x7f,   0xff,   0x7fff, 0xffff, 0x4380};
        static const std::vector<uint64_t> wide = {0,
                                                   1,
                                                   0x7fffffff,
                                                   0x80000000,
                                                   0xffffffff,
                                                   0x100000000,
                                                   0x7fffffffffffffff,
                                                   0x8000000000000000,
                                                   0xffffffffffffffff,
                                                   0x3ff0000000000000,
                                                   0xbff0000000000000,
                                                   0x7ff0000000000000,
                                                   0xfff0000000000000,
                                                   0x7ff8000000000000,
                                                   0x0010000000000000,
                                                   0x000fffffffffffff,
                                                   0x3fe0000000000000,
                                                   0x3ff8000000000000,
                                                   0x4004000000000000,
                                                   0x43e0000000000000,
                                                   0xc3e0000000000000,
                                                   0x43f0000000000000,
                                                   0x47efffffe0000000,
                                                   0x47effffff0000000,
                                                   0x36a0000000000000,
                                                   0x0020000000000001,
                                                   0x8000000000000001};
        const uint64_t random = random_();
        if (slot.kind == 'x' && slot.bits == 32) return pick(half, random) | pick(half, random >> 20) << 16;
        if (slot.kind == 'x') return pick(word, random) | pick(word, random >> 20) << 32;
        return slot.bits == 64 ? pick(wide, random) : slot.bits == 32 ? pick(word, random) : pick(half, random);
    }
    uint64_t moderate(Slot slot) {
        const double value =
            std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random_), int(random_() % 24) - 8);
        // some with few digits: their sums and products are ties
        const double few = random_() % 2 ? value : std::ldexp(std::nearbyint(std::ldexp(value, 6)), -6);
        if (slot.kind == 'x' && slot.bits == 64)
            return oracle::to_bits(float(few)) | oracle::to_bits(float(value)) << 32;
        if (slot.kind == 'x')
            return oracle::small_bits(oracle::kHalf, few, "rn") |
                   uint64_t(oracle::small_bits(oracle::kHalf, value, "rn")) << 16;
        if (slot.bits == 64) return random_() % 2 ? oracle::to_bits(few) : oracle::to_bits(double(float(few)));
        if (slot.bits == 32) return oracle::to_bits(float(few));
        return oracle::small_bits(slot.kind == 'b' ? oracle::kBrain : oracle::kHalf, few, "rn");
    }
    std::mt19937_64 random_{12345};
};

bool is_nan_of(const std::string& type, uint64_t bits) {
    if (type == "f32") return std::isnan(oracle::from_bits<float>(bits));
    if (type == "f64") return std::isnan(oracle::from_bits<double>(bits));
    if (type == "f16") return std::isnan(oracle::small_value(oracle::kHalf, uint32_t(bits)));
    if (type == "bf16") return std::isnan(oracle::small_value(oracle::kBrain, uint32_t(bits)));
    return false;
}

// Any NaN is as good as another of a double; of others PTX has one.
bool agree(const std::string& type, const Answer& answer, uint64_t found) {
    if (answer.value == found) return true;
    if (type == "f64x2" || type == "f32x2") {
        const auto part = [](uint64_t bits, int i) { return bits >> (32 * i) & 0xffffffff; };
        return agree("f32", {part(answer.value, 0), {}, 0}, part(found, 0)) &&
               agree("f32", {part(answer.value, 1), {}, 0}, part(found, 1));
    }
    if (is_nan_of(type, answer.value)) return is_nan_of(type, found);
    if (!answer.tolerance || is_nan_of(type, found)) return false;
    const double wanted =
        type == "f32" ? oracle::from_bits<float>(answer.value) : oracle::from_bits<double>(answer.value);
    const double got = type == "f32" ? oracle::from_bits<float>(found) : oracle::from_bits<double>(found);
    return std::fabs(got - wanted) <= answer.tolerance * std::fabs(wanted);
}

// A frame with four sources and a result, each at a multiple of 256 bytes.
struct Frame32 {
    alignas(64) std::byte bytes[6 * 256];
    static RegisterCode place(int index) { return RegisterCode(index * 256); }
    void set(int index, int lane, uint32_t bits, uint64_t value) {
        std::byte* at = bytes + index * 256;
        if (bits == 1) {
            Mask mask;
            std::memcpy(&mask, at, 4);
            mask = (mask & ~(Mask(1) << lane)) | Mask(value & 1) << lane;
            std::memcpy(at, &mask, 4);
        } else {
            std::memcpy(at + lane * int(bits / 8), &value, bits / 8);
        }
    }
    uint64_t get(int index, int lane, uint32_t bits) const {
        uint64_t value = 0;
        std::memcpy(&value, bytes + index * 256 + (bits == 1 ? 0 : lane * int(bits / 8)), bits == 1 ? 4 : bits / 8);
        return bits == 1 ? value >> lane & 1 : value;
    }
};

std::string result_type(const std::string& opcode) {
    const oracle::Words words = oracle::words_of(opcode);
    if (words[0] == "setp" || words[0] == "testp") return "pred";
    return words[0] == "cvt" ? words[words.size() - 2] : words.back();
}

// How many of the results the oracle judged, and the first that differs.
void check(const Row& row, const std::string& opcode, const Oracle& judge, Numbers& numbers, int rounds) {
    const std::string type = result_type(opcode);
    int judged = 0, all = 0, sources = 0;
    while (sources < 4 && row.source[sources].bits) ++sources;
    // "extremes of three": see exact_oracle
    const bool third = sources == 3;
    for (int round = 0; round < rounds; ++round) {
        Frame32 frame;
        std::memset(frame.bytes, 0xa5, sizeof frame.bytes);
        Input inputs[kLanes];
        Lanes lanes;
        lanes.base[0] = lanes.base[1] = frame.bytes;
        lanes.carry = Mask(numbers.next({64, 'u', 64}));
        lanes.mask = round % 3 == 2 ? Mask(numbers.next({64, 'u', 64})) | 2 : kAllLanes;
        Instruction instruction;
        instruction.flags = flags_of(opcode);
        // every third time the result replaces the first source, if it is as wide
        const bool in_place = round % 3 == 1 && row.source[0].bits == row.result.bits;
        instruction.result = Frame32::place(in_place ? 0 : 5);
        for (int i = 0; i < sources; ++i) {
            instruction.source[i] = Frame32::place(i);
            for (int lane = 0; lane < kLanes; ++lane) {
                const uint64_t value = numbers.next(row.source[i]);
                frame.set(i, lane, row.source[i].bits, value);
                inputs[lane].operand[i] = value;
            }
        }
        const bool takes_carry = opcode.starts_with("addc") || opcode.starts_with("subc") || opcode.starts_with("madc");
        const Frame32 before = frame;
        const Mask carry = lanes.carry;
        row.handler(lanes, instruction);
        for (int lane = 0; lane < kLanes; ++lane) {
            const uint64_t found = frame.get(in_place ? 0 : 5, lane, row.result.bits);
            if (!(lanes.mask >> lane & 1)) {
                ASSERT_EQ(found, before.get(in_place ? 0 : 5, lane, row.result.bits))
                    << opcode << " wrote to a lane that is not active";
                continue;
            }
            ++all;
            Input input = inputs[lane];
            input.carry = takes_carry ? carry >> lane & 1 : third;
            const std::optional<Answer> answer = judge(input);
            if (!answer) continue;
            ++judged;
            ASSERT_TRUE(agree(type, *answer, found))
                << opcode << " of " << hexadecimal(input.operand[0]) << " " << hexadecimal(input.operand[1]) << " "
                << hexadecimal(input.operand[2]) << " " << hexadecimal(input.operand[3]) << " carry " << input.carry
                << ": expected " << hexadecimal(answer->value) << ", found " << hexadecimal(found);
            if (answer->carry) {
                ASSERT_EQ(bool(lanes.carry >> lane & 1), *answer->carry) << opcode << " has the wrong carry";
            }
        }
    }
    EXPECT_GE(judged * 20, all) << opcode << ": the oracle judged too few results";
}

void check_rows(bool wide) {
    Numbers numbers;
    size_t count = 0;
    for (const Row* row : all_rows(wide)) {
        for (const std::string& opcode : expand(row->pattern)) {
            size_t sources = 0;
            while (sources < 4 && row->source[sources].bits) ++sources;
            const Oracle judge = oracle_of(opcode);
            ASSERT_TRUE(judge) << opcode << " has no oracle";
            ASSERT_TRUE(find_row(opcode, sources)) << opcode;
            check(*row, opcode, judge, numbers, 30);
            if (testing::Test::HasFatalFailure()) return;
            ++count;
        }
    }
    EXPECT_GT(count, 900u);
}

TEST(EmulatedOpcodes, rows_for_any_processor_agree_with_the_oracle) { check_rows(false); }

TEST(EmulatedOpcodes, rows_for_wide_processors_agree_with_the_oracle) {
    if (!processor_is_wide()) GTEST_SKIP() << "this processor has no AVX2";
    check_rows(true);
}

TEST(EmulatedOpcodes, patterns_have_choices) {
    EXPECT_EQ(expand("a[.b|.c](.d|.e)"), (std::vector<std::string>{"a.d", "a.e", "a.b.d", "a.b.e", "a.c.d", "a.c.e"}));
    for (const char* opcode : {"a.d", "a.c.e"}) EXPECT_TRUE(matches("a[.b|.c](.d|.e)", opcode));
    for (const char* opcode : {"a", "a.b", "a.b.c.d", "a.d.e"}) EXPECT_FALSE(matches("a[.b|.c](.d|.e)", opcode));
}

}  // namespace

}  // namespace weft::emulator
