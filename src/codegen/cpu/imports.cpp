#include "codegen/cpu/imports.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/Support/ModRef.h>

#include "support/error.h"

namespace weft::codegen {

namespace {

enum class Effects { any, hidden, stack, known, fresh, copier };

struct Row {
    const char* symbol;
    llvm::StringRef signature;
    Effects effects;
};

constexpr Row kRows[] = {
#define WEFT_IMPORT(symbol, signature, effects, function) {#symbol, signature, Effects::effects},
#include "binary/cpu_imports.def"
#undef WEFT_IMPORT
};

llvm::Type* type_of(llvm::LLVMContext& context, char letter) {
    switch (letter) {
        case 'p':
            return llvm::PointerType::getUnqual(context);
        case 'i':
            return llvm::Type::getInt32Ty(context);
        case 'l':
            return llvm::Type::getInt64Ty(context);
        case 'v':
            return llvm::Type::getVoidTy(context);
        default:
            throw InternalError(std::string("binary/cpu_imports.def: there is no type '") + letter + "'");
    }
}

void add_effects(llvm::Function& function, Effects effects, bool keeps_registers) {
    function.setDoesNotThrow();
    if (effects == Effects::hidden || effects == Effects::stack) function.setOnlyAccessesInaccessibleMemory();
    if (effects == Effects::known) {
        function.setDoesNotAccessMemory();
        function.setWillReturn();
        function.setSpeculatable();
    }
    if (effects == Effects::stack || effects == Effects::fresh) function.addRetAttr(llvm::Attribute::NoAlias);
    if (effects != Effects::copier) return;
    function.setWillReturn();
    function.setOnlyAccessesArgMemory();
    if (keeps_registers) function.setCallingConv(llvm::CallingConv::PreserveAll);
    for (llvm::Argument& argument : function.args()) {
        if (!argument.getType()->isPointerTy()) continue;
        argument.addAttr(argument.getArgNo() == 0 ? llvm::Attribute::WriteOnly : llvm::Attribute::ReadOnly);
        argument.addAttr(llvm::Attribute::getWithCaptureInfo(function.getContext(), llvm::CaptureInfo::none()));
    }
}

}  // namespace

llvm::Function* declare(llvm::Module& module, Import import, bool keeps_registers) {
    const Row& row = kRows[static_cast<std::size_t>(import)];
    if (llvm::Function* known = module.getFunction(row.symbol)) return known;
    llvm::LLVMContext& context = module.getContext();
    const llvm::StringRef letters = row.signature.drop_front(2).drop_back();
    llvm::SmallVector<llvm::Type*, 8> parameters;
    for (const char letter : letters) parameters.push_back(type_of(context, letter));
    auto* type = llvm::FunctionType::get(type_of(context, row.signature.front()), parameters, false);
    llvm::Function* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, row.symbol, module);
    add_effects(*function, row.effects, keeps_registers);
    return function;
}

}  // namespace weft::codegen
