#include "program/code.h"

#include "ir/walk.h"
#include "program/host.h"

namespace weft::program {

std::shared_ptr<const KernelFacts> KernelCode::find_facts(const LoweringOptions& options) const {
    for (const auto& [known, found] : facts_)
        if (known == options) return found;
    return nullptr;
}

std::shared_ptr<const KernelFacts> KernelCode::facts(const LoweringOptions& options) {
    if (auto found = find_facts(options)) return found;
    lowered(options);
    return find_facts(options);
}

std::shared_ptr<const LoweredKernel> KernelCode::lowered(const LoweringOptions& options) {
    if (latest_.second && latest_.first == options) return latest_.second;
    std::shared_ptr<const LoweredKernel> made;
    {
        const WithoutHost without;
        made = std::make_shared<const LoweredKernel>(lower(ir::clone(*analysed_), options));
    }
    if (!find_facts(options)) facts_.emplace_back(options, std::make_shared<const KernelFacts>(*made));
    latest_ = {options, made};
    return made;
}

std::shared_ptr<const CompiledKernel> KernelCode::find(const CompileOptions& options) const {
    for (const auto& [known, found] : compiled_) {
        if (known == options) return found;
        // Code for one lane serves rows of any length.
        if (!options.code.short_rows || known.code.short_rows || found->description.lanes() != 1) continue;
        CompileOptions of_any_rows = options;
        of_any_rows.code.short_rows = false;
        if (known == of_any_rows) return found;
    }
    return nullptr;
}

std::shared_ptr<const CompiledKernel> KernelCode::compiled(const CompileOptions& options) {
    if (auto found = find(options)) return found;
    const std::shared_ptr<const LoweredKernel> from = lowered(options.lowering);
    std::shared_ptr<const CompiledKernel> made;
    {
        const WithoutHost without;
        made = build(*from, options);
    }
    if (latest_.second == from) latest_.second.reset();
    if (auto found = find(options)) return found;  // another thread was quicker
    compiled_.emplace_back(options, made);
    return made;
}

}  // namespace weft::program
