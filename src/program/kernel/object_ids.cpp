#include "program/kernel/object_ids.h"

#include <algorithm>
#include <cstring>

#include "types/objects.h"
#include "types/tree_of_mesh.h"

namespace weft::program {

bool may_hold_ids(Type type) {
    if (type.is_array()) return may_hold_ids(type.element());
    if (type.is_struct())
        return std::ranges::any_of(type.fields(), [](const Type::Field& field) { return may_hold_ids(field.type); });
    return id_count(type) > 0;
}

std::int64_t id_count(Type type) {
    if (type.is_struct()) {
        std::int64_t count = 0;
        for (const Type::Field& field : type.fields()) count += id_count(field.type);
        return count;
    }
    const bool has_ids = (type.is_scalar() || type.is_numeric_aggregate()) && type.scalar() == Scalar::u64;
    return has_ids ? type.size_bytes() / 8 : 0;
}

void for_each_id(Type type, const std::byte* value, const std::function<void(std::uint64_t id)>& visit) {
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) for_each_id(field.type, value + field.offset, visit);
        return;
    }
    for (std::int64_t i = 0, count = id_count(type); i < count; ++i) {
        std::uint64_t id = 0;
        std::memcpy(&id, value + 8 * i, sizeof id);
        id &= ~kTreeOfMesh;
        const std::uint64_t kind = id >> 56;
        if (kind >= 1 && kind <= kObjectKinds) visit(id);
    }
}

void for_each_argument_id(std::span<const Type> types, const ArgumentLayout& layout,
                          std::span<const ParameterEffects> effects, const std::byte* block,
                          const std::function<void(std::size_t parameter, std::uint64_t id)>& visit) {
    for (std::size_t i = 0; i < types.size() && i < effects.size(); ++i)
        if (effects[i].names_objects)
            for_each_id(types[i], block + layout.offsets[i], [&](std::uint64_t id) { visit(i, id); });
}

}  // namespace weft::program
