// Kernels that clang wrote (ptx/kernels.cu): control flow, memory, calls, and what threads do together.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness.h"

namespace weft::emulator {

namespace {

Kernel kernel(const std::string& name) { return Kernel(ptx_file("kernels.ptx"), name); }

TEST(EmulatedKernels, saxpy_over_several_blocks) {
    const size_t n = 1000;
    std::vector<float> x(n), y(n);
    for (size_t i = 0; i < n; ++i) x[i] = float(i), y[i] = 1 / float(i + 1);
    DeviceArray<float> dx(x), dy(y);
    Kernel saxpy(ptx_file("saxpy.ptx"), "saxpy");
    EXPECT_RUNS(saxpy.run({.blocks = 8, .threads = 128}, 2.5f, dx.address(), dy.address(), int(n)));
    const std::vector<float> result = dy.get();
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(result[i], std::fma(2.5f, x[i], y[i])) << i;
}

TEST(EmulatedKernels, blocks_sum_with_shared_memory_and_barriers) {
    std::vector<float> x(10000);
    std::iota(x.begin(), x.end(), -5000.0f);
    DeviceArray<float> dx(x), out(std::vector<float>{0.0f});
    EXPECT_RUNS(kernel("block_sum").run({.blocks = 7, .threads = 256}, dx.address(), out.address(), int(x.size())));
    EXPECT_EQ(out.get()[0], -5000.0f);
}

TEST(EmulatedKernels, loops_of_different_lengths) {
    std::vector<uint32_t> x(100), expected(100);
    for (uint32_t i = 0; i < 100; ++i) {
        x[i] = i + 1;
        for (uint32_t v = x[i]; v != 1; ++expected[i]) v = v % 2 ? 3 * v + 1 : v / 2;
    }
    DeviceArray<uint32_t> dx(x), steps(x.size());
    EXPECT_RUNS(kernel("collatz").run({.blocks = 2, .threads = 64}, dx.address(), steps.address(), 100));
    EXPECT_EQ(steps.get(), expected);
}

TEST(EmulatedKernels, recursion_of_different_depths) {
    DeviceArray<int> out(32);
    EXPECT_RUNS(kernel("recursion").run({}, out.address()));
    std::vector<int> expected(32);
    for (int i = 0; i < 32; ++i) {
        int a = 0, b = 1;
        for (int k = 0; k < i % 16; ++k) b = std::exchange(a, b) + b;
        expected[size_t(i)] = a;
    }
    EXPECT_EQ(out.get(), expected);
}

TEST(EmulatedKernels, spin_locks_make_progress) {
    for (const char* name : {"spin_lock", "spin_lock_straight"}) {
        DeviceArray<int> memory(std::vector<int>{0, 0});
        EXPECT_RUNS(kernel(name).run({.blocks = 3, .threads = 96}, memory.address(), memory.address() + 4));
        EXPECT_EQ(memory.get(), (std::vector<int>{0, 288})) << name;
    }
}

// A deadline that has passed leaves a launch whenever the clock is asked.
TEST(EmulatedKernels, a_launch_that_is_left_in_the_middle_goes_on) {
    // lanes part, warps meet at barriers, and each step needs the numbers of others
    const std::string text = kernel_text(
        ".shared .align 4 .b32 s[64]; ld.param.b64 %d0, [a]; ld.param.b32 %r11, [b]; mov.u32 %r0, %tid.x;\n"
        "mov.u32 %r10, s; mov.u32 %r12, %ctaid.x; add.u32 %r1, %r0, %r12; mov.u32 %r2, 0;\n"
        "LOOP: shl.b32 %r3, %r0, 2; add.u32 %r4, %r10, %r3; st.shared.b32 [%r4], %r1; bar.sync 0;\n"
        "add.u32 %r5, %r0, 1; and.b32 %r5, %r5, 63; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r10;\n"
        "ld.shared.b32 %r6, [%r5]; shfl.sync.bfly.b32 %r7, %r1, 5, 31, 0xffffffff; bar.sync 0;\n"
        "and.b32 %r8, %r6, 1; setp.eq.u32 %p0, %r8, 0; @%p0 bra EVEN; mul.lo.u32 %r1, %r6, 3;\n"
        "add.u32 %r1, %r1, %r7; bra JOIN; EVEN: shr.u32 %r1, %r7, 1; add.u32 %r1, %r1, %r6;\n"
        "JOIN: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r11; @%p1 bra LOOP;\n"
        "mad.lo.u32 %r3, %r12, 64, %r0; mul.wide.u32 %d1, %r3, 4; add.s64 %d1, %d0, %d1; st.global.b32 [%d1], %r1;\n"
        "ret;");
    const uint64_t steps = 3000;
    std::vector<uint32_t> expected;
    for (uint32_t block = 0; block < 5; ++block) {
        std::vector<uint32_t> values(64), next(64);
        std::iota(values.begin(), values.end(), block);
        for (uint64_t step = 0; step < steps; ++step, values = next) {
            for (size_t i = 0; i < 64; ++i) {
                const uint32_t right = values[(i + 1) % 64], other = values[i ^ 5];
                next[i] = right % 2 ? right * 3 + other : right + other / 2;
            }
        }
        expected.insert(expected.end(), values.begin(), values.end());
    }
    DeviceArray<uint32_t> out(64 * 5);
    Kernel stepping(text);
    const std::unique_ptr<Launch> launch = stepping.launch({.blocks = 5, .threads = 64}, out.address(), steps);
    Execution execution(*launch);
    int left = 0;
    while (execution.go_on(Deadline(std::chrono::milliseconds(0)))) ++left;
    ASSERT_FALSE(execution.report()) << execution.report()->text;
    EXPECT_EQ(out.get(), expected);
    EXPECT_GE(left, 4);  // more if there are fewer threads than blocks
    EXPECT_FALSE(execution.go_on(Deadline()));
}

TEST(EmulatedKernels, shuffles_and_votes) {
    std::vector<int> x(128);
    std::iota(x.begin(), x.end(), 3);
    DeviceArray<int> dx(x), out(8);
    EXPECT_RUNS(kernel("warp_sum").run({.blocks = 2, .threads = 64}, dx.address(), out.address()));
    for (size_t warp = 0; warp < 4; ++warp) {
        EXPECT_EQ(out.get()[2 * warp], std::accumulate(&x[warp * 32], &x[warp * 32] + 32, 0));
        EXPECT_EQ(uint32_t(out.get()[2 * warp + 1]), 0x55555555u);
    }
}

TEST(EmulatedKernels, vector_and_narrow_accesses) {
    struct alignas(16) Pair {
        float x, y, z, w;
        bool operator==(const Pair&) const = default;
    };
    struct Mixed {
        int8_t c;
        uint8_t u;
        int16_t s;
        uint16_t v;
        int32_t i;
        int64_t l;
        double d;
    };
    std::vector<Pair> a(40);
    std::vector<Mixed> m(40);
    for (int i = 0; i < 40; ++i) {
        a[size_t(i)] = {float(i), float(2 * i), float(-i), 1};
        m[size_t(i)] = {int8_t(-i - 1),   uint8_t(250 + i), int16_t(-1000 * i), uint16_t(65535 - i), -i * 99999,
                        int64_t(i) << 33, i * 0.1};
    }
    DeviceArray<Pair> da(a), db(40);
    DeviceArray<Mixed> dm(m), dr(40);
    EXPECT_RUNS(kernel("vectors").run({.threads = 64}, da.address(), db.address(), dm.address(), dr.address(), 40));
    const std::vector<Pair> b = db.get();
    const std::vector<Mixed> r = dr.get();
    for (size_t i = 0; i < 40; ++i) {
        EXPECT_EQ(b[i], (Pair{a[i].w, a[i].z, a[i].y, a[i].x}));
        EXPECT_EQ(r[i].c, int8_t(m[i].c - 1));
        EXPECT_EQ(r[i].u, uint8_t(m[i].u + 1));
        EXPECT_EQ(r[i].s, int16_t(m[i].s * 3));
        EXPECT_EQ(r[i].v, uint16_t(m[i].v / 3));
        EXPECT_EQ(r[i].i, -m[i].i);
        EXPECT_EQ(r[i].l, m[i].l * m[i].i);
        EXPECT_EQ(r[i].d, m[i].d / m[i].c);
    }
}

TEST(EmulatedKernels, printf_writes_what_the_host_would) {
    take_printed();
    EXPECT_RUNS(kernel("printing").run({.threads = 4}, uint64_t(0)));
    EXPECT_EQ(take_printed(), "thread 0:  0.00 1099511627776 text 100%\nthread 1:  0.50 1099511627776 text 100%\n");
}

TEST(EmulatedKernels, calls_through_tables_of_functions) {
    std::vector<float> x(32), expected(32);
    for (size_t i = 0; i < 32; ++i) {
        x[i] = float(i) + 0.5f;
        expected[i] = i % 3 == 0 ? 2 * x[i] : i % 3 == 1 ? x[i] * x[i] : -x[i];
    }
    DeviceArray<float> dx(x), dy(32);
    EXPECT_RUNS(kernel("pointers").run({}, dx.address(), dy.address()));
    EXPECT_EQ(dy.get(), expected);
}

TEST(EmulatedKernels, switches_with_tables_of_targets) {
    std::vector<int> x(32), expected(32);
    for (int i = 0; i < 32; ++i) {
        const int v = x[size_t(i)] = (i * 7) % 9;
        const int cases[] = {10, v * 7 + i, 5 * x[0], v << (i & 3), -3, i / 3, 77, 1, 1};
        expected[size_t(i)] = cases[v];
    }
    DeviceArray<int> dx(x), dy(32);
    EXPECT_RUNS(kernel("switches").run({}, dx.address(), dy.address()));
    EXPECT_EQ(dy.get(), expected);
}

TEST(EmulatedKernels, local_arrays_belong_to_their_thread) {
    std::vector<int> x(16), expected(32);
    std::iota(x.begin(), x.end(), 100);
    for (int i = 0; i < 32; ++i) expected[size_t(i)] = x[size_t(5 + i) & 15] * i;
    DeviceArray<int> dx(x), dy(32);
    EXPECT_RUNS(kernel("local_array").run({}, dx.address(), dy.address(), 5));
    EXPECT_EQ(dy.get(), expected);
}

TEST(EmulatedKernels, structs_by_value) {
    struct Big {
        int a[12];
    } big;
    for (int i = 0; i < 12; ++i) big.a[i] = 1000 + i * i;
    DeviceArray<int> dy(32);
    Kernel by_value = kernel("by_value");
    // packed() aligns to the size of a value: a struct of 48 bytes comes first
    EXPECT_RUNS(by_value.run({}, big, dy.address()));
    for (int i = 0; i < 32; ++i) EXPECT_EQ(dy.get()[size_t(i)], big.a[i % 12] + 3 * i);
}

TEST(EmulatedKernels, shared_memory_of_the_launch_lies_behind_the_kernels) {
    DeviceArray<int> dy(32);
    EXPECT_RUNS(kernel("dynamic_shared").run({.shared = 128}, dy.address()));
    for (int i = 0; i < 32; ++i) EXPECT_EQ(dy.get()[size_t(i)], (31 - i) * 2 + (i + 1) % 32);
}

TEST(EmulatedKernels, constant_memory) {
    DeviceArray<int> dy(32);
    EXPECT_RUNS(kernel("constants").run({}, dy.address()));
    const int weights[] = {2, 3, 5, 7};
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(dy.get()[i], weights[i % 4]);
}

TEST(EmulatedKernels, atomics_of_many_blocks) {
    DeviceArray<uint32_t> out(std::vector<uint32_t>{0, 0, 99, 0, 0, 0, 0, 0});
    EXPECT_RUNS(kernel("counting").run({.blocks = 13, .threads = 48}, out.address()));
    // 624 threads: inc counts 0 to 9
    EXPECT_EQ(out.get(), (std::vector<uint32_t>{624, 47, 0, 0xffffffff, 624 % 10, 0, 0, 624 * 2}));
}

TEST(EmulatedKernels, the_order_of_blocks_depends_on_the_seed) {
    // the ticket that each block drew
    const std::string text = kernel_text(
        "ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b]; atom.global.add.u32 %r0, [%d0], 1; mov.u32 %r1, %ctaid.x;\n"
        "mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2; st.global.b32 [%d3], %r0; ret;");
    std::vector<std::vector<uint32_t>> orders;
    for (const uint64_t seed : {1, 2000}) {
        DeviceArray<uint32_t> ticket(std::vector<uint32_t>{0}), out(64);
        EXPECT_RUNS(Kernel(text).run({.blocks = 64, .threads = 1, .seed = seed}, ticket.address(), out.address()));
        std::vector<uint32_t> order = out.get(), sorted = order, all(64);
        std::sort(sorted.begin(), sorted.end());
        std::iota(all.begin(), all.end(), 0u);
        EXPECT_EQ(sorted, all);
        orders.push_back(order);
    }
    EXPECT_NE(orders[0], orders[1]);
}

TEST(EmulatedKernels, shared_variables_of_one_entry_take_no_room_in_others) {
    const std::string entry = ") { .reg .b32 %r<2>; mov.u32 %r0, ";
    Kernel both(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 x[40000]; .shared .align 16 .b8 "
        "y[30000]; .shared .align 4 .b8 common[100];\n.entry first(" +
            entry + "x; st.shared.b32 [%r0], 1; mov.u32 %r1, common; ret; }\n.entry second(" + entry +
            "y; mov.u32 %r1, common; ret; }\n",
        "second");
    const Program& program = both.program();
    const auto size = [&](const char* name) {
        return program.functions[size_t(program.function_index.at(name))].shared_size;
    };
    EXPECT_EQ(size("first"), 40000u + 112);
    EXPECT_EQ(size("second"), 30000u + 112);
}

}  // namespace

}  // namespace weft::emulator
