#include "transform/adjoint/numbers.h"

#include <utility>

#include "ir/builder.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "support/error.h"
#include "types/layout.h"

namespace weft::transform {

using ir::Value;

namespace {

class Numbers {
public:
    explicit Numbers(ir::Function& kernel) : kernel_(kernel), b_(kernel, kernel.body) {}

    // The value with its numbers read from memory; `offset` is its position in the argument block, in bytes.
    Value* read(Value* value, std::int64_t offset) {
        const Type type = value->type;
        if (type.is_struct()) {
            std::vector<Value*> parts;
            for (std::size_t i = 0; i < type.fields().size(); ++i)
                parts.push_back(
                    read(b_.extract(value, {static_cast<std::int64_t>(i)}), offset + type.fields()[i].offset));
            return b_.make(type, std::move(parts));
        }
        if (type.is_array() || !ir::is_smooth(type)) return value;
        Value* const memory = kernel_.add_argument(&kernel_.body, Type::array(type, 1), "number");
        kernel_.implicit_parameters.push_back({ir::ImplicitParameter::Kind::number, static_cast<int>(offset)});
        return b_.load(memory, {b_.integer(0)});
    }

private:
    ir::Function& kernel_;
    ir::Builder b_;
};

}  // namespace

void read_numbers_from_memory(ir::Function& kernel, const std::vector<bool>& which) {
    WEFT_CHECK(which.size() == kernel.parameters().size() && kernel.implicit_parameters.empty(),
               "numbers are read from memory before parameters are added");
    std::vector<Type> types;
    for (const Value* parameter : kernel.parameters()) types.push_back(parameter->type);
    const ArgumentLayout layout = argument_layout(types);

    std::vector<ir::Operation*>& operations = kernel.body.operations;
    std::vector<ir::Operation*> rest = std::exchange(operations, {});
    ir::ValueMap map(kernel);
    Numbers numbers(kernel);
    for (std::size_t i = 0; i < which.size(); ++i) {
        Value* const parameter = kernel.parameters()[i];
        Value* const read = which[i] ? numbers.read(parameter, layout.offsets[i]) : parameter;
        if (read != parameter) map.set(parameter, read);
    }
    std::vector<ir::Operation*> reads = std::exchange(operations, std::move(rest));
    ir::replace_uses(kernel.body, map);
    operations.insert(operations.begin(), reads.begin(), reads.end());
}

}  // namespace weft::transform
