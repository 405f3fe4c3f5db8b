#include "jit/devlib.h"

#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "support/error.h"

namespace weft::jit {

namespace {

constexpr char kPrefix[] = "weft_lib_";
// Larger functions are called; up to this number of instructions they are inlined, unless declared noinline.
constexpr unsigned kMostInlined = 600;

// On the CPU, the runtime provides the functions that take a mask.
std::vector<std::string> missing_functions(const llvm::Module& module, Target::Kind kind) {
    std::vector<std::string> missing;
    for (const llvm::Function& function : module)
        if (function.isDeclaration() && function.getName().starts_with(kPrefix) &&
            (kind != Target::Kind::cpu || !function.hasFnAttribute(codegen::kOfRuntime)))
            missing.push_back(function.getName().str());
    return missing;
}

// Function bodies are materialised by the linker on demand.
std::unique_ptr<llvm::Module> open(const DevlibPart& part, llvm::Module& into) {
    const llvm::StringRef bytes(reinterpret_cast<const char*>(part.bitcode), part.size);
    llvm::Expected<std::unique_ptr<llvm::Module>> library =
        llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, "devlib"), into.getContext());
    if (!library) throw InternalError("the device library cannot be read: " + llvm::toString(library.takeError()));
    // Clang's module flags (levels of PIC, frame pointers) do not apply to the kernel's module.
    if (llvm::Error error = (*library)->materializeMetadata())
        throw InternalError("the device library cannot be read: " + llvm::toString(std::move(error)));
    for (const char* name : {"llvm.module.flags", "llvm.ident"})
        if (llvm::NamedMDNode* metadata = (*library)->getNamedMetadata(name)) metadata->eraseFromParent();
    (*library)->setTargetTriple(into.getTargetTriple());
    (*library)->setDataLayout(into.getDataLayout());
    return std::move(*library);
}

// Drops the attributes for the processor that clang compiled for: the code runs on the kernel's. For GPUs, restores the
// scope of atomics, the device, which clang drops.
void adopt(llvm::Function& function, Target::Kind kind) {
    const llvm::SyncScope::ID device = function.getContext().getOrInsertSyncScopeID("device");
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (kind == Target::Kind::cuda && instruction.isAtomic()) llvm::setAtomicSyncScopeID(&instruction, device);
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    for (const char* attribute : {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width", "no-builtins",
                                  "stack-protector-buffer-size", "no-trapping-math"})
        function.removeFnAttr(attribute);
}

void inline_calls_of(llvm::Function& function) {
    std::vector<llvm::CallInst*> calls;
    for (llvm::User* user : function.users())
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(user)) calls.push_back(call);
    for (llvm::CallInst* call : calls) {
        llvm::InlineFunctionInfo info;
        const llvm::InlineResult result = llvm::InlineFunction(*call, info);
        WEFT_CHECK(result.isSuccess(),
                   std::string("a function of the device library cannot be inlined: ") + result.getFailureReason());
    }
    if (function.use_empty()) function.eraseFromParent();
}

}  // namespace

void link_devlib(llvm::Module& module, Target::Kind kind) {
    const std::vector<std::string> wanted = missing_functions(module, kind);
    if (wanted.empty()) return;
    for (const DevlibPart& part : devlib_parts())
        if (part.kind == kind && !missing_functions(module, kind).empty() &&
            llvm::Linker::linkModules(module, open(part, module), llvm::Linker::LinkOnlyNeeded))
            throw InternalError("the device library cannot be linked");
    for (const std::string& name : wanted) {
        llvm::Function& function = *module.getFunction(name);
        if (function.isDeclaration()) throw InternalError("the device library has no function '" + name + "'");
        adopt(function, kind);
        if (function.getInstructionCount() <= kMostInlined && !function.hasFnAttribute(llvm::Attribute::NoInline))
            inline_calls_of(function);
    }
}

}  // namespace weft::jit
