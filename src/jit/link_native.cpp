// Functions in C++ for CUDA devices: clang's bitcode becomes a part of the kernel's module.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "binary/binary.h"
#include "jit/libdevice.h"
#include "jit/native.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "support/error.h"

namespace weft::jit {

namespace {

using codegen::NativeFunction;

// The functions of <math.h> that libdevice and libclc have, without the f of those for float.
constexpr std::array kMath = {
    "acos",      "acosh", "asin",  "asinh", "atan",  "atan2",  "atanh", "cbrt",  "ceil",  "copysign", "cos",
    "cosh",      "erf",   "erfc",  "exp",   "exp10", "exp2",   "expm1", "fabs",  "fdim",  "floor",    "fma",
    "fmax",      "fmin",  "fmod",  "hypot", "ldexp", "lgamma", "log",   "log10", "log1p", "log2",     "pow",
    "remainder", "rint",  "round", "rsqrt", "sin",   "sinh",   "sqrt",  "tan",   "tanh",  "tgamma",   "trunc",
};
constexpr unsigned kShared = 3;  // the address space

template <class Names>
bool has(const Names& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

[[noreturn]] void fail(const NativeFunction& function, const std::string& message, const std::string& help) {
    throw CompileError(function.call, "the C++ of '" + function.name + "' " + message, {{Note::Kind::help, help, {}}},
                       ErrorCategory::runtime);
}

// libdevice's name of a function of <math.h>, or libclc's; "" if it is none.
std::string name_in_library(const llvm::Function& function) {
    std::string name = function.getName().str();
    const llvm::Type* const result = function.getReturnType();
    if (result->isFloatTy() && name.ends_with('f')) name.pop_back();
    if (!has(kMath, name) || !result->isFloatingPointTy()) return "";
    if (!libdevice().is_libclc) return "__nv_" + function.getName().str();
    std::string mangled = "_Z" + std::to_string(name.size()) + name;
    for (const llvm::Argument& argument : function.args())
        mangled += argument.getType()->isFloatTy() ? 'f' : argument.getType()->isDoubleTy() ? 'd' : 'i';
    return mangled;
}

std::unique_ptr<llvm::Module> read(const NativeFunction& function, const std::vector<std::byte>& bitcode,
                                   const llvm::Module& into) {
    const llvm::StringRef bytes(reinterpret_cast<const char*>(bitcode.data()), bitcode.size());
    llvm::Expected<std::unique_ptr<llvm::Module>> read =
        llvm::parseBitcodeFile(llvm::MemoryBufferRef(bytes, function.name), into.getContext());
    if (!read)
        fail(function, "became bitcode that Weft cannot read: " + llvm::toString(read.takeError()),
             "name a clang of version " + std::to_string(LLVM_VERSION_MAJOR) +
                 " or older by wp.config.host_compiler or the environment variable WEFT_CLANG");
    // Clang's module flags (rounding to zero, frame pointers) do not apply to the kernel's module.
    for (const char* name : {"llvm.module.flags", "llvm.ident", "nvvm.annotations"})
        if (llvm::NamedMDNode* metadata = (*read)->getNamedMetadata(name)) metadata->eraseFromParent();
    (*read)->setTargetTriple(into.getTargetTriple());
    (*read)->setDataLayout(into.getDataLayout());
    return std::move(*read);
}

void check_symbols(const NativeFunction& native, llvm::Module& module) {
    for (llvm::Function& function : module) {
        if (!function.isDeclaration() || function.isIntrinsic() || is_of_cuda_driver(function.getName())) continue;
        const std::string name = name_in_library(function);
        if (name.empty())
            fail(native, "uses '" + llvm::demangle(function.getName().str()) + "', which CUDA devices do not have",
                 "launch the kernel with device=\"cpu\", or guard the use by #if !defined(__CUDA_ARCH__)");
        function.setName(name);
    }
    for (const llvm::GlobalVariable& variable : module.globals()) {
        if (!variable.isDeclaration()) continue;
        const std::string name = "'" + variable.getName().str() + "'";
        if (variable.getAddressSpace() == kShared)
            fail(native, "has shared memory of unknown size: " + name,
                 "launches provide none: declare its size, __shared__ float values[256]");
        fail(native, "uses the variable " + name + ", which CUDA devices do not have", "define it in the C++");
    }
}

// Makes the module's functions parts of the kernel: internal, for the kernel's processor, with atomics of the device's
// scope, which clang drops.
void adopt(llvm::Module& module) {
    const llvm::SyncScope::ID device = module.getContext().getOrInsertSyncScopeID("device");
    for (llvm::Function& function : module) {
        for (llvm::Instruction& instruction : llvm::instructions(function))
            if (instruction.isAtomic()) llvm::setAtomicSyncScopeID(&instruction, device);
        for (const char* attribute : {"target-cpu", "target-features", "frame-pointer", "stack-protector-buffer-size",
                                      "no-trapping-math", "no-builtins"})
            function.removeFnAttr(attribute);
        function.setComdat(nullptr);
    }
    for (llvm::GlobalValue& value : module.global_values())
        if (!value.isDeclaration() && !value.hasAppendingLinkage())
            value.setLinkage(llvm::GlobalValue::InternalLinkage);
}

}  // namespace

bool is_of_cuda_driver(std::string_view function) {
    return has(std::array{"vprintf", "malloc", "free", "__assertfail"}, function);
}

std::vector<NvrtcFunction> link_natives(llvm::Module& module, const std::vector<NativeFunction>& functions,
                                        const Target& target, const NativeOptions& options) {
    std::vector<NvrtcFunction> by_nvrtc;
    for (std::size_t number = 0; number < functions.size(); ++number) {
        const NativeFunction& native = functions[number];
        const NativeCode code = compile_native(native, target, options);
        if (code.is_ptx) {
            by_nvrtc.push_back(
                {native_symbol(number), {reinterpret_cast<const char*>(code.bytes.data()), code.bytes.size()}});
            // It may have barriers.
            if (llvm::Function* const declared = module.getFunction(native_symbol(number)))
                declared->addFnAttr(llvm::Attribute::Convergent);
            continue;
        }
        std::unique_ptr<llvm::Module> part = read(native, code.bytes, module);
        check_symbols(native, *part);
        adopt(*part);
        llvm::Function* const entry = part->getFunction(kNativeSymbol);
        if (entry == nullptr) throw InternalError("the bitcode of '" + native.name + "' has no function of that name");
        entry->setName(native_symbol(number));
        entry->setLinkage(llvm::GlobalValue::ExternalLinkage);
        if (llvm::Linker::linkModules(module, std::move(part)))
            throw InternalError("the bitcode of '" + native.name + "' cannot be linked");
        llvm::Function& linked = *module.getFunction(native_symbol(number));
        linked.setLinkage(llvm::GlobalValue::InternalLinkage);
        linked.removeFnAttr(llvm::Attribute::NoInline);
        linked.addFnAttr(llvm::Attribute::AlwaysInline);
    }
    return by_nvrtc;
}

}  // namespace weft::jit
