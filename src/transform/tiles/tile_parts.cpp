#include "transform/tiles/tile_parts.h"

#include "support/error.h"

namespace weft::transform {

namespace {

using ir::Builder;
using ir::Value;

void append_parts(Type type, std::int64_t size, std::vector<std::int64_t>& path, std::vector<TilePart>& parts) {
    if (type.is_struct()) {
        for (std::size_t i = 0; i < type.fields().size(); ++i) {
            path.push_back(static_cast<std::int64_t>(i));
            append_parts(type.fields()[i].type, size, path, parts);
            path.pop_back();
        }
        return;
    }
    const int count = static_cast<int>(size);
    const Type stored = size == 1          ? type
                        : type.is_scalar() ? Type::vector(type.scalar(), count)
                                           : Type::matrix(type.scalar(), count, type.components());
    parts.push_back({path, type, stored});
}

std::vector<std::int64_t> component(Type type, std::int64_t number) {
    if (type.is_matrix()) return {number / type.cols(), number % type.cols()};
    return {number};
}

void append_components(Builder& builder, Value* value, std::vector<Value*>& components) {
    if (value->type.is_scalar()) {
        components.push_back(value);
        return;
    }
    for (std::int64_t i = 0; i < value->type.components(); ++i)
        components.push_back(builder.extract(value, component(value->type, i)));
}

Value* part_of(Builder& builder, const TilePart& part, Value* element) {
    return part.path.empty() ? element : builder.extract(element, part.path);
}

Value* joined(Builder& builder, Type type, const std::vector<Value*>& parts, std::size_t& next) {
    if (!type.is_struct()) return parts[next++];
    std::vector<Value*> fields;
    for (const Type::Field& field : type.fields()) fields.push_back(joined(builder, field.type, parts, next));
    return builder.make(type, std::move(fields));
}

}  // namespace

std::vector<TilePart> tile_parts(Type tile) {
    std::vector<TilePart> parts;
    std::vector<std::int64_t> path;
    append_parts(tile.element(), tile.size(), path, parts);
    return parts;
}

Value* read_part(Builder& builder, const TilePart& part, Value* stored, Value* at) {
    if (part.stored == part.type) return stored;
    Value* const row = builder.extract_at(stored, {at});
    if (row->type == part.type) return row;
    std::vector<Value*> components;
    append_components(builder, row, components);
    return builder.make(part.type, std::move(components));
}

Value* write_part(Builder& builder, const TilePart& part, Value* stored, Value* element, Value* at) {
    Value* value = part_of(builder, part, element);
    if (part.stored == part.type) return value;
    if (!part.type.is_scalar() && !part.type.is_vector()) {
        std::vector<Value*> components;
        append_components(builder, value, components);
        value = builder.make(Type::vector(part.type.scalar(), part.type.components()), std::move(components));
    }
    return builder.insert_at(stored, value, {at});
}

Value* join_parts(Builder& builder, Type element, const std::vector<Value*>& parts) {
    std::size_t next = 0;
    return joined(builder, element, parts, next);
}

std::vector<Value*> made_of(Builder& builder, Type tile, const std::vector<Value*>& elements) {
    std::vector<Value*> made;
    for (const TilePart& part : tile_parts(tile)) {
        if (part.stored == part.type) {
            made.push_back(part_of(builder, part, elements[0]));
            continue;
        }
        std::vector<Value*> components;
        for (Value* element : elements) append_components(builder, part_of(builder, part, element), components);
        made.push_back(builder.make(part.stored, std::move(components)));
    }
    return made;
}

}  // namespace weft::transform
