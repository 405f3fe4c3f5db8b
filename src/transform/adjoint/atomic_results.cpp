#include "transform/adjoint/atomic_results.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/copier.h"
#include "ir/typing.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

bool is_extreme(const Operation& atomic) {
    return (atomic.op == Op::atomic_min || atomic.op == Op::atomic_max) &&
           ir::is_smooth(atomic.operands[0]->type.element());
}

namespace {

bool is_kept(const Operation& operation, const std::unordered_set<const Value*>& used) {
    const Value* root = ir::is_atomic(operation.op) ? ir::root_of(operation.operands[0]) : nullptr;
    if (!root || (root->definition && root->definition->op == Op::local_array)) return false;
    return used.contains(operation.result()) || is_extreme(operation);
}

bool holds_kept(const Operation& operation, const std::unordered_set<const Value*>& used) {
    for (const Region* region : operation.regions)
        for (const Operation* inner : region->operations)
            if (is_kept(*inner, used) || holds_kept(*inner, used)) return true;
    return false;
}

bool is_loop(const Operation& operation) { return operation.op == Op::for_ || operation.op == Op::while_; }

Type i64_array() { return Type::array(Type::scalar(Scalar::i64), 1); }

class AtomicResultKeeper : ir::Copier {
public:
    AtomicResultKeeper(const ir::Function& kernel, AtomicResults how)
        : Copier(kernel), how_(how), used_(ir::used_values(kernel)) {}

    std::unique_ptr<ir::Function> run() {
        append_parameters();
        made_->tid_rank = std::max(made_->tid_rank, 1);
        find_kept(source_.body, /*in_loop=*/false);
        if (!logged_.empty()) {
            heads_ = add_implicit(ir::ImplicitParameter::Kind::log, i64_array());
            next_ = add_implicit(ir::ImplicitParameter::Kind::log, i64_array());
            for (const Operation* atomic : logged_) {
                Value*& log = logs_[atomic->operands.back()->type];
                if (!log)
                    log = add_implicit(ir::ImplicitParameter::Kind::log, Type::array(atomic->operands.back()->type, 1));
            }
        }
        for (int axis = 0; axis < made_->tid_rank; ++axis) thread_.push_back(b_.tid(axis));
        if (!logged_.empty()) start_log();
        region(source_.body);
        b_.return_({});
        return std::move(made_);
    }

private:
    struct ElementAddress {
        Value* array;
        std::vector<Value*> indices;
    };

    void find_kept(const Region& region, bool in_loop) {
        for (const Operation* operation : region.operations) {
            for (const Region* inner : operation->regions) find_kept(*inner, in_loop || is_loop(*operation));
            if (!is_kept(*operation, used_)) continue;
            if (in_loop)
                logged_.push_back(operation);
            else
                returned_[operation] = add_implicit(ir::ImplicitParameter::Kind::returned,
                                                    Type::array(operation->operands.back()->type, made_->tid_rank));
        }
    }

    // The `of` of such parameters counts them, in their order.
    Value* add_implicit(ir::ImplicitParameter::Kind kind, Type type) {
        made_->implicit_parameters.push_back({kind, implicit_count_++});
        return made_->add_argument(&made_->body, type, kind == ir::ImplicitParameter::Kind::log ? "log" : "returned");
    }

    void start_log() {
        const auto wide = [&](Value* value) { return b_.cast(value, Scalar::i64); };
        Value* number = wide(thread_[0]);
        for (int axis = 1; axis < made_->tid_rank; ++axis)
            number = b_.binary(Op::add, b_.binary(Op::mul, number, b_.load(heads_, {b_.integer(1 + axis)})),
                               wide(thread_[static_cast<std::size_t>(axis)]));
        last_ = b_.local_array(i64_array(), {1});
        b_.store(last_, {b_.integer(0)}, number);
    }

    void region(const Region& from) {
        for (const Operation* operation : from.operations) {
            if (operation->op == Op::yield || operation->op == Op::return_) continue;
            b_.span = operation->span;
            if (holds_kept(*operation, used_)) {
                append_structured(*operation, {}, [&](const Region& inner, const std::vector<Value*>&) {
                    region(inner);
                    return std::vector<Value*>();
                });
                continue;
            }
            if (!is_kept(*operation, used_))
                append_copy(*operation);
            else if (how_ == AtomicResults::written)
                write(*operation);
            else
                read(*operation);
        }
    }

    // The entry of the log after the thread's last one.
    Value* entry() {
        Value *zero = b_.integer(0), *last = b_.load(last_, {zero}), *at = nullptr;
        if (how_ == AtomicResults::written) {
            Value* one = b_.integer(1, Type::scalar(Scalar::i64));
            // On overflow the last entry is overwritten, and the launch fails at its end.
            Value* end = b_.binary(Op::sub, b_.cast(b_.dim(next_, 0), Scalar::i64), one);
            at = b_.binary(Op::min, b_.atomic(Op::atomic_add, heads_, {zero}, {one}), end);
            b_.store(next_, {last}, at);
        } else {
            at = b_.load(next_, {last});
        }
        b_.store(last_, {zero}, at);
        return at;
    }

    // The element that holds the result of the atomic.
    ElementAddress address_of(const Operation& atomic) {
        const auto returned = returned_.find(&atomic);
        if (returned != returned_.end()) return {returned->second, thread_};
        return {logs_.at(atomic.operands.back()->type), {entry()}};
    }

    void write(const Operation& atomic) {
        const Operation* made = append_copy(atomic);
        const ElementAddress element = address_of(atomic);
        b_.store(element.array, element.indices,
                 used_.contains(atomic.result()) ? made->result() : made->operands.back());
    }

    void read(const Operation& atomic) {
        const ElementAddress element = address_of(atomic);
        Value* given = b_.load(element.array, element.indices);
        Operation* made = append_copy(atomic);
        if (used_.contains(atomic.result()))
            map_.set(atomic.result(), given);
        else
            made->operands.insert(made->operands.end() - 1, given);
    }

    const AtomicResults how_;
    const std::unordered_set<const Value*> used_;
    std::vector<const Operation*> logged_;  // in loops
    std::unordered_map<const Operation*, Value*> returned_;
    std::unordered_map<Type, Value*> logs_;  // by type
    int implicit_count_ = 0;
    std::vector<Value*> thread_;
    Value *heads_ = nullptr, *next_ = nullptr, *last_ = nullptr;
};

}  // namespace

bool has_atomic_results(const ir::Function& kernel) {
    const std::unordered_set<const Value*> used = ir::used_values(kernel);
    bool any = false;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) { any |= is_kept(operation, used); });
    return any;
}

std::unique_ptr<ir::Function> with_atomic_results(const ir::Function& kernel, AtomicResults how) {
    return AtomicResultKeeper(kernel, how).run();
}

const Value* offer_of(const Operation& atomic) {
    const std::size_t own = 2 + static_cast<std::size_t>(atomic.operands[0]->type.ndim());
    const bool is_known = is_extreme(atomic) && atomic.operands.size() > own;
    return is_known ? atomic.operands[own - 1] : nullptr;
}

}  // namespace weft::transform
