#include "transform/inline/noinline_functions.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::transform {

namespace {

using ir::Function;
using ir::Op;
using ir::Operation;

// A larger kernel gets one lane, and takes most of a second to compile.
constexpr std::int64_t kLargeKernel = 16000;
// Functions smaller than kLeastShared cost less than a call. From kLeastApart on a function stays even if it has a
// single call: the time of several LLVM passes grows faster than the size of a function.
constexpr std::int64_t kLeastShared = 64, kLeastApart = 1000;
constexpr std::int64_t kMostBytes = 4096;  // of parameters and results: each number takes a register of its own
constexpr std::int64_t kMany = std::numeric_limits<std::int32_t>::max();

class NoinlineFunctions {
public:
    explicit NoinlineFunctions(const ir::Module& module) {
        for (const auto& function : module.functions)
            ir::for_each_operation(function->body, [&](const Operation& operation) {
                has_arrays_of_memory_ |= gives_array_of_memory(operation);
            });
        for (const auto& function : module.functions) visit(*function);
    }

    std::unordered_set<const Function*> choose(const Function& kernel) {
        if (facts_.at(&kernel).inlined <= kLargeKernel) return {};
        for (auto& [function, facts] : facts_) facts.sites = function == &kernel ? 1 : 0;
        std::unordered_set<const Function*> shared;
        for (const Function* function : callees_first_) {
            Facts& facts = facts_.at(function);
            facts.kept = facts.own;
            for (const Function* callee : facts.calls) {
                const Facts& of_callee = facts_.at(callee);
                facts.kept += shared.contains(callee) ? 1 : of_callee.kept;
            }
            if (function != &kernel && facts.may_stay && facts.kept >= kLeastShared) shared.insert(function);
        }
        // Callers first: counts the calls that remain when all other functions have been inlined.
        for (auto at = callees_first_.rbegin(); at != callees_first_.rend(); ++at) {
            const Facts& facts = facts_.at(*at);
            if (facts.sites < (facts.kept < kLeastApart ? 2 : 1)) shared.erase(*at);
            const std::int64_t copies = shared.contains(*at) ? 1 : facts.sites;
            for (const Function* callee : facts.calls) {
                std::int64_t& sites = facts_.at(callee).sites;
                sites = std::min(sites + copies, kMany);
            }
        }
        return shared;
    }

private:
    struct Facts {
        std::int64_t own = 0, inlined = 0, kept = 0, sites = 0;  // counts of operations; `sites` of calls
        std::vector<const Function*> calls;
        bool may_stay = true, makes_arrays = false;
    };

    void visit(const Function& function) {
        if (facts_.contains(&function)) return;
        Facts facts;
        ir::for_each_operation(function.body, [&](const Operation& operation) {
            ++facts.own;
            if (operation.op == Op::call) facts.calls.push_back(operation.function);
            facts.may_stay &= !needs_the_kernel(operation) && !keeps_arrays(operation);
            facts.may_stay &= !gives_array_of_memory(operation) && operation.op != Op::null;
            facts.makes_arrays |= operation.op == Op::local_array;
        });
        facts.inlined = facts.own;
        for (const Function* callee : facts.calls) {
            visit(*callee);
            const Facts& inner = facts_.at(callee);
            facts.inlined = std::min(facts.inlined + inner.inlined, kMany);
            facts.may_stay &= inner.may_stay;
            facts.makes_arrays |= inner.makes_arrays;
        }
        facts.may_stay &= !function.has_own_derivative();
        std::int64_t bytes = 0;
        for (const ir::Value* parameter : function.parameters()) {
            bytes += parameter->type.size_bytes();
            facts.may_stay &= !has_arrays_of_memory_ || !ir::holds_array(parameter->type);
        }
        for (const ir::Value* result : function.body.terminator()->operands) {
            bytes += result->type.size_bytes();
            // The result may be a local array, which ends with the function.
            facts.may_stay &= !facts.makes_arrays || !ir::holds_array(result->type);
        }
        facts.may_stay &= bytes <= kMostBytes;
        facts_.emplace(&function, std::move(facts));
        callees_first_.push_back(&function);
    }

    // Whether it stores arrays: their origin could not be told from the call.
    static bool keeps_arrays(const Operation& operation) {
        return ir::writes(operation.op) && ir::holds_array(operation.operands.back()->type);
    }

    // Whether its result is an array that may be None: an access to it tests for that, and reports a fault.
    static bool gives_array_of_memory(const Operation& operation) {
        return operation.op == Op::array_at || (operation.op == Op::load && ir::holds_array(operation.result()->type));
    }

    static bool needs_the_kernel(const Operation& operation) {
        switch (operation.op) {
            case Op::tid:
            case Op::block_dim:
            case Op::note_finite:
            case Op::grad_of:
                return true;
            case Op::call_library:
                return operation.library->native != nullptr;
            default:
                return false;
        }
    }

    std::unordered_map<const Function*, Facts> facts_;
    std::vector<const Function*> callees_first_;
    bool has_arrays_of_memory_ = false;
};

}  // namespace

std::unordered_set<const Function*> noinline_functions(const ir::Module& module) {
    NoinlineFunctions noinline(module);
    std::unordered_set<const Function*> shared;
    for (const auto& function : module.functions)
        if (function->is_kernel) shared.merge(noinline.choose(*function));
    return shared;
}

}  // namespace weft::transform
