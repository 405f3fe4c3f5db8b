#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jit/backend.h"
#include "jit/devlib.h"
#include "jit/jit.h"
#include "jit/nvrtc.h"
#include "jit/texts.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "support/error.h"
#include "support/float_environment.h"

namespace weft::jit {

namespace {

// `by_nvrtc` gets the functions that link_natives() returns.
codegen::Lowered lower(const ir::Module& module, const Backend& target, const Options& options,
                       llvm::LLVMContext& context, std::vector<NvrtcFunction>& by_nvrtc) {
    const codegen::TargetInfo info = target.describe(options.target);
    const transform::ModulePlan plan = transform::plan(module, codegen::plan_options(options.codegen, info));
    codegen::Lowered lowered = codegen::lower(module, plan, info, options.codegen, context);
    link_devlib(*lowered.module, options.target.kind);
    if (options.target.kind == Target::Kind::cuda) {
        by_nvrtc = link_natives(*lowered.module, lowered.natives, options.target, options.native);
        lowered.natives.clear();
    }
    return lowered;
}

// One compilation's LLVM context. Errors that LLVM reports are collected, and thrown at the end of a step: its own
// handler would print them and end the process.
class Session {
public:
    Session() {
        context.setDiagnosticHandlerCallBack(
            [](const llvm::DiagnosticInfo* info, void* session) {
                if (info->getSeverity() != llvm::DS_Error) return;
                llvm::raw_string_ostream stream(static_cast<Session*>(session)->errors_);
                llvm::DiagnosticPrinterRawOStream printer(stream);
                info->print(printer);
                stream << '\n';
            },
            this);
    }
    void check() const {
        if (!errors_.empty()) throw InternalError("LLVM reports: " + errors_);
    }
    llvm::LLVMContext context;

private:
    std::string errors_;
};

}  // namespace

const Backend& backend(Target::Kind kind) {
    switch (kind) {
        case Target::Kind::cpu:
            return cpu_backend();
        case Target::Kind::cuda:
            return nvptx_backend();
    }
    throw InternalError("there is no back end for this kind of target");
}

std::optional<std::int64_t> stack_slots(const Target& target) { return backend(target.kind).stack_slots(); }

codegen::TargetInfo describe(const Target& target) { return backend(target.kind).describe(target); }

Binary compile(const ir::Module& module, const Options& options, const Digest& key) {
    const DefaultFloats floats;
    Session session;
    const Backend& target = backend(options.target.kind);
    std::vector<NvrtcFunction> by_nvrtc;
    codegen::Lowered lowered = lower(module, target, options, session.context, by_nvrtc);
    Binary binary;
    for (const codegen::NativeFunction& function : lowered.natives)
        binary.natives.push_back(compile_native(function, options.target, options.native).bytes);
    target.optimize(*lowered.module, options.target, options.optimization_level);
    binary.target = options.target;
    binary.code = target.emit(*lowered.module, options.target, options.optimization_level);
    session.check();
    if (!by_nvrtc.empty()) {
        const std::string_view kernel(reinterpret_cast<const char*>(binary.code.data()), binary.code.size());
        const std::string text = with_functions(kernel, by_nvrtc);
        const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
        binary.code.assign(bytes, bytes + text.size());
    }
    binary.kernels = std::move(lowered.kernels);
    target.check(*lowered.module, binary);
    binary.key = key;
    keep_text(binary, module);
    take_text(binary);
    return binary;
}

std::string listing(const ir::Module& module, const Options& options, Listing which) {
    const DefaultFloats floats;
    Session session;
    const Backend& target = backend(options.target.kind);
    std::vector<NvrtcFunction> by_nvrtc;
    const codegen::Lowered lowered = lower(module, target, options, session.context, by_nvrtc);
    if (which != Listing::llvm) target.optimize(*lowered.module, options.target, options.optimization_level);
    std::string text;
    if (which == Listing::assembly) {
        text = target.emit_text(*lowered.module, options.target, options.optimization_level);
        if (!by_nvrtc.empty()) text = with_functions(text, by_nvrtc);
    } else {
        llvm::raw_string_ostream stream(text);
        lowered.module->print(stream, nullptr);
    }
    session.check();
    return text;
}

}  // namespace weft::jit
