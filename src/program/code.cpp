#include "program/code.h"

#include "ir/walk.h"
#include "program/host.h"

namespace weft::program {

namespace {

// The one that is there by now, where another thread was quicker.
template <typename Table, typename Options, typename Made>
Made kept(Table& table, const Options& options, Made made) {
    for (const auto& [known, found] : table)
        if (known == options) return found;
    table.emplace_back(options, made);
    return made;
}

}  // namespace

std::shared_ptr<const LoweredKernel> KernelCode::lowered(const LoweringOptions& options) {
    for (const auto& [known, found] : lowered_)
        if (known == options) return found;
    std::shared_ptr<const LoweredKernel> made;
    {
        const WithoutHost without;
        made = std::make_shared<const LoweredKernel>(lower(ir::clone(*analysed_), options));
    }
    return kept(lowered_, options, std::move(made));
}

std::shared_ptr<const CompiledKernel> KernelCode::find(const CompileOptions& options) const {
    for (const auto& [known, found] : compiled_) {
        if (known == options) return found;
        // Code for one lane serves rows of any length.
        if (!options.code.short_rows || known.code.short_rows || found->description.lanes != 1) continue;
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
    return kept(compiled_, options, std::move(made));
}

}  // namespace weft::program
