// Objects here are assembled from LLVM modules written by hand, so that these tests need neither codegen nor jit.
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cpu/loader.h"
#include "runtime/cpu/symbols.h"
#include "runtime/print.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

Binary assemble(const std::string& text, const std::string& symbol = "entry") {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
    if (module == nullptr) throw std::runtime_error(problem.getMessage().str());
    const llvm::Triple triple(llvm::sys::getProcessTriple());
    std::string error;
    const std::unique_ptr<llvm::TargetMachine> machine(llvm::TargetRegistry::lookupTarget(triple, error)
                                                           ->createTargetMachine(triple, llvm::sys::getHostCPUName(),
                                                                                 "", {}, llvm::Reloc::PIC_,
                                                                                 llvm::CodeModel::Small));
    module->setTargetTriple(triple);
    module->setDataLayout(machine->createDataLayout());
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager passes;
    machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
    passes.run(*module);

    Binary binary;
    binary.code.resize(bytes.size());
    std::memcpy(binary.code.data(), bytes.data(), bytes.size());
    binary.kernels.push_back({"kernel", symbol, 1});
    return binary;
}

const char* const kDouble = R"(
    define void @entry(ptr %arguments, ptr %context, i64 %begin, i64 %end) {
        %data = load ptr, ptr %arguments
        %at = getelementptr float, ptr %data, i64 %begin
        %value = load float, ptr %at
        %twice = fmul float %value, 2.0
        store float %twice, ptr %at
        ret void
    })";

// One call of the entry over a single float.
float run_on(const CpuExecutable& executable, float value) {
    float* const data = &value;
    const LaunchContext context{{1, 1, 1, 1}, nullptr};
    executable.kernel("kernel").entry()(&data, &context, 0, 1);
    return value;
}

// A kernel that calls a float function of one argument.
std::string calling(const std::string& function) {
    return "declare float @" + function + R"((float)
    define void @entry(ptr %arguments, ptr %context, i64 %begin, i64 %end) {
        %data = load ptr, ptr %arguments
        %value = load float, ptr %data
        %result = call float @)" +
           function + R"((float %value)
        store float %result, ptr %data
        ret void
    })";
}

const char* const kWithLines = R"(
    define void @entry(ptr %arguments, ptr %context, i64 %begin, i64 %end) !dbg !3 { ret void, !dbg !5 }
    !llvm.dbg.cu = !{!0}
    !llvm.module.flags = !{!2}
    !0 = distinct !DICompileUnit(language: DW_LANG_Python, file: !1, emissionKind: FullDebug)
    !1 = !DIFile(filename: "lines.py", directory: "/")
    !2 = !{i32 2, !"Debug Info Version", i32 3}
    !3 = distinct !DISubprogram(name: "entry", file: !1, line: 7, type: !4, unit: !0, spFlags: DISPFlagDefinition)
    !4 = !DISubroutineType(types: !{})
    !5 = !DILocation(line: 8, scope: !3)
    )";

// GDB's view of this process.
struct CodeEntry {
    CodeEntry *next, *previous;
    const char* object;
    std::uint64_t size;
};
struct CodeList {
    std::uint32_t version, action;
    CodeEntry *relevant, *first;
};
extern "C" CodeList __jit_debug_descriptor;

TEST(Executable, gdb_sees_code_with_lines_as_long_as_it_is_loaded) {
    const CpuExecutable without(assemble(kDouble));
    ASSERT_EQ(__jit_debug_descriptor.first, nullptr);
    {
        const CpuExecutable first(assemble(kWithLines));
        const CodeEntry* const entry = __jit_debug_descriptor.first;
        ASSERT_NE(entry, nullptr);
        EXPECT_EQ(__jit_debug_descriptor.relevant, entry);
        auto second = std::make_unique<CpuExecutable>(assemble(kWithLines));
        ASSERT_NE(__jit_debug_descriptor.first, entry);
        EXPECT_EQ(__jit_debug_descriptor.first->next, entry);
        EXPECT_EQ(entry->previous, __jit_debug_descriptor.first);
        // The header of the section .text has the address where the function lies.
        const std::string object(entry->object, entry->size);
        const auto address = reinterpret_cast<std::uint64_t>(first.kernel("kernel").entry());
        EXPECT_NE(object.find(std::string(reinterpret_cast<const char*>(&address), 8)), std::string::npos);
        second.reset();
        EXPECT_EQ(__jit_debug_descriptor.first, entry);
        EXPECT_EQ(entry->previous, nullptr);
    }
    EXPECT_EQ(__jit_debug_descriptor.first, nullptr);
}

TEST(Executable, runs_linked_code) {
    const CpuExecutable executable(assemble(kDouble));
    EXPECT_EQ(run_on(executable, 21.0f), 42.0f);
    EXPECT_EQ(executable.kernel("kernel").description().symbol, "entry");
}

TEST(Executable, reaches_functions_of_the_math_library_and_of_sleef) {
    EXPECT_EQ(run_on(CpuExecutable(assemble(calling("erff"))), 0.5f), std::erf(0.5f));
    EXPECT_NEAR(run_on(CpuExecutable(assemble(calling("Sleef_sinf_u10"))), 0.5f), std::sin(0.5f), 1e-7f);
}

TEST(Executable, prints_words) {
    take_prints();
    const CpuExecutable executable(assemble(R"(
        @format = private constant [12 x i8] c"%d %g %lld\0A\00"
        @words = private constant [3 x i64] [i64 -3, i64 4598175219545276416, i64 1099511627776]
        declare void @weft_print_words(ptr, ptr, i64)
        define void @entry(ptr %arguments, ptr %context, i64 %begin, i64 %end) {
            call void @weft_print_words(ptr @format, ptr @words, i64 3)
            ret void
        })"));
    run_on(executable, 0.0f);
    EXPECT_EQ(take_prints(), "-3 0.25 1099511627776\n");
}

TEST(Executable, an_unknown_symbol_is_an_error_that_names_it) {
    try {
        const CpuExecutable executable(assemble(calling("no_such_function")));
        FAIL() << "linked";
    } catch (const InternalError& error) {
        EXPECT_NE(std::string(error.what()).find("no_such_function"), std::string::npos) << error.what();
    }
}

TEST(Executable, a_missing_entry_is_an_error) {
    EXPECT_THROW(CpuExecutable(assemble(kDouble, "another")), InternalError);
    const CpuExecutable executable(assemble(kDouble));
    EXPECT_THROW(executable.kernel("other"), InternalError);
}

TEST(Executable, damaged_code_is_an_error) {
    Binary garbage = assemble(kDouble);
    garbage.code.resize(garbage.code.size() / 2);
    EXPECT_THROW(CpuExecutable{garbage}, InternalError);
    garbage.code.assign(100, std::byte{7});
    EXPECT_THROW(CpuExecutable{garbage}, InternalError);
    garbage.code.clear();
    EXPECT_THROW(CpuExecutable{garbage}, InternalError);
}

TEST(Executable, code_for_another_target_is_an_error) {
    Binary binary = assemble(kDouble);
    binary.target = {Target::Kind::cuda, "nvptx64-nvidia-cuda", "sm_90", ""};
    EXPECT_THROW(CpuExecutable{binary}, InternalError);
}

// Pages of this process, from the kernel's own account.
std::int64_t mapped_pages() {
    std::ifstream file("/proc/self/statm");
    std::int64_t pages = 0;
    file >> pages;
    return pages;
}

TEST(Executable, gives_its_memory_back) {
    const Binary binary = assemble(kDouble);
    for (int i = 0; i < 50; ++i) CpuExecutable{binary};
    const std::int64_t before = mapped_pages();
    for (int i = 0; i < 2000; ++i) CpuExecutable{binary};
    EXPECT_LT(mapped_pages() - before, 2000);  // each takes some pages while it lives
}

TEST(Executable, links_on_many_threads_at_once) {
    const Binary binary = assemble(calling("erff"));
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) right += run_on(CpuExecutable(binary), 0.25f) == std::erf(0.25f);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right.load(), 8 * 50);
}

TEST(Symbols, bfloat16_rounds_once_to_nearest_even) {
    const auto from_float = reinterpret_cast<float (*)(float)>(find_symbol("__truncsfbf2"));
    const auto from_double = reinterpret_cast<float (*)(double)>(find_symbol("__truncdfbf2"));
    const auto bits = [](float carrier) { return std::bit_cast<std::uint32_t>(carrier); };
    EXPECT_EQ(bits(from_float(1.0f)), 0x3f80u);
    EXPECT_EQ(bits(from_float(-2.0f)), 0xc000u);
    EXPECT_EQ(bits(from_float(1.00390625f)), 0x3f80u);  // a tie: to the even neighbour below
    EXPECT_EQ(bits(from_float(1.01171875f)), 0x3f82u);  // a tie: to the even neighbour above
    EXPECT_EQ(bits(from_float(3.4e38f)), 0x7f80u);      // past the largest: infinity
    EXPECT_EQ(bits(from_float(NAN)) & 0x7fc0u, 0x7fc0u);
    // Just above a tie, by less than a float can see: rounding twice would give 0x3f80.
    EXPECT_EQ(bits(from_double(1.00390625 + 0x1p-40)), 0x3f81u);
    EXPECT_EQ(bits(from_double(-1.00390625 - 0x1p-40)), 0xbf81u);
    EXPECT_EQ(bits(from_double(1.01171875 - 0x1p-40)), 0x3f81u);
    EXPECT_EQ(bits(from_double(1e300)), 0x7f80u);
}

TEST(Symbols, knows_nothing_outside_its_table) {
    EXPECT_NE(find_symbol("fmodf"), nullptr);
    EXPECT_NE(find_symbol("Sleef_expf_u10"), nullptr);
    EXPECT_EQ(find_symbol("Sleef_no_such_function"), nullptr);
    EXPECT_EQ(find_symbol("system"), nullptr);
}

}  // namespace
}  // namespace weft::runtime
