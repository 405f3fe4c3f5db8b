// Mistakes that were put into kernels: each gives the fault that names it, and what is like it but right gives none.
#include <unistd.h>

#include <fstream>

#include "harness.h"

namespace weft::emulator {

namespace {

// %d0 … %d3: the parameters; %r0: the thread; %d4: its four bytes in a, %d5 in b.
std::string text(const std::string& body, const std::string& before = "") {
    return kernel_text(
        "ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b]; ld.param.b64 %d2, [c]; ld.param.b64 %d3, [d];\n"
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d6, %r0, 4; add.s64 %d4, %d0, %d6; add.s64 %d5, "
        "%d1, %d6;\n" +
            body,
        before);
}

void expect_fault(const std::optional<Report>& report, FaultKind kind, const std::vector<std::string>& parts) {
    ASSERT_TRUE(report) << "expected: " << name_of(kind);
    EXPECT_EQ(report->kind, kind) << report->text;
    for (const std::string& part : parts)
        EXPECT_NE(report->text.find(part), std::string::npos) << part << " is not in: " << report->text;
}

std::vector<int> numbers(size_t count) {
    std::vector<int> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = int(i);
    return values;
}

TEST(EmulatedFaults, access_behind_an_allocation) {
    DeviceArray<int> a(numbers(30));
    const std::string load = text("ld.global.b32 %r2, [%d4]; ret;");
    expect_fault(Kernel(load).run({}, a.address()), FaultKind::OutOfBounds,
                 {"a load of 4 bytes", "0 bytes behind an allocation of 120 bytes", "kernel 'kernel'",
                  "thread (30, 0, 0) of block (0, 0, 0)", "PTX line 10: ld.global.b32 %r2, [%d4]; ret;"});
    EXPECT_RUNS(Kernel(load).run({.threads = 30}, a.address()));
    expect_fault(Kernel(text("st.global.b32 [%d0+-4], %r0; ret;")).run({}, a.address()), FaultKind::OutOfBounds,
                 {"a store of 4 bytes", "4 bytes before an allocation of 120 bytes"});
    expect_fault(Kernel(text("ld.global.b64 %d7, [%d0+120]; ret;")).run({}, a.address()), FaultKind::OutOfBounds, {});
    expect_fault(Kernel(text("ld.b32 %r2, [%d0]; ret;")).run({}, uint64_t(0)), FaultKind::OutOfBounds,
                 {"a null pointer"});
    expect_fault(Kernel(text("ld.global.b32 %r2, [%d0+1000000]; ret;")).run({}, a.address()), FaultKind::OutOfBounds,
                 {"behind an allocation"});
}

// Not a fault, but no number either: in each launch, and in the variables of functions.
TEST(EmulatedFaults, local_memory_that_was_never_written) {
    const std::string reader =
        ".func (.param .b32 o) reader() { .local .b32 v; .reg .b32 %r<1>; ld.local.b32 %r0, [v]; st.local.b32 [v], 7; "
        "st.param.b32 [o], %r0; ret; }\n";
    const std::string call = "{ .param .b32 o; call (o), reader, (); ld.param.b32 %r2, [o]; } ";
    for (const std::string& body :
         {std::string("ld.local.b32 %r2, [v]; st.local.b32 [v], 7; st.global.b32 [%d4], %r2; ret;"),
          call + call + "st.global.b32 [%d4], %r2; ret;"}) {
        DeviceArray<int> a(numbers(64));
        Kernel kernel(text(".local .b32 v;\n" + body, reader));
        for (int launch = 0; launch < 2; ++launch) {
            EXPECT_RUNS(kernel.run({.threads = 64}, a.address()));
            EXPECT_EQ(a.get(), std::vector<int>(64, -1));
        }
    }
}

TEST(EmulatedFaults, access_across_the_end) {
    DeviceArray<char> a(std::vector<char>(6, 'x'));
    expect_fault(Kernel(text("ld.global.b32 %r2, [%d0+4]; ret;")).run({}, a.address()), FaultKind::OutOfBounds,
                 {"across the end of"});
}

TEST(EmulatedFaults, misaligned_access) {
    DeviceArray<int> a(numbers(32));
    expect_fault(Kernel(text("ld.global.b32 %r2, [%d0+2]; ret;")).run({}, a.address()), FaultKind::Misaligned,
                 {"no multiple of 4"});
    expect_fault(Kernel(text("ld.global.v2.b32 {%r2, %r3}, [%d0+4]; ret;")).run({}, a.address()), FaultKind::Misaligned,
                 {"no multiple of 8"});
    EXPECT_RUNS(Kernel(text("ld.global.v2.b32 {%r2, %r3}, [%d0+8]; ret;")).run({}, a.address()));
}

TEST(EmulatedFaults, use_after_free) {
    DeviceArray<int> a(numbers(32));
    const uint64_t address = a.address();
    a.release();
    DeviceArray<int> other(numbers(32));
    expect_fault(Kernel(text("ld.global.b32 %r2, [%d0+8]; ret;")).run({}, address), FaultKind::UseAfterFree,
                 {"8 bytes into an allocation of 128 bytes", "which was freed"});
}

TEST(EmulatedFaults, read_of_what_was_never_written) {
    DeviceArray<int> a(32);
    expect_fault(Kernel(text("ld.global.b32 %r2, [%d4]; ret;")).run({}, a.address()), FaultKind::Uninitialised,
                 {"was never written"});
    EXPECT_RUNS(Kernel(text("st.global.b32 [%d4], %r0; ld.global.b32 %r2, [%d4]; ret;")).run({}, a.address()));
    expect_fault(Kernel(text("mul.wide.u32 %d6, %r0, 4; cvt.u32.u64 %r5, %d6; ld.shared.b32 %r2, [%r5]; ret;",
                             ".shared .align 4 .b8 memory[128];"))
                     .run({}),
                 FaultKind::Uninitialised, {"the shared memory of 128 bytes"});
}

TEST(EmulatedFaults, shared_memory_has_bounds) {
    expect_fault(
        Kernel(text("mov.b64 %d7, memory; st.shared.b32 [%d7+128], %r0; ret;", ".shared .align 4 .b8 memory[128];"))
            .run({}),
        FaultKind::OutOfBounds, {"the shared memory of 128 bytes"});
}

TEST(EmulatedFaults, host_address) {
    int on_host = 1;
    const uint64_t address = reinterpret_cast<uint64_t>(&on_host);
    expect_fault(Kernel(text("ld.global.b32 %r2, [%d0]; ret;")).run({}, address), FaultKind::HostAddress,
                 {"pinned or registered"});
    ASSERT_TRUE(AddressSpace::instance().add_host(&on_host, sizeof on_host, Allocation::Kind::Registered, 0));
    EXPECT_RUNS(Kernel(text("red.global.add.u32 [%d0], 1; ret;")).run({}, address));
    EXPECT_EQ(on_host, 33);
    EXPECT_TRUE(AddressSpace::instance().release(address, Allocation::Kind::Registered));
}

TEST(EmulatedFaults, store_to_a_constant) {
    expect_fault(
        Kernel(text("mov.b64 %d7, fixed; st.b32 [%d7], %r0; ret;", ".const .align 4 .b32 fixed[4] = {1, 2, 3, 4};"))
            .run({}),
        FaultKind::WrongSpace, {"the constant 'fixed'"});
}

TEST(EmulatedFaults, races_between_threads_of_a_block) {
    DeviceArray<int> a(numbers(65));
    const std::string neighbour = "ld.global.b32 %r2, [%d4+4]; st.global.b32 [%d4], %r2; ret;";
    expect_fault(Kernel(text(neighbour)).run({}, a.address()), FaultKind::Race, {"with no barrier between"});
    EXPECT_RUNS(Kernel(text("ld.global.b32 %r2, [%d4+4]; bar.sync 0; st.global.b32 [%d4], %r2; ret;"))
                    .run({.threads = 60}, a.address()));
    EXPECT_RUNS(Kernel(text("ld.global.b32 %r2, [%d4+4]; bar.warp.sync 0xffffffff; st.global.b32 [%d4], %r2; ret;"))
                    .run({}, a.address()));
    // two warps are not ordered by that
    expect_fault(Kernel(text("ld.global.b32 %r2, [%d4+4]; bar.warp.sync 0xffffffff; st.global.b32 [%d4], %r2; ret;"))
                     .run({.threads = 64}, a.address()),
                 FaultKind::Race, {});
    // all write one word
    expect_fault(Kernel(text("st.global.b32 [%d0], %r0; ret;")).run({}, a.address()), FaultKind::Race, {"that thread"});
    EXPECT_RUNS(Kernel(text("st.global.b32 [%d0], 7; ret;")).run({.blocks = 8}, a.address()));
}

// Which bytes of a word a thread accesses is kept, so that numbers of 8 and 16 bits race as words do.
TEST(EmulatedFaults, races_of_parts_of_a_word) {
    DeviceArray<int> a(numbers(65));
    const auto of_element = [](const std::string& shift, const std::string& body) {
        return text("shl.b32 %r5, %r0, " + shift + "; cvt.u64.u32 %d7, %r5; add.s64 %d7, %d0, %d7; " + body + " ret;");
    };
    // each thread its own
    EXPECT_RUNS(Kernel(of_element("0", "st.global.b8 [%d7], %r0; ld.global.b8 %r2, [%d7];")).run({}, a.address()));
    EXPECT_RUNS(Kernel(of_element("1", "ld.global.b16 %r2, [%d7]; st.global.b16 [%d7], %r0;")).run({}, a.address()));
    // the element of the next thread
    expect_fault(Kernel(of_element("0", "ld.global.b8 %r2, [%d7+1]; st.global.b8 [%d7], %r0;")).run({}, a.address()),
                 FaultKind::Race, {"of 1 bytes", "has read"});
    expect_fault(Kernel(of_element("1", "ld.global.b16 %r2, [%d7+2]; st.global.b16 [%d7], %r0;")).run({}, a.address()),
                 FaultKind::Race, {"of 2 bytes", "has read"});
    expect_fault(Kernel(of_element("1", "st.global.b16 [%d7], %r0; st.global.b16 [%d7+2], 99;")).run({}, a.address()),
                 FaultKind::Race, {"that thread", "has written"});
    // all threads one element, which others read as a part of a word
    expect_fault(Kernel(text("st.global.b8 [%d0+3], %r0; ret;")).run({}, a.address()), FaultKind::Race, {});
    expect_fault(Kernel(text("ld.global.b32 %r2, [%d0]; st.global.b8 [%d0+3], %r0; ret;")).run({}, a.address()),
                 FaultKind::Race, {"several threads"});
    // several read one byte, one of them writes another
    EXPECT_RUNS(Kernel(text("ld.global.b8 %r2, [%d0+1]; setp.eq.s32 %p0, %r0, 3; @%p0 bra WRITE; ret; WRITE: "
                            "st.global.b8 [%d0+2], 7; ret;"))
                    .run({.blocks = 1}, a.address()));
    expect_fault(Kernel(text("st.global.b8 [%d0+1], %r1; ret;")).run({.blocks = 2, .threads = 1}, a.address()),
                 FaultKind::Race, {"of block"});
}

TEST(EmulatedFaults, races_between_blocks) {
    DeviceArray<int> a(numbers(64));
    expect_fault(
        Kernel(text("bar.sync 0; st.global.b32 [%d0], %r1; ret;")).run({.blocks = 2, .threads = 1}, a.address()),
        FaultKind::Race, {"of block"});
    expect_fault(Kernel(text("setp.eq.s32 %p0, %r1, 0; @%p0 bra WRITE; ld.global.b32 %r2, [%d0]; ret; WRITE: "
                             "st.global.b32 [%d0], 99; ret;"))
                     .run({.blocks = 2, .threads = 1}, a.address()),
                 FaultKind::Race, {});
    EXPECT_RUNS(Kernel(text("ld.global.b32 %r2, [%d0]; ret;")).run({.blocks = 9}, a.address()));
    EXPECT_RUNS(Kernel(text("red.global.add.u32 [%d0], 1; ret;")).run({.blocks = 9}, a.address()));
    // another launch is ordered behind the first
    Kernel first(text("st.global.b32 [%d4], %r0; ret;")), second(text("st.global.b32 [%d4], 5; ret;"));
    EXPECT_RUNS(first.run({}, a.address()));
    EXPECT_RUNS(second.run({}, a.address()));
}

TEST(EmulatedFaults, launches_are_taken_for_others_never_again) {
    // the shadow has 14 bits for the number of a launch: the first word is touched by two launches of the same number
    DeviceArray<int> a(numbers(2));
    Kernel chosen(text("cvt.u32.u64 %r5, %d1; setp.eq.u32 %p0, %r0, %r5; @!%p0 ret; st.global.b32 [%d0], %r5; ret;"));
    for (uint64_t i = 0; i < 17000; ++i) {
        EXPECT_RUNS(chosen.run({}, a.address() + (i % Actor::kLaunches ? 4 : 0), i % 31));
    }
}

// Arrays of which a kernel uses little, as logs are, take memory for what it uses.
TEST(EmulatedFaults, new_numbers_of_launches_take_no_memory) {
    const auto resident = [] {
        uint64_t pages = 0, of_process = 0;
        std::ifstream("/proc/self/statm") >> of_process >> pages;
        return pages * uint64_t(getpagesize());
    };
    constexpr uint64_t kLarge = uint64_t{1} << 30;
    AddressSpace& space = AddressSpace::instance();
    const Allocation* const large = space.allocate(0, kLarge, Allocation::Kind::Device, true);
    ASSERT_NE(large, nullptr);
    const uint64_t before = resident();
    for (uint32_t i = 0; i <= Actor::kLaunches; ++i) space.next_launch();
    EXPECT_LT(resident(), before + kLarge / 2);
    EXPECT_TRUE(space.release(large->address, Allocation::Kind::Device));
}

TEST(EmulatedFaults, races_in_shared_memory) {
    const std::string before = ".shared .align 4 .b8 memory[256];";
    const std::string body = "mov.b64 %d7, memory; add.s64 %d7, %d7, %d6; st.shared.b32 [%d7], %r0;";
    expect_fault(Kernel(text(body + "ld.shared.b32 %r2, [%d7+4]; ret;", before)).run({.threads = 33}), FaultKind::Race,
                 {"the shared memory of 256 bytes"});
    expect_fault(Kernel(text(body + "st.shared.b32 [%d7+4], 1; ret;", before)).run({.threads = 33}), FaultKind::Race,
                 {"that thread 2 of the same block has written"});
    EXPECT_RUNS(
        Kernel(text(body + "bar.sync 0; st.shared.b32 [%d7+4], 1; ret;", before)).run({.blocks = 5, .threads = 33}));
}

// One lane reads and writes what all lanes of its warp have read before they met.
TEST(EmulatedFaults, a_read_behind_a_meeting_of_the_warp_is_one_reader) {
    const std::string before = ".shared .align 4 .b8 memory[256];";
    const std::string read =
        "mov.b64 %d7, memory; st.shared.b32 [%d7], 3; bar.warp.sync 0xffffffff; ld.shared.b32 %r2, [%d7];";
    const std::string write =
        "setp.ne.u32 %p0, %r0, 0; @%p0 ret; ld.shared.b32 %r2, [%d7]; st.shared.b32 [%d7], 4; ret;";
    EXPECT_RUNS(Kernel(text(read + "bar.warp.sync 0xffffffff;" + write, before)).run({}));
    expect_fault(Kernel(text(read + write, before)).run({}), FaultKind::Race, {"several threads"});
}

TEST(EmulatedFaults, read_only_loads_of_what_the_launch_writes) {
    DeviceArray<int> a(numbers(32));
    expect_fault(Kernel(text("add.u32 %r2, %r0, 5; st.global.b32 [%d4], %r2; ld.global.nc.b32 %r3, [%d4]; ret;"))
                     .run({}, a.address()),
                 FaultKind::ReadOnlyWritten, {"ld.global.nc"});
    EXPECT_RUNS(Kernel(text("ld.global.nc.b32 %r3, [%d4]; ret;")).run({}, a.address()));
}

TEST(EmulatedFaults, barrier_that_half_a_warp_reaches) {
    DeviceArray<int> a(numbers(32));
    const std::string half =
        "setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW; bra END; LOW: bar.sync 0; END: st.global.b32 [%d4], 3; ret;";
    expect_fault(Kernel(text(half)).run({}, a.address()), FaultKind::DivergentBarrier,
                 {"went past this barrier", "PTX line 10"});
    expect_fault(Kernel(text("setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW; bar.sync 0; ret; LOW: bar.sync 0; ret;")).run({}),
                 FaultKind::DivergentBarrier, {"waits at another barrier"});
    // the lanes part and join before it, the upper half at a higher counter
    EXPECT_RUNS(Kernel(text("setp.lt.u32 %p0, %r0, 16; @!%p0 bra HIGH; SYNC: bar.sync 0; ret; HIGH: add.u32 %r0, %r0, "
                            "1; bra SYNC;"))
                    .run({}));
    // threads beyond the data leave early
    EXPECT_RUNS(Kernel(text("setp.ge.u32 %p0, %r0, 40; @%p0 bra END; bar.sync 0; END: ret;")).run({.threads = 96}));
}

TEST(EmulatedFaults, warps_at_different_barriers) {
    expect_fault(Kernel(text("setp.lt.u32 %p0, %r0, 32; @%p0 bra LOW; bar.sync 1; ret; LOW: bar.sync 0; ret;"))
                     .run({.threads = 64}),
                 FaultKind::BarrierDeadlock, {"at barrier 0", "at barrier 1"});
}

TEST(EmulatedFaults, lane_missing_in_a_shuffle) {
    const std::string shuffle = "shfl.sync.idx.b32 %r2, %r0, 0, 31, 0xffffffff;";
    DeviceArray<int> a(numbers(32));
    expect_fault(
        Kernel(text("setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW; bar.sync 0; ret; LOW: " + shuffle + " bar.sync 0; ret;"))
            .run({}),
        FaultKind::MissingLane, {"names lane 16, which waits elsewhere"});
    expect_fault(Kernel(text("setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW; bra END; LOW: " + shuffle +
                             " END: st.global.b32 [%d4], 3; ret;"))
                     .run({}, a.address()),
                 FaultKind::MissingLane, {"names lane 16, which went past"});
    expect_fault(Kernel(text("shfl.sync.idx.b32 %r2, %r0, 0, 31, 0xffff; ret;")).run({}), FaultKind::MissingLane,
                 {"lane 16 is not in the mask"});
    EXPECT_RUNS(Kernel(text("setp.lt.u32 %p0, %r0, 16; selp.b32 %r3, 0xffff, 0xffff0000, %p0; shfl.sync.idx.b32 %r2, "
                            "%r0, 0, 31, %r3; ret;"))
                    .run({}));
}

TEST(EmulatedFaults, endless_loops) {
    expect_fault(Kernel(text("AGAIN: bra AGAIN;")).run({.most_instructions = 100000}), FaultKind::Timeout, {});
    expect_fault(Kernel(text("AGAIN: mov.b32 %r2, 0; LIST: .branchtargets AGAIN; brx.idx %r2, LIST;"))
                     .run({.most_instructions = 100000}),
                 FaultKind::Timeout, {});
    expect_fault(Kernel(ptx_file("endless.ptx"), "endless").run({.most_instructions = 100000}), FaultKind::Timeout, {});
}

TEST(EmulatedFaults, a_limit_of_instructions_is_that_of_one_warp_in_one_block) {
    const std::string counting =
        text("mov.b32 %r2, 0; AGAIN: add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 10000; @%p0 bra AGAIN; ret;");
    EXPECT_RUNS(Kernel(counting).run({.blocks = 200, .most_instructions = 100000}));
    EXPECT_RUNS(Kernel(counting).run({.threads = 1024, .most_instructions = 100000}));
    expect_fault(Kernel(counting).run({.blocks = 3, .threads = 64, .most_instructions = 10000}), FaultKind::Timeout,
                 {"the limit is 10000 (WEFT_EMULATED_LIMIT)", "kernel 'kernel'", "bra AGAIN"});
}

TEST(EmulatedFaults, a_timeout_shows_a_thread_that_goes_round) {
    const std::string endless =
        text("setp.lt.u32 %p0, %r0, 16; @%p0 bra SPIN; bar.sync 0; ret;\nSPIN: add.u32 %r2, %r2, 1; bra SPIN;");
    expect_fault(Kernel(endless).run({.most_instructions = 100000}), FaultKind::Timeout,
                 {"thread (0, 0, 0)", "PTX line 11: SPIN"});
}

// Threads of %r0 = 0 and 40, in two warps, write to one word, one early and one late, with no barrier between. The rest
// takes so many instructions that a launch is left often.
std::string early_and_late(const std::string& late) {
    return text(
        "setp.ne.u32 %p0, %r0, 0; @%p0 bra WAIT; st.global.b32 [%d0], 1; WAIT: mov.b32 %r2, 0;\n"
        "AGAIN: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 30000; @%p1 bra AGAIN;\n"
        "setp.ne.u32 %p0, %r0, 40; @%p0 bra END;\n" +
        late + "\nEND: ret;");
}

TEST(EmulatedFaults, mistakes_are_found_in_a_launch_that_was_left) {
    DeviceArray<int> a(numbers(4));
    Kernel racing(early_and_late("st.global.b32 [%d0], 2;"));
    const Deadline now{std::chrono::milliseconds(0)};
    {
        const std::unique_ptr<Launch> launch = racing.launch({.threads = 64}, a.address());
        Execution execution(*launch);
        ASSERT_TRUE(execution.go_on(now));
        while (execution.go_on(now)) continue;
        expect_fault(execution.report(), FaultKind::Race, {});
    }
    // memory that goes while the launch is left
    Kernel reading(early_and_late("ld.global.b32 %r3, [%d0+8];"));
    const std::unique_ptr<Launch> launch = reading.launch({.threads = 64}, a.address());
    Execution execution(*launch);
    ASSERT_TRUE(execution.go_on(now));
    a.release();
    while (execution.go_on(now)) continue;
    expect_fault(execution.report(), FaultKind::UseAfterFree, {"thread (40, 0, 0)", "PTX line 13"});
}

TEST(EmulatedFaults, numbers_of_launches_that_are_used_up_invent_no_race) {
    DeviceArray<int> a(numbers(4));
    Kernel storing(text("st.global.b32 [%d0], 7; ret;")), later(early_and_late("ld.global.b32 %r3, [%d0+4];"));
    const std::unique_ptr<Launch> launch = later.launch({.threads = 64}, a.address());
    const uint32_t number = launch->number;
    Execution execution(*launch);
    ASSERT_TRUE(execution.go_on(Deadline(std::chrono::milliseconds(0))));
    while (AddressSpace::instance().next_launch() != number) continue;
    // as this one has the number of the launch that was left
    const std::unique_ptr<Launch> other = storing.launch({.threads = 1}, a.address() + 4);
    other->number = number;
    EXPECT_FALSE(run_launch(*other));
    EXPECT_FALSE(execution.go_on(Deadline()));
    EXPECT_FALSE(execution.report()) << execution.report()->text;
}

TEST(EmulatedFaults, endless_recursion) {
    const std::string function =
        ".func endless(.param .b32 x)\n{ .reg .b32 %r<4>; { .param .b32 p; st.param.b32 [p], 1; call endless, (p); } "
        "ret; }\n";
    expect_fault(Kernel(text("{ .param .b32 p; st.param.b32 [p], 1; call endless, (p); } ret;", function)).run({}),
                 FaultKind::StackOverflow, {"function 'endless'"});
}

TEST(EmulatedFaults, traps_assertions_and_calls_of_nothing) {
    expect_fault(Kernel(text("setp.eq.u32 %p0, %r0, 9; @%p0 trap; ret;")).run({}), FaultKind::Trap,
                 {"thread (9, 0, 0)"});
    expect_fault(Kernel(text("{ .param .b64 p; st.param.b64 [p], %d0; call %d0, (p), proto; } ret;\nproto: "
                             ".callprototype _ (.param .b64 _);"))
                     .run({}, uint64_t(77)),
                 FaultKind::BadCall, {"0x4d"});
    expect_fault(Kernel(ptx_file("kernels.ptx"), "asserting").run({}, 5), FaultKind::Assertion,
                 {"source.py:12: asserting: assertion 'k != 5' failed", "thread (5, 0, 0)"});
}

TEST(EmulatedFaults, lines_of_the_source) {
    std::string with_lines = text(".loc 1 42 3\nld.global.b32 %r2, [%d0+4096]; ret;", ".file 1 \"model.py\"");
    DeviceArray<int> a(numbers(4));
    expect_fault(Kernel(with_lines).run({}, a.address()), FaultKind::OutOfBounds, {"at model.py:42"});
}

TEST(EmulatedFaults, fences_order_what_races_would_be) {
    // a flag: the first block writes the number and then the flag, the second waits for the flag
    const std::string body =
        "setp.ne.u32 %p0, %r1, 0; @%p0 bra WAIT; st.global.b32 [%d0], 42; membar.gl; atom.global.exch.b32 %r2, [%d1], "
        "1; ret;\n"
        "WAIT: atom.global.add.u32 %r2, [%d1], 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra WAIT; membar.gl; ld.global.b32 "
        "%r3, [%d0]; st.global.b32 [%d2], %r3; ret;";
    // the second block may run first on a machine of one core: the order of the blocks is tried
    DeviceArray<int> a(numbers(1)), flag(std::vector<int>{0}), out(1);
    std::optional<Report> report;
    for (uint64_t seed = 0; seed < 8; ++seed) {
        flag.set({0});
        report = Kernel(text(body))
                     .run({.blocks = 2, .threads = 1, .seed = seed, .most_instructions = 2'000'000}, a.address(),
                          flag.address(), out.address());
        if (!report || report->kind != FaultKind::Timeout) break;
    }
    EXPECT_FALSE(report) << report->text;
    EXPECT_EQ(out.get()[0], 42);
}

}  // namespace

}  // namespace weft::emulator
