// Products of small matrices, their loads, and asynchronous copies. The layouts of fragments are written here as the
// PTX ISA gives them: row and column of element i of a lane.
#include <cmath>
#include <functional>
#include <random>

#include "harness.h"
#include "oracle.h"
#include "ptx/token.h"

namespace weft::emulator {

namespace {

struct Place {
    int row, column;
};
using Layout = std::function<Place(int lane, int i)>;

struct Shape {
    std::string words;
    int rows, depth, columns;
    int bits;                       // of an element of a and b
    int a_count, b_count, c_count;  // elements of a lane
    Layout a, b, c;
    std::string version = "7.0", target = "sm_80";
};

Place sums16(int lane, int i) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)}; }

const Shape kHalf16{"m16n8k16.row.col.f32.f16.f16.f32",
                    16,
                    16,
                    8,
                    16,
                    8,
                    4,
                    4,
                    [](int lane, int i) {
                        return Place{(i < 2 || (i >= 4 && i < 6)) ? lane / 4 : lane / 4 + 8,
                                     lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
                    },
                    [](int lane, int i) { return Place{lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8), lane / 4}; },
                    sums16};
const Shape kHalf8{"m16n8k8.row.col.f32.f16.f16.f32",
                   16,
                   8,
                   8,
                   16,
                   4,
                   2,
                   4,
                   [](int lane, int i) { return Place{i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)}; },
                   [](int lane, int i) { return Place{lane % 4 * 2 + (i & 1), lane / 4}; },
                   sums16,
                   "6.5",
                   "sm_75"};
const Shape kTf32{
    "m16n8k8.row.col.f32.tf32.tf32.f32",
    16,
    8,
    8,
    32,
    4,
    2,
    4,
    [](int lane, int i) { return Place{i == 0 || i == 2 ? lane / 4 : lane / 4 + 8, i < 2 ? lane % 4 : lane % 4 + 4}; },
    [](int lane, int i) { return Place{i == 0 ? lane % 4 : lane % 4 + 4, lane / 4}; },
    sums16};
const Shape kTf32Short{"m16n8k4.row.col.f32.tf32.tf32.f32",
                       16,
                       4,
                       8,
                       32,
                       2,
                       1,
                       4,
                       [](int lane, int i) { return Place{i == 0 ? lane / 4 : lane / 4 + 8, lane % 4}; },
                       [](int lane, int) { return Place{lane % 4, lane / 4}; },
                       sums16};
const Shape kDouble{"m8n8k4.row.col.f64.f64.f64.f64",
                    8,
                    4,
                    8,
                    64,
                    1,
                    1,
                    2,
                    [](int lane, int) { return Place{lane / 4, lane % 4}; },
                    [](int lane, int) { return Place{lane % 4, lane / 4}; },
                    [](int lane, int i) { return Place{lane / 4, lane % 4 * 2 + (i & 1)}; }};

Shape with_words(Shape shape, const std::string& words) {
    shape.words = words;
    return shape;
}

std::string joined(const std::string& prefix, int first, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i ? ", " : "") + prefix + std::to_string(first + i);
    return "{" + text + "}";
}

// A warp that loads its registers of a, b and c, one line of memory after the other, and stores those of the result.
std::string mma_kernel(const Shape& shape, const std::string& guard = "") {
    const bool is_double = shape.bits == 64;
    const std::string prefix = is_double ? "%d" : "%r", type = is_double ? "b64" : "b32";
    const int bytes = is_double ? 8 : 4, per_register = shape.bits == 16 ? 2 : 1;
    const int a = shape.a_count / per_register, b = shape.b_count / per_register, c = shape.c_count;
    std::string text = "mov.u32 %r0, %tid.x; mul.wide.u32 %d60, %r0, " + std::to_string(bytes) + ";\n";
    int next = 10;
    const auto load = [&](const char* parameter, int count) {
        text += "ld.param.b64 %d61, [" + std::string(parameter) + "]; add.s64 %d61, %d61, %d60;\n";
        for (int i = 0; i < count; ++i)
            text += "ld.global." + type + " " + prefix + std::to_string(next++) + ", [%d61+" +
                    std::to_string(i * 32 * bytes) + "];\n";
    };
    load("a", a);
    load("b", b);
    load("c", c);
    text += guard + "mma.sync.aligned." + shape.words + " " + joined(prefix, 10, c) + ", " + joined(prefix, 10, a) +
            ", " + joined(prefix, 10 + a, b) + ", " + joined(prefix, 10 + a + b, c) + ";\n";
    text += "ld.param.b64 %d61, [d]; add.s64 %d61, %d61, %d60;\n";
    for (int i = 0; i < c; ++i)
        text += "st.global." + type + " [%d61+" + std::to_string(i * 32 * bytes) + "], " + prefix +
                std::to_string(10 + i) + ";\n";
    std::string kernel = kernel_text(text + "ret;");
    kernel.replace(0, kernel.find(".address_size"), ".version " + shape.version + "\n.target " + shape.target + "\n");
    return kernel;
}

// Runs it for matrices whose numbers come from `number`, which gives the bits and their value. `tolerance` is relative
// to the sum of the magnitudes.
template <class Register, class Result>
void expect_product(const Shape& shape, const std::function<std::pair<uint64_t, double>()>& number,
                    const std::function<Result()>& sum, double tolerance) {
    std::vector<double> a(size_t(shape.rows * shape.depth)), b(size_t(shape.depth * shape.columns));
    std::vector<Result> c(size_t(shape.rows * shape.columns));
    const int per_register = int(sizeof(Register)) * 8 / shape.bits;
    const auto fill = [&](std::vector<double>& values, int columns, int count, const Layout& layout) {
        std::vector<uint64_t> bits(values.size());
        for (size_t i = 0; i < values.size(); ++i) std::tie(bits[i], values[i]) = number();
        std::vector<Register> registers(size_t(32 * count / per_register));
        for (int lane = 0; lane < 32; ++lane) {
            for (int i = 0; i < count; ++i) {
                const Place place = layout(lane, i);
                const uint64_t one = bits[size_t(place.row * columns + place.column)];
                registers[size_t(i / per_register * 32 + lane)] |= Register(one << (i % per_register * shape.bits));
            }
        }
        return registers;
    };
    DeviceArray<Register> left(fill(a, shape.depth, shape.a_count, shape.a));
    DeviceArray<Register> right(fill(b, shape.columns, shape.b_count, shape.b));
    for (Result& one : c) one = sum();
    std::vector<Result> in_lanes(size_t(32 * shape.c_count));
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < shape.c_count; ++i) {
            const Place place = shape.c(lane, i);
            in_lanes[size_t(i * 32 + lane)] = c[size_t(place.row * shape.columns + place.column)];
        }
    }
    DeviceArray<Result> sums(in_lanes), out(in_lanes.size());
    Kernel kernel(mma_kernel(shape));
    EXPECT_RUNS(kernel.run({}, left.address(), right.address(), sums.address(), out.address()));
    const std::vector<Result> found = out.get();
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < shape.c_count; ++i) {
            const Place place = shape.c(lane, i);
            __float128 exact = c[size_t(place.row * shape.columns + place.column)], size = exact < 0 ? -exact : exact;
            for (int k = 0; k < shape.depth; ++k) {
                const __float128 term =
                    __float128(a[size_t(place.row * shape.depth + k)]) * b[size_t(k * shape.columns + place.column)];
                exact += term;
                size += term < 0 ? -term : term;
            }
            EXPECT_LE(std::fabs(double(found[size_t(i * 32 + lane)] - exact)), tolerance * double(size))
                << shape.words << " row " << place.row << " column " << place.column;
        }
    }
}

std::mt19937_64 random_numbers(7);

// Small integers: all sums are exact.
double whole() { return double(int(random_numbers() % 17) - 8); }
double real() { return std::uniform_real_distribution<double>(-2, 2)(random_numbers); }

void expect_products(const Shape& shape, oracle::SmallFloat format) {
    const auto encode = [&](double value) {
        const uint32_t bits = oracle::small_bits(format, value, "rn");
        return std::pair<uint64_t, double>(bits, oracle::small_value(format, bits));
    };
    expect_product<uint32_t, float>(shape, [&] { return encode(whole()); }, [] { return float(whole()); }, 0);
    // in single precision, with one rounding in any direction
    expect_product<uint32_t, float>(shape, [&] { return encode(real()); }, [] { return float(real()); }, 0x1p-22);
}

TEST(EmulatedMatrices, products_of_halves) {
    expect_products(kHalf16, oracle::kHalf);
    expect_products(kHalf8, oracle::kHalf);
    expect_products(with_words(kHalf16, "m16n8k16.row.col.f32.bf16.bf16.f32"), oracle::kBrain);
    Shape short_brains = with_words(kHalf8, "m16n8k8.row.col.f32.bf16.bf16.f32");
    short_brains.version = "7.0", short_brains.target = "sm_80";
    expect_products(short_brains, oracle::kBrain);
}

TEST(EmulatedMatrices, products_of_tf32_read_19_bits) {
    for (const Shape& shape : {kTf32, kTf32Short}) {
        const auto encode = [](double value) {
            const auto bits = oracle::to_bits(float(value));
            return std::pair<uint64_t, double>(bits, oracle::from_bits<float>(bits & 0xffffe000));
        };
        expect_product<uint32_t, float>(shape, [&] { return encode(whole()); }, [] { return float(whole()); }, 0);
        expect_product<uint32_t, float>(shape, [&] { return encode(real()); }, [] { return float(real()); }, 0x1p-22);
    }
}

TEST(EmulatedMatrices, products_of_doubles) {
    const auto encode = [](double value) { return std::pair<uint64_t, double>(oracle::to_bits(value), value); };
    expect_product<uint64_t, double>(kDouble, [&] { return encode(whole()); }, whole, 0);
    expect_product<uint64_t, double>(kDouble, [&] { return encode(real()); }, real, 0x1p-51);
}

TEST(EmulatedMatrices, products_need_a_whole_warp_and_a_target) {
    Shape old = kHalf16;
    old.target = "sm_75";
    EXPECT_THROW(Kernel{mma_kernel(old)}, ptx::Error);
    old = kHalf16;
    old.version = "6.5";
    EXPECT_THROW(Kernel{mma_kernel(old)}, ptx::Error);
    EXPECT_THROW(Kernel{mma_kernel(with_words(kHalf16, "m16n8k32.row.col.f32.f16.f16.f32"))}, ptx::Error);
    DeviceArray<uint32_t> registers(std::vector<uint32_t>(256)), out(256);
    Kernel kernel(mma_kernel(kHalf16));
    const std::optional<Report> report =
        kernel.run({.threads = 20}, registers.address(), registers.address(), registers.address(), out.address());
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, FaultKind::MissingLane);
    EXPECT_NE(report->text.find("lane 20 is missing"), std::string::npos) << report->text;
}

// Element e of shared memory is e; a lane's row address is at its number times `pitch` elements.
std::vector<uint32_t> loaded(const std::string& form, int count, int pitch, uint32_t offset = 0) {
    DeviceArray<uint32_t> out(size_t(32 * count));
    std::string text =
        "mov.u32 %r0, %tid.x; mov.u32 %r1, memory; mov.u32 %r2, %r0; A: shl.b32 %r3, %r2, 1; add.u32 %r3, %r3, %r1;\n"
        "cvt.u16.u32 %h1, %r2; st.shared.b16 [%r3], %h1; add.u32 %r2, %r2, 32; setp.lt.u32 %p0, %r2, 1024; @%p0 bra "
        "A;\n"
        "bar.warp.sync -1; mul.lo.u32 %r4, %r0, " +
        std::to_string(2 * pitch) + "; add.u32 %r4, %r4, %r1;\nldmatrix.sync.aligned.m8n8." + form + ".shared.b16 " +
        joined("%r", 10, count) + ", [%r4+" + std::to_string(offset) + "];\n" +
        "ld.param.b64 %d0, [a]; mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, %d1;\n";
    for (int i = 0; i < count; ++i)
        text += "st.global.b32 [%d0+" + std::to_string(128 * i) + "], %r" + std::to_string(10 + i) + ";\n";
    Kernel kernel(kernel_text(text + "ret;", ".shared .align 16 .b8 memory[2048];"));
    EXPECT_RUNS(kernel.run({}, out.address()));
    return out.get();
}

TEST(EmulatedMatrices, loads_of_matrices) {
    for (const int count : {1, 2, 4}) {
        for (const bool transposes : {false, true}) {
            const std::string form = "x" + std::to_string(count) + (transposes ? ".trans" : "");
            const std::vector<uint32_t> found = loaded(form, count, 24, 16);
            for (int matrix = 0; matrix < count; ++matrix) {
                for (int lane = 0; lane < 32; ++lane) {
                    // row lane / 4, elements 2 * (lane % 4) and the next; of the transposed matrix
                    const auto element = [&](int row, int column) {
                        if (transposes) std::swap(row, column);
                        return uint32_t((8 * matrix + row) * 24 + column + 8);
                    };
                    EXPECT_EQ(found[size_t(32 * matrix + lane)],
                              element(lane / 4, lane % 4 * 2) | element(lane / 4, lane % 4 * 2 + 1) << 16)
                        << form << " lane " << lane;
                }
            }
        }
    }
}

// Each thread copies 4 words to its place in shared memory; %r9 of each is what its neighbour's first word is.
std::optional<Report> copied(const std::string& copy, const std::string& wait, std::vector<uint32_t>& result) {
    std::vector<uint32_t> from(128);
    for (uint32_t i = 0; i < 128; ++i) from[i] = 1000 + i;
    DeviceArray<uint32_t> in(from), out(32);
    Kernel kernel(
        kernel_text("ld.param.b64 %d0, [a]; ld.param.b64 %d9, [b]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 16; "
                    "add.s64 %d0, %d0, "
                    "%d1; mov.u32 %r1, memory; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2; mov.b32 %r20, 0;\n"
                    "st.shared.v4.b32 [%r3], {%r20, %r20, %r20, %r20}; bar.sync 0;\n" +
                        copy + "\n" + wait +
                        "\nxor.b32 %r4, %r0, 1; shl.b32 %r4, %r4, 4; add.u32 %r4, %r4, %r1; ld.shared.b32 %r9, [%r4]; "
                        "ld.shared.b32 "
                        "%r8, [%r4+8]; shl.b32 %r8, %r8, 16; add.u32 %r9, %r9, %r8; mul.wide.u32 %d2, %r0, 4; add.s64 "
                        "%d9, %d9, %d2; "
                        "st.global.b32 [%d9], %r9; ret;",
                    ".shared .align 16 .b8 memory[512];"));
    const std::optional<Report> report = kernel.run({}, in.address(), out.address());
    result = out.get();
    return report;
}

TEST(EmulatedMatrices, asynchronous_copies) {
    const std::string copy = "cp.async.cg.shared.global [%r3], [%d0], 16; cp.async.commit_group;";
    std::vector<uint32_t> found;
    const auto word = [](uint32_t i, uint32_t j) { return 1000 + 4 * (i ^ 1) + j; };
    EXPECT_RUNS(copied(copy, "cp.async.wait_group 0; bar.sync 0;", found));
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(found[i], word(i, 0) + (word(i, 2) << 16));
    EXPECT_RUNS(copied("cp.async.ca.shared.global.L2::128B [%r3], [%d0], 8;", "cp.async.wait_all; bar.sync 0;", found));
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(found[i], word(i, 0));
    // the rest becomes zeros
    EXPECT_RUNS(copied("mov.b32 %r5, 4; cp.async.ca.shared.global [%r3], [%d0], 16, %r5; cp.async.commit_group;",
                       "cp.async.wait_group 0; bar.sync 0;", found));
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(found[i], word(i, 0));
    // groups that are not waited for have not arrived
    EXPECT_RUNS(copied(copy, "cp.async.wait_group 1; bar.sync 0;", found));
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(found[i], 0xdbdbdbdb + 0xdbdb0000);
    EXPECT_RUNS(copied(copy + "cp.async.commit_group;", "cp.async.wait_group 1; bar.sync 0;", found));
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(found[i], word(i, 0) + (word(i, 2) << 16));
}

TEST(EmulatedMatrices, asynchronous_copies_race_and_have_bounds) {
    const std::string copy = "cp.async.cg.shared.global [%r3], [%d0], 16; cp.async.commit_group;";
    std::vector<uint32_t> found;
    // a neighbour reads without a barrier
    std::optional<Report> report = copied(copy, "cp.async.wait_group 0;", found);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, FaultKind::Race);
    report = copied("add.s64 %d0, %d0, 8; " + copy, "cp.async.wait_group 0; bar.sync 0;", found);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, FaultKind::Misaligned);
    report = copied("add.s64 %d0, %d0, 512; " + copy, "cp.async.wait_group 0; bar.sync 0;", found);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, FaultKind::OutOfBounds);
    // bytes that are not read need not be there
    EXPECT_RUNS(copied("add.s64 %d0, %d0, 512; mov.b32 %r5, 0; cp.async.cg.shared.global [%r3], [%d0], 16, %r5;",
                       "cp.async.wait_all; bar.sync 0;", found));
    EXPECT_EQ(found, std::vector<uint32_t>(32, 0));
    EXPECT_THROW(copied("cp.async.cg.shared.global [%r3], [%d0], 8;", "cp.async.wait_all;", found), ptx::Error);
}

}  // namespace

}  // namespace weft::emulator
