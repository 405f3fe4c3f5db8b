#include "transform/adjoint/record.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/copier.h"
#include "ir/typing.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

bool is_extreme(const Operation& atomic) {
    return (atomic.op == Op::atomic_min || atomic.op == Op::atomic_max) &&
           ir::is_smooth(atomic.operands[0]->type.element());
}

bool is_kept(const Operation& operation, const std::unordered_set<const Value*>& used) {
    const Value* root = ir::is_atomic(operation.op) ? ir::root_of(operation.operands[0]) : nullptr;
    if (!root || (root->definition && root->definition->op == Op::local_array)) return false;
    return used.contains(operation.result()) || is_extreme(operation);
}

template <class Visit>
void for_each_outside_loops(const Region& region, const Visit& visit) {
    for (const Operation* operation : region.operations) {
        visit(*operation);
        if (operation->op == Op::if_)
            for (const Region* inner : operation->regions) for_each_outside_loops(*inner, visit);
    }
}

class Recorder : ir::Copier {
public:
    Recorder(const ir::Function& kernel, Records how) : Copier(kernel), how_(how), used_(ir::used_values(kernel)) {}

    std::unique_ptr<ir::Function> run() {
        append_parameters();
        for_each_outside_loops(source_.body, [&](const Operation& operation) {
            if (!is_kept(operation, used_)) return;
            records_[&operation] = made_->add_argument(
                &made_->body, Type::array(operation.operands.back()->type, source_.tid_rank), "record");
            made_->extras.push_back({ir::Extra::Kind::record, static_cast<int>(records_.size()) - 1});
        });
        for (int axis = 0; axis < source_.tid_rank; ++axis) thread_.push_back(b_.tid(axis));
        region(source_.body);
        b_.return_({});
        return std::move(made_);
    }

private:
    void region(const Region& from) {
        for (const Operation* operation : from.operations) {
            if (operation->op == Op::yield || operation->op == Op::return_) continue;
            b_.span = operation->span;
            if (operation->op == Op::if_) {
                append_structured(*operation, {}, [&](const Region& inner, const std::vector<Value*>&) {
                    region(inner);
                    return std::vector<Value*>();
                });
                continue;
            }
            Operation* made = append_copy(*operation);
            if (const auto record = records_.find(operation); record != records_.end())
                keep(*operation, *made, record->second);
        }
    }

    void keep(const Operation& atomic, Operation& made, Value* record) {
        const bool is_used = used_.contains(atomic.result());
        if (how_ == Records::written)
            b_.store(record, thread_, is_used ? made.result() : made.operands.back());
        else if (is_used)
            map_.set(atomic.result(), b_.load(record, thread_));
        else
            made.ints = {record->index};
    }

    const Records how_;
    const std::unordered_set<const Value*> used_;
    std::unordered_map<const Operation*, Value*> records_;
    std::vector<Value*> thread_;
};

}  // namespace

bool has_records(const ir::Function& kernel) {
    if (kernel.tid_rank == 0) return false;
    const std::unordered_set<const Value*> used = ir::used_values(kernel);
    bool any = false;
    for_each_outside_loops(kernel.body, [&](const Operation& operation) { any |= is_kept(operation, used); });
    return any;
}

std::unique_ptr<ir::Function> with_records(const ir::Function& kernel, Records how) {
    return Recorder(kernel, how).run();
}

}  // namespace weft::transform
