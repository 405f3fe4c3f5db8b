// Instructions that are no rows of a table, each against the manual: predicates, parts of registers,
// addresses, atomics, narrow accesses, operations of several lanes.
#include <bit>
#include <cmath>

#include "harness.h"

namespace weft::emulator {

namespace {

// Runs one warp; the body leaves its result in %r9, of 32 bits, for each thread. %r0 is the thread, %r1 four times the
// thread and 1.
std::vector<uint32_t> words(const std::string& body, const std::string& before = "", uint32_t threads = 32) {
    DeviceArray<uint32_t> out(threads);
    Kernel kernel(
        kernel_text("ld.param.b64 %d0, [a]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1; "
                    "mad.lo.u32 %r1, %r0, 4, 1;\n" +
                        body + "\nst.global.b32 [%d1], %r9; ret;",
                    before));
    EXPECT_RUNS(kernel.run({.threads = threads}, out.address()));
    return out.get();
}

template <class F>
void expect_each(const std::vector<uint32_t>& found, F expected) {
    for (uint32_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], uint32_t(expected(i))) << "thread " << i;
}

TEST(EmulatedInstructions, comparisons_combine_with_a_predicate) {
    const std::string flag = "setp.lt.u32 %p3, %r0, 8;";
    const auto bits = [](bool p, bool q) { return uint32_t(p) + 2 * uint32_t(q); };
    const std::string result = "selp.b32 %r2, 1, 0, %p0; selp.b32 %r3, 2, 0, %p1; or.b32 %r9, %r2, %r3;";
    expect_each(words("setp.lt.u32 %p0|%p1, %r0, 20;" + result), [&](uint32_t i) { return bits(i < 20, i >= 20); });
    expect_each(words(flag + "setp.gt.and.u32 %p0|%p1, %r0, 4, %p3;" + result),
                [&](uint32_t i) { return bits(i > 4 && i < 8, i <= 4 && i < 8); });
    expect_each(words(flag + "setp.gt.or.u32 %p0|%p1, %r0, 20, !%p3;" + result),
                [&](uint32_t i) { return bits(i > 20 || i >= 8, i <= 20 || i >= 8); });
    expect_each(words(flag + "setp.eq.xor.u32 %p0|%p1, %r0, 5, %p3;" + result),
                [&](uint32_t i) { return bits((i == 5) != (i < 8), (i != 5) != (i < 8)); });
    // the third predicate is also the result
    expect_each(words(flag + "setp.gt.and.u32 %p3|%p1, %r0, 4, %p3; mov.pred %p0, %p3;" + result),
                [&](uint32_t i) { return bits(i > 4 && i < 8, i <= 4 && i < 8); });
    expect_each(words("set.lt.u32.u32 %r9, %r0, 3;"), [](uint32_t i) { return i < 3 ? 0xffffffff : 0; });
    expect_each(words(flag + "set.ge.and.f32.s32 %r9, %r0, 3, %p3;"),
                [](uint32_t i) { return i >= 3 && i < 8 ? 0x3f800000 : 0; });
}

TEST(EmulatedInstructions, guards_keep_the_others_as_they_are) {
    expect_each(
        words("mov.b32 %r9, 5; setp.lt.u32 %p0, %r0, 9; @%p0 add.u32 %r9, %r0, 100; @!%p0 mul.lo.u32 %r9, %r9, 3;"),
        [](uint32_t i) { return i < 9 ? i + 100 : 15; });
    expect_each(words("mov.b32 %r9, 1; setp.lt.u32 %p0, %r0, 9; @%p0 bra.uni A; mov.b32 %r9, 2; A: setp.eq.u32 %p1, "
                      "%r0, 3; @%p1 mov.b32 %r9, 7;"),
                [](uint32_t i) { return i == 3  ? 7
                                        : i < 9 ? 1
                                                : 2; });
}

TEST(EmulatedInstructions, parts_of_registers) {
    expect_each(words("mov.b64 %d2, {%r0, %r1}; mov.b64 {%r2, %r3}, %d2; sub.u32 %r9, %r3, %r2;"),
                [](uint32_t i) { return 3 * i + 1; });
    expect_each(words("mov.b32 {%h0, %h1}, %r1; mov.b32 %r9, {%h1, %h0};"),
                [](uint32_t i) { return (4 * i + 1) << 16; });
    expect_each(words("mov.b64 %d2, 0x1122334455667788; mov.b64 {_, %r9}, %d2;"), [](uint32_t) { return 0x11223344; });
    expect_each(words("cvt.u16.u32 %h0, %r0; mov.b64 %d2, {%h0, 1, 2, 3}; mov.b64 {%r9, %r2}, %d2;"),
                [](uint32_t i) { return i | 0x10000; });
}

TEST(EmulatedInstructions, conversions_between_registers_of_other_widths) {
    expect_each(words("sub.u32 %r2, %r0, 100; cvt.s32.s8 %r9, %r2;"),
                [](uint32_t i) { return int32_t(int8_t(i - 100)); });
    expect_each(words("sub.u32 %r2, %r0, 5; cvt.s8.s32 %r3, %r2; mov.b32 %r9, %r3;"),
                [](uint32_t i) { return int32_t(int8_t(i - 5)); });
    expect_each(words("mul.lo.u32 %r2, %r0, 3000; cvt.u32.u16 %r9, %r2;"),
                [](uint32_t i) { return i * 3000 & 0xffff; });
}

TEST(EmulatedInstructions, special_registers) {
    expect_each(words("mov.u32 %r9, %laneid;", "", 64), [](uint32_t i) { return i % 32; });
    expect_each(words("mov.u32 %r9, %warpid;", "", 64), [](uint32_t i) { return i / 32; });
    expect_each(words("mov.u32 %r9, %lanemask_lt;"), [](uint32_t i) { return (1u << i) - 1; });
    expect_each(words("mov.u32 %r9, %lanemask_ge;"), [](uint32_t i) { return ~((1u << i) - 1); });
    expect_each(words("mov.u32 %r9, %lanemask_le;"), [](uint32_t i) { return i == 31 ? ~0u : (2u << i) - 1; });
    expect_each(words("mov.u32 %r9, %lanemask_gt;"), [](uint32_t i) { return i == 31 ? 0 : ~((2u << i) - 1); });
    expect_each(words("mov.u32 %r9, %lanemask_eq;"), [](uint32_t i) { return 1u << i; });
    expect_each(words("mov.u32 %r2, %ntid.x; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.z; mad.lo.u32 %r9, %r2, 100, "
                      "%r3; add.u32 %r9, %r9, %r4;"),
                [](uint32_t) { return 3201; });
    // clocks grow
    expect_each(
        words("mov.u64 %d2, %clock64; mov.u64 %d3, %clock64; setp.gt.u64 %p0, %d3, %d2; selp.b32 %r9, 1, 0, %p0;"),
        [](uint32_t) { return 1; });
    expect_each(words("mov.u64 %d2, %globaltimer; setp.ne.u64 %p0, %d2, 0; selp.b32 %r9, 1, 0, %p0;"),
                [](uint32_t) { return 1; });
}

TEST(EmulatedInstructions, addresses_of_spaces) {
    const std::string shared = ".shared .align 8 .b8 memory[512];";
    const std::string address =
        "mov.b64 %d2, memory; add.s64 %d3, %d2, 4; mul.wide.u32 %d4, %r0, 8; add.s64 %d3, %d3, %d4; cvta.shared.u64 "
        "%d5, %d3;";
    expect_each(words(address + "st.b32 [%d5], %r1; ld.shared.b32 %r9, [%d3];", shared),
                [](uint32_t i) { return 4 * i + 1; });
    expect_each(words(address + "cvta.to.shared.u64 %d6, %d5; sub.s64 %d7, %d6, %d3; cvt.u32.u64 %r9, %d7;", shared),
                [](uint32_t) { return 0; });
    const std::string kinds =
        "isspacep.shared %p0, %d5; isspacep.global %p1, %d5; isspacep.local %p2, %d5; isspacep.const %p3, %d5;"
        "selp.b32 %r2, 1, 0, %p0; selp.b32 %r3, 2, 0, %p1; selp.b32 %r4, 4, 0, %p2; selp.b32 %r5, 8, 0, %p3; add.u32 "
        "%r9, %r2, %r3;"
        "add.u32 %r9, %r9, %r4; add.u32 %r9, %r9, %r5;";
    expect_each(words(address + kinds, shared), [](uint32_t) { return 1; });
    expect_each(words("cvta.global.u64 %d5, %d0;" + kinds), [](uint32_t) { return 2; });
    expect_each(words(".local .b32 own; mov.b64 %d2, own; cvta.local.u64 %d5, %d2;" + kinds),
                [](uint32_t) { return 4; });
    expect_each(words("mov.b64 %d5, fixed;" + kinds, ".const .b32 fixed = 5;"), [](uint32_t) { return 8; });
    expect_each(words("mov.b64 %d2, a; cvta.param.u64 %d3, %d2; ld.b64 %d4, [%d3]; setp.eq.b64 %p0, %d4, %d0; selp.b32 "
                      "%r9, 1, 0, %p0;"),
                [](uint32_t) { return 1; });
}

TEST(EmulatedInstructions, initial_values_of_variables) {
    const std::string before =
        ".global .align 4 .b32 numbers[3] = {7, -2, 0x10}; .global .b64 pointer = generic(numbers)+4; .global .b8 "
        "text[4] = {65, 66};"
        ".global .f32 real = 0f40490FDB; .global .align 8 .u64 plain[2] = {numbers, 9};";
    expect_each(words("ld.global.b64 %d2, [pointer]; ld.b32 %r9, [%d2];", before), [](uint32_t) { return -2; });
    expect_each(words("ld.global.b32 %r9, [text];", before), [](uint32_t) { return 0x4241; });
    expect_each(words("ld.global.f32 %r9, [real];", before), [](uint32_t) { return 0x40490fdb; });
    expect_each(words("ld.global.b64 %d2, [plain]; ld.global.b32 %r9, [%d2+8];", before), [](uint32_t) { return 16; });
}

TEST(EmulatedInstructions, narrow_and_wide_loads) {
    const std::string before =
        ".global .align 16 .b8 bytes[32] = {128, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, "
        "19, 20, 21, 22, 23, 24};";
    expect_each(words("ld.global.s8 %r9, [bytes];", before), [](uint32_t) { return -128; });
    expect_each(words("ld.global.u8 %r9, [bytes];", before), [](uint32_t) { return 128; });
    expect_each(words("ld.global.s16 %r9, [bytes];", before), [](uint32_t) { return -128; });
    expect_each(words("ld.global.b8 %h0, [bytes+1]; cvt.u32.u16 %r9, %h0;", before), [](uint32_t) { return 255; });
    expect_each(words("ld.global.s32 %d2, [bytes]; shr.s64 %d2, %d2, 4; cvt.u32.u64 %r9, %d2;", before),
                [](uint32_t) { return 0x0201ff80 >> 4; });
    expect_each(
        words(
            "ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [bytes]; mov.b64 %d2, {%h0, %h1, %h2, %h3}; mov.b64 {_, %r9}, %d2;",
            before),
        [](uint32_t) { return 0x00020001; });
    expect_each(words("ld.global.v2.b64 {%d2, %d3}, [bytes+16]; cvt.u32.u64 %r9, %d3;", before),
                [](uint32_t) { return 24 << 8 | 23; });
    expect_each(words("ld.global.v4.b32 {%r2, _, %r9, %r4}, [bytes];", before), [](uint32_t) { return 0x0a090807; });
    expect_each(words(".local .align 4 .b8 own[8]; mov.b64 %d2, own; st.local.b8 [%d2], %r1; st.local.b16 [%d2+2], "
                      "0x1234; st.local.b8 [%d2+1], 0; ld.local.b32 %r9, [%d2];"),
                [](uint32_t i) { return (0x12340000 | ((4 * i + 1) & 0xff)); });
    expect_each(words("st.volatile.global.b32 [%d1], %r1; ld.relaxed.gpu.global.b32 %r2, [%d1]; ld.acquire.gpu.b32 "
                      "%r9, [%d1]; st.release.sys.b32 [%d1], %r2; ld.weak.global.ca.b32 %r9, [%d1];"),
                [](uint32_t i) { return 4 * i + 1; });
}

struct AtomicCase {
    const char* text;  // the type and the operands; %d0 is the address
    uint64_t before, after;
};

TEST(EmulatedInstructions, atomics) {
    const auto f = [](float x) { return uint64_t(std::bit_cast<uint32_t>(x)); };
    const auto d = [](double x) { return std::bit_cast<uint64_t>(x); };
    const AtomicCase cases[] = {
        {"add.u32 %r2, [%d0], 5", 0xffffffff, 4},
        {"add.s32 %r2, [%d0], -5", 3, 0xfffffffe},
        {"add.u64 %d2, [%d0], 1", 0xffffffff, 0x100000000},
        {"min.s32 %r2, [%d0], -3", 2, 0xfffffffd},
        {"min.u32 %r2, [%d0], -3", 2, 2},
        {"max.s64 %d2, [%d0], -3", ~uint64_t(9), ~uint64_t(2)},
        {"max.u64 %d2, [%d0], 7", 3, 7},
        {"exch.b32 %r2, [%d0], 9", 1, 9},
        {"exch.b64 %d2, [%d0], 9", ~uint64_t(0), 9},
        {"cas.b32 %r2, [%d0], 4, 6", 4, 6},
        {"cas.b32 %r2, [%d0], 4, 6", 5, 5},
        {"cas.b64 %d2, [%d0], 4, 6", 4, 6},
        {"cas.b16 %h2, [%d0], 4, 6", 0x50004, 0x50006},
        {"and.b32 %r2, [%d0], 12", 10, 8},
        {"or.b64 %d2, [%d0], 12", 10, 14},
        {"xor.b32 %r2, [%d0], 12", 10, 6},
        {"inc.u32 %r2, [%d0], 3", 3, 0},
        {"inc.u32 %r2, [%d0], 3", 2, 3},
        {"dec.u32 %r2, [%d0], 3", 0, 3},
        {"dec.u32 %r2, [%d0], 3", 2, 1},
        {"dec.u32 %r2, [%d0], 3", 9, 3},
        {"add.f32 %r2, [%d0], 0f3FC00000", f(2.25f), f(3.75f)},
        {"add.f64 %d2, [%d0], 0d3FF8000000000000", d(0.1), d(0.1 + 1.5)},
        {"add.noftz.f16 %h2, [%d0], 0x3C00", 0xabcd3800, 0xabcd3e00},
        {"add.noftz.bf16 %h2, [%d0], 0x3F80", 0x3f00, 0x3fc0},
        {"add.noftz.f16x2 %r2, [%d0], %r5", 0x3c003800, 0x40003e00},
    };
    for (const AtomicCase& one : cases) {
        // one thread; the old number is the result of atom, and red changes the same
        for (const bool returns : {true, false}) {
            DeviceArray<uint64_t> memory(std::vector<uint64_t>{one.before, 0});
            std::string body = one.text;
            if (!returns) {
                if (body.starts_with("exch") || body.starts_with("cas")) continue;
                const size_t begin = body.find('%'), end = body.find(", ") + 2;
                body.erase(begin, end - begin);
            }
            Kernel kernel(kernel_text(
                "ld.param.b64 %d0, [a]; mov.b32 %r5, 0x3C003C00; mov.b64 %d2, 0; mov.b16 %h2, 0; mov.b32 %r2, 0;\n" +
                std::string(returns ? "atom.relaxed.gpu.global." : "red.global.") + body + "; " +
                (body.find("%h2") != std::string::npos   ? "cvt.u64.u16 %d2, %h2;"
                 : body.find("%r2") != std::string::npos ? "cvt.u64.u32 %d2, %r2;"
                                                         : "") +
                "st.global.b64 [%d0+8], %d2; ret;"));
            EXPECT_RUNS(kernel.run({.threads = 1}, memory.address()));
            EXPECT_EQ(memory.get()[0], one.after) << body;
            const uint64_t width = body.find("%h2") != std::string::npos   ? 0xffff
                                   : body.find("%r2") != std::string::npos ? 0xffffffff
                                                                           : ~uint64_t(0);
            if (returns) {
                EXPECT_EQ(memory.get()[1], one.before & width) << body;
            }
        }
    }
}

TEST(EmulatedInstructions, shuffles) {
    const auto at = [](uint32_t from) { return 4 * from + 1; };
    expect_each(words("shfl.sync.up.b32 %r9, %r1, 3, 0, -1;"), [&](uint32_t i) { return at(i < 3 ? i : i - 3); });
    expect_each(words("shfl.sync.down.b32 %r9, %r1, 3, 31, -1;"),
                [&](uint32_t i) { return at(i + 3 > 31 ? i : i + 3); });
    expect_each(words("shfl.sync.bfly.b32 %r9, %r1, 5, 31, -1;"), [&](uint32_t i) { return at(i ^ 5); });
    expect_each(words("shfl.sync.idx.b32 %r9, %r1, %r1, 31, -1;"), [&](uint32_t i) { return at((4 * i + 1) % 32); });
    // groups of 8 lanes: c is 31 − 7 above and 7 below
    expect_each(words("shfl.sync.idx.b32 %r9, %r1, 2, 0x1807, -1;"), [&](uint32_t i) { return at(i / 8 * 8 + 2); });
    expect_each(words("shfl.sync.down.b32 %r2|%p0, %r1, 1, 0x1807, -1; selp.b32 %r9, %r2, 0, %p0;"),
                [&](uint32_t i) { return i % 8 == 7 ? 0 : at(i + 1); });
    expect_each(words("shfl.sync.up.b32 %r2|%p0, %r1, 2, 0x1800, -1; selp.b32 %r9, %r2, 0, %p0;"),
                [&](uint32_t i) { return i % 8 < 2 ? 0 : at(i - 2); });
}

TEST(EmulatedInstructions, votes_and_matches) {
    const std::string odd = "and.b32 %r2, %r0, 1; setp.eq.u32 %p0, %r2, 1;";
    const auto flag = [](const std::string& name) { return name + "selp.b32 %r9, 1, 0, %p1;"; };
    expect_each(words(odd + flag("vote.sync.any.pred %p1, %p0, -1;")), [](uint32_t) { return 1; });
    expect_each(words(odd + flag("vote.sync.all.pred %p1, %p0, -1;")), [](uint32_t) { return 0; });
    expect_each(words(odd + flag("vote.sync.uni.pred %p1, %p0, -1;")), [](uint32_t) { return 0; });
    expect_each(words(odd + "setp.lt.u32 %p0, %r0, 99;" + flag("vote.sync.uni.pred %p1, !%p0, -1;")),
                [](uint32_t) { return 1; });
    expect_each(words(odd + "vote.sync.ballot.b32 %r9, !%p0, -1;"), [](uint32_t) { return 0x55555555; });
    expect_each(words("shr.u32 %r2, %r0, 3; match.any.sync.b32 %r9, %r2, -1;"),
                [](uint32_t i) { return 0xffu << (i / 8 * 8); });
    expect_each(words("cvt.u64.u32 %d2, %r0; shr.u64 %d2, %d2, 4; match.any.sync.b64 %r9, %d2, -1;"),
                [](uint32_t i) { return 0xffffu << (i / 16 * 16); });
    expect_each(words("match.all.sync.b32 %r9|%p0, %r0, -1;"), [](uint32_t) { return 0; });
    expect_each(words("mov.b32 %r2, 3; match.all.sync.b32 %r3|%p0, %r2, -1; selp.b32 %r9, %r3, 1, %p0;"),
                [](uint32_t) { return 0xffffffff; });
    expect_each(words("mov.b32 %r9, 0; setp.lt.u32 %p0, %r0, 5; @%p0 activemask.b32 %r9;"),
                [](uint32_t i) { return i < 5 ? 31 : 0; });
    expect_each(words("elect.sync %r2|%p0, -1; selp.b32 %r9, 7, %r2, %p0;"), [](uint32_t i) { return i == 0 ? 7 : 0; });
}

TEST(EmulatedInstructions, sums_over_a_warp) {
    expect_each(words("redux.sync.add.u32 %r9, %r0, -1;"), [](uint32_t) { return 31 * 32 / 2; });
    expect_each(words("sub.u32 %r2, %r0, 4; redux.sync.min.s32 %r9, %r2, -1;"), [](uint32_t) { return -4; });
    expect_each(words("sub.u32 %r2, %r0, 4; redux.sync.max.u32 %r9, %r2, -1;"), [](uint32_t) { return -1; });
    expect_each(words("redux.sync.and.b32 %r9, %r1, -1;"), [](uint32_t) { return 1; });
    expect_each(words("redux.sync.or.b32 %r9, %r1, -1;"), [](uint32_t) { return 125; });
    expect_each(words("redux.sync.xor.b32 %r9, %r0, -1;"), [](uint32_t) { return 0; });
}

TEST(EmulatedInstructions, barriers_that_reduce) {
    const std::string flag = "setp.lt.u32 %p0, %r0, 40;";
    expect_each(words(flag + "bar.red.popc.u32 %r9, 0, %p0;", "", 96), [](uint32_t) { return 40; });
    expect_each(words(flag + "bar.red.and.pred %p1, 0, %p0; selp.b32 %r9, 1, 0, %p1;", "", 96),
                [](uint32_t) { return 0; });
    expect_each(words(flag + "bar.red.or.pred %p1, 0, %p0; selp.b32 %r9, 1, 0, %p1;", "", 96),
                [](uint32_t) { return 1; });
    expect_each(
        words("setp.lt.u32 %p0, %r0, 400; barrier.cta.red.and.aligned.pred %p1, 0, %p0; selp.b32 %r9, 1, 0, %p1;", "",
              96),
        [](uint32_t) { return 1; });
    expect_each(words(flag + "@%p0 bra A; barrier.sync 0; mov.b32 %r9, 2; bra B; A: barrier.sync 0; mov.b32 %r9, 1; B: "
                             "barrier.cta.sync.aligned 0;",
                      "", 64),
                [](uint32_t i) { return i < 40 ? 1 : 2; });
    // a producer arrives without waiting
    expect_each(words("setp.lt.u32 %p0, %r0, 32; @%p0 bra A; bar.sync 3, 64; mov.b32 %r9, 2; bra B; A: bar.arrive 3, "
                      "64; mov.b32 %r9, 1; B: nanosleep.u32 10;",
                      "", 64),
                [](uint32_t i) { return i < 32 ? 1 : 2; });
}

TEST(EmulatedInstructions, hints_change_nothing) {
    expect_each(words("prefetch.global.L2 [%d0]; fence.acq_rel.gpu; fence.sc.sys; membar.cta; .pragma \"nounroll\"; "
                      "mov.b32 %r9, 3;"),
                [](uint32_t) { return 3; });
    // "exit" ends the thread in any block
    const std::string function =
        ".func leaves(.param .b32 x)\n{ .reg .b32 %r<2>; .reg .pred %p<2>; ld.param.b32 %r0, [x]; setp.lt.u32 %p0, "
        "%r0, 8; @%p0 exit; ret; }\n";
    DeviceArray<uint32_t> out(std::vector<uint32_t>(32, 5));
    Kernel kernel(
        kernel_text("ld.param.b64 %d0, [a]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;"
                    "{ .param .b32 p; st.param.b32 [p], %r0; call leaves, (p); } st.global.b32 [%d1], %r0; ret;",
                    function));
    EXPECT_RUNS(kernel.run({}, out.address()));
    expect_each(out.get(), [](uint32_t i) { return i < 8 ? 5 : i; });
}

TEST(EmulatedInstructions, memory_of_kernels_that_they_ask_for) {
    const std::string before =
        ".extern .func (.param .b64 r) malloc(.param .b64 s);\n.extern .func free(.param .b64 p);\n";
    expect_each(
        words("{ .param .b64 s; .param .b64 r; st.param.b64 [s], 8; call (r), malloc, (s); ld.param.b64 %d2, [r]; }"
              "st.b32 [%d2+4], %r1; ld.b32 %r9, [%d2+4]; { .param .b64 p; st.param.b64 [p], %d2; call free, (p); }",
              before),
        [](uint32_t i) { return 4 * i + 1; });
}

}  // namespace

}  // namespace weft::emulator
