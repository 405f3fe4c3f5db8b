#include "program/kernel/code.h"

#include <unordered_map>

#include "ir/walk.h"
#include "program/kernel/interruptible_compilation.h"

namespace weft::program {

namespace {

// Counts the numbers that the kernel's operations compute, those of a function once for each call.
class Size {
public:
    double of(const ir::Function& function) {
        const auto [known, is_new] = functions_.try_emplace(&function, 0.0);
        if (!is_new) return known->second;
        double sum = 0.0;
        ir::for_each_operation(function.body, [&](const ir::Operation& operation) {
            if (operation.op == ir::Op::call) sum += of(*operation.function);
            for (const ir::Value* result : operation.results)
                sum += result->type.is_numeric_aggregate() ? static_cast<double>(result->type.components()) : 1.0;
        });
        return functions_[&function] = sum;
    }

private:
    std::unordered_map<const ir::Function*, double> functions_;
};

// Whether the module may take more than some hundredths of a second to compile. Smaller ones are not worth another
// thread.
bool is_large(const ir::Module& module) {
    constexpr double kLarge = 500.0;
    return Size().of(*module.functions.front()) > kLarge;
}

}  // namespace

std::shared_ptr<const KernelFacts> KernelCode::find_facts(const PassOptions& options) const {
    for (const auto& [known, found] : facts_)
        if (known == options) return found;
    return nullptr;
}

std::shared_ptr<const KernelFacts> KernelCode::facts(const PassOptions& options) {
    if (auto found = find_facts(options)) return found;
    transformed(options);
    return find_facts(options);
}

std::shared_ptr<const TransformedKernel> KernelCode::transformed(const PassOptions& options) {
    if (latest_.second && latest_.first == options) return latest_.second;
    // The work may outlive this object: it gets a copy.
    const auto module = std::make_shared<std::unique_ptr<ir::Module>>(ir::clone(*analysed_));
    const std::string name = analysed_->functions.front()->name;
    auto made = interruptibly(name, is_large(*analysed_), [module, options] {
        return std::make_shared<const TransformedKernel>(transform_kernel(std::move(*module), options));
    });
    if (!find_facts(options)) facts_.emplace_back(options, std::make_shared<const KernelFacts>(*made));
    latest_ = {options, made};
    return made;
}

std::shared_ptr<const CompiledKernel> KernelCode::find(const CompileOptions& options) const {
    for (const auto& [known, found] : compiled_) {
        if (known == options) return found;
        // Code for one lane serves rows of any length.
        if (!options.short_rows || known.short_rows || found->description.lanes() != 1) continue;
        CompileOptions of_any_rows = options;
        of_any_rows.short_rows = false;
        if (known == of_any_rows) return found;
    }
    return nullptr;
}

std::shared_ptr<const CompiledKernel> KernelCode::compiled(const CompileOptions& options) {
    if (auto found = find(options)) return found;
    const std::shared_ptr<const TransformedKernel> from = transformed(options.passes());
    const std::string name = analysed_->functions.front()->name;
    auto made = interruptibly(name, is_large(*from->module), [from, options] { return build(*from, options); });
    if (latest_.second == from) latest_.second.reset();
    if (auto found = find(options)) return found;  // another thread was quicker
    compiled_.emplace_back(options, made);
    return made;
}

}  // namespace weft::program
