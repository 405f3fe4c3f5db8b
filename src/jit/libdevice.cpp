#include "jit/libdevice.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "jit/hash.h"
#include "jit/jit.h"
#include "jit/toolkits.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "support/error.h"

namespace weft::jit {

namespace {

namespace fs = std::filesystem;

// Prefixes of function names in the two libraries.
constexpr char kLibdevicePrefix[] = "__nv_", kLibclcPrefix[] = "_Z";
constexpr char kLibclcFile[] = "nvptx64--.bc";
// The most instructions of all inlined copies of one function in a kernel; above, it is called.
constexpr std::size_t kMostCopiedInstructions = 10'000;
constexpr char kInToolkit[] = "nvvm/libdevice/libdevice.10.bc";

bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

fs::path find_libclc() {
    for (const char* const folder : {"/usr/lib/clc", "/usr/share/clc", "/usr/local/lib/clc", "/usr/local/share/clc"})
        if (is_file(fs::path(folder) / kLibclcFile)) return fs::path(folder) / kLibclcFile;
    return fs::path("/usr/lib/clc") / kLibclcFile;  // for the error message
}

fs::path find_file() {
    if (const char* const named = std::getenv("WARP_LIBDEVICE"); named != nullptr && *named != '\0')
        return std::string_view(named) == "libclc" ? find_libclc() : fs::path(named);
    if (!bundled_libdevice().empty()) return {};
    for (const fs::path& toolkit : cuda_toolkits())
        if (is_file(toolkit / kInToolkit)) return toolkit / kInToolkit;
    return {};
}

// Bitcode holds the names of its functions as plain text. Parsing the file would take longer than compiling a small
// kernel, which may call none of them.
bool has_functions_of_libclc(const std::string& bitcode) { return bitcode.find("_Z3sinf") != std::string::npos; }

Libdevice with_kind(Libdevice found) {
    found.is_libclc = has_functions_of_libclc(found.bitcode);
    return found;
}

Libdevice find() {
    if (const fs::path path = find_file(); !path.empty()) {
        std::ifstream file(path, std::ios::binary);
        return with_kind({"'" + path.string() + "'", std::string(std::istreambuf_iterator<char>(file), {})});
    }
    const std::span<const unsigned char> bundled = bundled_libdevice();
    if (bundled.empty()) return {};
    return with_kind({"Weft's own libdevice", std::string(bundled.begin(), bundled.end())});
}

[[noreturn]] void fail(const std::string& what) {
    throw UsageError("launch()", what +
                                     ". help: set the environment variable WARP_LIBDEVICE to a file libdevice.10.bc, "
                                     "a part of every CUDA toolkit (nvvm/libdevice), or install LLVM's libclc "
                                     "(apt install libclc-22) and set it to 'libclc'");
}

const char* prefix() { return libdevice().is_libclc ? kLibclcPrefix : kLibdevicePrefix; }

bool wants(const llvm::Module& module) {
    return std::ranges::any_of(module, [](const llvm::Function& function) {
        return function.isDeclaration() && function.getName().starts_with(prefix());
    });
}

std::unique_ptr<llvm::Module> open(llvm::Module& into) {
    const Libdevice& source = libdevice();
    if (source.name.empty())
        fail("the kernel calls mathematical functions, which GPUs have from libdevice, and there is none here");
    llvm::Expected<std::unique_ptr<llvm::Module>> library =
        llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(source.bitcode, "libdevice"), into.getContext());
    if (library)
        if (llvm::Error error = (*library)->materializeMetadata()) library = std::move(error);
    if (!library) fail(source.name + " cannot be read as libdevice: " + llvm::toString(library.takeError()));
    // Metadata that NVIDIA's compiler left for its own module.
    std::vector<llvm::NamedMDNode*> metadata;
    for (llvm::NamedMDNode& one : (*library)->named_metadata()) metadata.push_back(&one);
    for (llvm::NamedMDNode* one : metadata) (*library)->eraseNamedMetadata(one);
    (*library)->setTargetTriple(into.getTargetTriple());
    (*library)->setDataLayout(into.getDataLayout());
    return std::move(*library);
}

// Replaces __nvvm_reflect("__CUDA_FTZ") and others by the compilation's properties: subnormal numbers are kept,
// division and square root are exact.
void answer_questions(llvm::Module& module, const std::string& processor) {
    llvm::Function* const reflect = module.getFunction("__nvvm_reflect");
    if (reflect == nullptr) return;
    const int architecture = 10 * std::atoi(processor.c_str() + std::string_view("sm_").size());
    for (llvm::User* user : llvm::make_early_inc_range(reflect->users())) {
        auto* const call = llvm::cast<llvm::CallInst>(user);
        const auto* text = llvm::dyn_cast<llvm::GlobalVariable>(call->getArgOperand(0)->stripPointerCasts());
        const auto* bytes = text ? llvm::dyn_cast<llvm::ConstantDataArray>(text->getInitializer()) : nullptr;
        const llvm::StringRef question = bytes && bytes->isCString() ? bytes->getAsCString() : "";
        int answer = 0;
        if (question == "__CUDA_ARCH") answer = architecture;
        if (question == "__CUDA_PREC_DIV" || question == "__CUDA_PREC_SQRT") answer = 1;
        call->replaceAllUsesWith(llvm::ConstantInt::get(call->getType(), static_cast<std::uint64_t>(answer)));
        call->eraseFromParent();
    }
    reflect->eraseFromParent();
}

// libclc converts numbers to integers before it tests that they are finite, and uses them as indices of tables. The
// integer of a NaN is poison in LLVM and unspecified on GPUs; the saturated zero is a valid index of each table.
void saturate_conversions(llvm::Module& module) {
    for (llvm::Function& function : module)
        for (llvm::Instruction& each : llvm::make_early_inc_range(llvm::instructions(function))) {
            if (!llvm::isa<llvm::FPToSIInst, llvm::FPToUIInst>(each)) continue;
            llvm::IRBuilder<> builder(&each);
            const auto wanted =
                llvm::isa<llvm::FPToSIInst>(each) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
            llvm::Value* const from = each.getOperand(0);
            each.replaceAllUsesWith(builder.CreateIntrinsic(wanted, {each.getType(), from->getType()}, {from}));
            each.eraseFromParent();
        }
}

}  // namespace

const Libdevice& libdevice() {
    static const Libdevice found = find();
    return found;
}

std::string libdevice_version() {
    static const std::string version = libdevice().bitcode.empty() ? "none" : hash_bytes(libdevice().bitcode).hex();
    return version;
}

void link_libdevice(llvm::Module& module, const std::string& processor) {
    if (!wants(module)) return;
    if (llvm::Linker::linkModules(module, open(module), llvm::Linker::LinkOnlyNeeded))
        fail(libdevice().name + " cannot be linked");
    answer_questions(module, processor);
    if (libdevice().is_libclc) saturate_conversions(module);
    for (llvm::Function& function : module) {
        if (!function.getName().starts_with(prefix())) continue;
        if (function.isDeclaration()) fail(libdevice().name + " has no " + function.getName().str());
        function.setLinkage(llvm::GlobalValue::InternalLinkage);
        // Thousands of copies of one function would take minutes to compile.
        const bool is_small = function.getNumUses() * function.getInstructionCount() <= kMostCopiedInstructions;
        function.removeFnAttr(is_small ? llvm::Attribute::NoInline : llvm::Attribute::AlwaysInline);
        function.addFnAttr(is_small ? llvm::Attribute::AlwaysInline : llvm::Attribute::NoInline);
        for (const char* attribute : {"target-cpu", "target-features"}) function.removeFnAttr(attribute);
    }
}

}  // namespace weft::jit
