#include "codegen/harness.h"

#include <dlfcn.h>
#include <llvm/ExecutionEngine/Orc/AbsoluteSymbols.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <math.h>

#include <bit>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "ir/ir.h"
#include "runtime/cpu/copy_lanes.h"

namespace weft::test {

namespace {

void record_print(const char* format, const std::int64_t* words, std::int64_t count) {
    std::string text;
    std::int64_t next = 0;
    for (const char* at = format; *at != '\0'; ++at) {
        if (*at != '%') {
            text += *at;
            continue;
        }
        if (next == count) throw std::runtime_error("a print has fewer words than conversions");
        const std::int64_t word = words[next++];
        char number[32];
        if (*++at == 'd')
            std::snprintf(number, sizeof number, "%lld", static_cast<long long>(word));
        else if (*at == 'g')
            std::snprintf(number, sizeof number, "%g", std::bit_cast<double>(word));
        else
            throw std::runtime_error("the harness prints %d and %g");
        text += number;
    }
    Compiled::printed().push_back(std::move(text));
}

void record_fault(const LaunchContext*, std::int32_t kind, std::int64_t thread, std::int64_t index, std::int64_t size,
                  std::int32_t axis, std::int32_t site) {
    Compiled::faults().push_back({kind, thread, index, size, axis, site});
}

// Library functions that tests call.
float plain_square(float x) { return x * x; }
void cross_product(float* result, float ax, float ay, float az, float bx, float by, float bz) {
    result[0] = ay * bz - az * by;
    result[1] = az * bx - ax * bz;
    result[2] = ax * by - ay * bx;
}
float sum_of_view(const ArrayView* view) {
    float sum = 0;
    for (std::int64_t i = 0; i < view->shape[0]; ++i)
        sum += *reinterpret_cast<const float*>(static_cast<const char*>(view->data) + i * view->strides[0]);
    return sum;
}

template <typename T>
T unwrap(llvm::Expected<T> expected) {
    if (!expected) throw std::runtime_error(llvm::toString(expected.takeError()));
    return std::move(*expected);
}

}  // namespace

codegen::TargetInfo host() {
    codegen::TargetInfo target;
    target.triple = llvm::sys::getProcessTriple();
    target.processor = llvm::sys::getHostCPUName().str();
    auto features = llvm::sys::getHostCPUFeatures();
    for (const auto& feature : features)
        if (feature.second) target.features += (target.features.empty() ? "+" : ",+") + feature.first().str();
    target.vector_bits = features.lookup("avx512vl") && features.lookup("avx512bw") && features.lookup("avx512dq") ? 512
                         : features.lookup("avx2") ? 256
                                                   : 128;
    return target;
}

std::vector<std::string>& Compiled::printed() {
    static std::vector<std::string> lines;
    return lines;
}
std::vector<FaultReport>& Compiled::faults() {
    static std::vector<FaultReport> reports;
    return reports;
}

Compiled::Compiled(const std::string& text, codegen::Options options, const codegen::TargetInfo& target) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto module = ir::parse(text);
    ir::verify(*module);
    std::vector<Type> types;
    for (const ir::Value* parameter : module->functions[0]->parameters()) types.push_back(parameter->type);
    layout_ = argument_layout(types);

    auto context = std::make_unique<llvm::LLVMContext>();
    codegen::Lowered lowered = codegen::lower(*module, transform::plan(*module, codegen::plan_options(options, target)),
                                              target, options, *context);
    entry_ = lowered.kernels.at(0);
    llvm::raw_string_ostream stream(llvm_text_);
    lowered.module->print(stream, nullptr);
    std::string problem;
    llvm::raw_string_ostream problems(problem);
    if (llvm::verifyModule(*lowered.module, &problems)) throw std::runtime_error(problem + llvm_text_);

    auto builder = unwrap(llvm::orc::JITTargetMachineBuilder::detectHost());
    auto machine = unwrap(builder.createTargetMachine());
    lowered.module->setDataLayout(machine->createDataLayout());
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PipelineTuningOptions tuning;
    tuning.LoopVectorization = tuning.SLPVectorization = false;
    llvm::PassBuilder passes(machine.get(), tuning);
    passes.registerModuleAnalyses(modules);
    passes.registerCGSCCAnalyses(components);
    passes.registerFunctionAnalyses(functions);
    passes.registerLoopAnalyses(loops);
    passes.crossRegisterProxies(loops, functions, components, modules);
    passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(*lowered.module, modules);

    jit_ = unwrap(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create());
    auto& library = jit_->getMainJITDylib();
    static void* const sleef = dlopen("libsleef.so.3", RTLD_NOW | RTLD_GLOBAL);
    if (!sleef) throw std::runtime_error("cannot load SLEEF");
    library.addGenerator(unwrap(
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit_->getDataLayout().getGlobalPrefix())));
    auto symbol = [&](auto* function) {
        return llvm::orc::ExecutorSymbolDef(llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported);
    };
    if (auto error = library.define(
            llvm::orc::absoluteSymbols({{jit_->mangleAndIntern("weft_print_words"), symbol(&record_print)},
                                        {jit_->mangleAndIntern("weft_fault"), symbol(&record_fault)},
                                        {jit_->mangleAndIntern("weft_copy_lanes"), symbol(&runtime::copy_lanes)},
                                        {jit_->mangleAndIntern("weft_gather_lanes"), symbol(&runtime::gather_lanes)},
                                        {jit_->mangleAndIntern("test_square"), symbol(&plain_square)},
                                        {jit_->mangleAndIntern("test_cross"), symbol(&cross_product)},
                                        {jit_->mangleAndIntern("test_sum"), symbol(&sum_of_view)}})))
        throw std::runtime_error(llvm::toString(std::move(error)));
    if (auto error = jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(lowered.module), std::move(context))))
        throw std::runtime_error(llvm::toString(std::move(error)));
    function_ = unwrap(jit_->lookup(entry_.symbol)).toPtr<KernelEntryPoint>();
}

void Compiled::launch(const void* block, const std::vector<std::int64_t>& dim, std::int64_t begin, std::int64_t end) {
    LaunchContext context{{1, 1, 1, 1}, nullptr};
    for (std::size_t axis = 0; axis < dim.size(); ++axis) context.dim[axis] = dim[axis];
    function_(block, &context, begin, end);
}

}  // namespace weft::test
