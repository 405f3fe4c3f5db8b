#include "transform/vectors_in_memory/large_fields.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

class LargeFieldSplitter {
public:
    LargeFieldSplitter(ir::Function& function, int most_unrolled)
        : b_(function, function.body), map_(function), most_unrolled_(most_unrolled) {}

    bool run(Region& body) {
        region(body);
        if (any_) ir::replace_uses(body, map_);
        return any_;
    }

private:
    bool is_split(Type type) const { return type.is_struct() && ir::most_components(type) > most_unrolled_; }

    void region(Region& region) {
        const std::vector<Operation*> before = std::exchange(region.operations, {});
        ir::Builder::Inside inside(b_, region);
        for (Operation* operation : before) {
            for (Region* inner : operation->regions) this->region(*inner);
            const std::size_t first = region.operations.size();
            b_.span = operation->span;
            if (operation->op == Op::load && is_split(operation->result()->type)) {
                map_.set(operation->result(), load(map_[operation->operands[0]], indices_of(*operation)));
            } else if (operation->op == Op::store && is_split(operation->operands.back()->type)) {
                store(map_[operation->operands[0]], indices_of(*operation), map_[operation->operands.back()]);
            } else {
                region.operations.push_back(operation);
                continue;
            }
            any_ = true;
            for (std::size_t i = first; i < region.operations.size(); ++i)
                region.operations[i]->inlined = operation->inlined;
        }
    }

    std::vector<Value*> indices_of(const Operation& access) const {
        std::vector<Value*> indices;
        for (int i = 1; i <= access.operands[0]->type.ndim(); ++i)
            indices.push_back(map_[access.operands[static_cast<std::size_t>(i)]]);
        return indices;
    }

    Value* load(Value* array, const std::vector<Value*>& indices) {
        const Type type = array->type.element();
        if (!is_split(type)) return b_.load(array, indices);
        std::vector<Value*> fields;
        for (std::size_t i = 0; i < type.fields().size(); ++i)
            fields.push_back(load(b_.member(array, static_cast<int>(i)), indices));
        return b_.make(type, std::move(fields));
    }

    void store(Value* array, const std::vector<Value*>& indices, Value* value) {
        const Type type = array->type.element();
        if (!is_split(type)) return b_.store(array, indices, value);
        for (std::size_t i = 0; i < type.fields().size(); ++i) {
            Value* field = b_.extract(value, {static_cast<std::int64_t>(i)});
            store(b_.member(array, static_cast<int>(i)), indices, field);
        }
    }

    ir::Builder b_;
    ir::ValueMap map_;
    const int most_unrolled_;
    bool any_ = false;
};

// A parameter, put together from parts that are read from memory.
class Parameter {
public:
    Parameter(ir::Builder& builder, Value* parameter, int most_unrolled)
        : b_(builder), parameter_(parameter), most_unrolled_(most_unrolled) {}

    Value* read() { return part(b_.argument(parameter_), {}); }

private:
    // Small fields, arrays among them, are extracted from the parameter as before.
    Value* part(Value* memory, const std::vector<std::int64_t>& path) {
        const Type type = memory->type.element();
        if (ir::most_components(type) <= most_unrolled_) return b_.extract(parameter_, path);
        if (!type.is_struct()) return b_.load(memory, {b_.integer(0)});
        std::vector<Value*> fields;
        for (std::size_t i = 0; i < type.fields().size(); ++i) {
            std::vector<std::int64_t> inner = path;
            inner.push_back(static_cast<std::int64_t>(i));
            fields.push_back(part(b_.member(memory, static_cast<int>(i)), inner));
        }
        return b_.make(type, std::move(fields));
    }

    ir::Builder& b_;
    Value* const parameter_;
    const int most_unrolled_;
};

}  // namespace

bool split_large_structs(ir::Function& function, int most_unrolled) {
    return LargeFieldSplitter(function, most_unrolled).run(function.body);
}

bool read_large_parameters(ir::Function& kernel, int most_unrolled) {
    if (!kernel.is_kernel) return false;
    std::vector<Operation*> rest = std::exchange(kernel.body.operations, {});
    ir::Builder builder(kernel, kernel.body);
    if (!rest.empty()) builder.span = rest.front()->span;
    ir::ValueMap map(kernel);
    for (Value* parameter : kernel.parameters())
        if (ir::most_components(parameter->type) > most_unrolled)
            map.set(parameter, Parameter(builder, parameter, most_unrolled).read());
    std::vector<Operation*>& all = kernel.body.operations;
    const std::vector<Operation*> reads = std::exchange(all, std::move(rest));
    if (reads.empty()) return false;
    ir::replace_uses(kernel.body, map);
    all.insert(all.begin(), reads.begin(), reads.end());
    return true;
}

}  // namespace weft::transform
