#include "codegen/alias_scopes.h"

#include <array>
#include <string>
#include <vector>

namespace weft::codegen {

void AliasScopes::open(const ir::Function& kernel, llvm::LLVMContext& context) {
    std::vector<int> keys;
    for (std::size_t i = 0; i < kernel.parameters().size(); ++i)
        if (kernel.parameters()[i]->type.is_array())
            for (int gradient : {0, 1}) keys.push_back(2 * static_cast<int>(i) + gradient);
    std::vector<std::array<llvm::MDNode*, 2>> bits;
    for (std::size_t reach = 1; reach < keys.size(); reach *= 2) {
        std::string number = std::to_string(bits.size());
        llvm::MDNode* domain = llvm::MDNode::getDistinct(context, {llvm::MDString::get(context, "bit " + number)});
        auto scope = [&](const char* value) {
            return llvm::MDNode::getDistinct(context, {llvm::MDString::get(context, value), domain});
        };
        bits.push_back({scope("0"), scope("1")});
    }
    for (std::size_t number = 0; number < keys.size(); ++number) {
        llvm::SmallVector<llvm::Metadata*, 8> own, others;
        for (std::size_t bit = 0; bit < bits.size(); ++bit) {
            std::size_t value = number >> bit & 1;
            own.push_back(bits[bit][value]);
            others.push_back(bits[bit][1 - value]);
        }
        scopes_[keys[number]] = {llvm::MDNode::get(context, own), llvm::MDNode::get(context, others)};
    }
}

void AliasScopes::mark(llvm::Instruction& access, MemoryRoot root) const {
    const auto scopes = scopes_.find(key(root));
    if (root.parameter < 0 || scopes == scopes_.end()) return;
    access.setMetadata(llvm::LLVMContext::MD_alias_scope, scopes->second.own);
    access.setMetadata(llvm::LLVMContext::MD_noalias, scopes->second.others);
}

}  // namespace weft::codegen
