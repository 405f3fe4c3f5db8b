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
    return (type.is_scalar() || type.is_numeric_aggregate()) && type.scalar() == Scalar::u64;
}

void add_id_offsets(Type type, std::int64_t offset, std::vector<std::int64_t>& offsets) {
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) add_id_offsets(field.type, offset + field.offset, offsets);
        return;
    }
    const bool has_ids = (type.is_scalar() || type.is_numeric_aggregate()) && type.scalar() == Scalar::u64;
    for (std::int64_t i = 0; has_ids && i * 8 < type.size_bytes(); ++i) offsets.push_back(offset + i * 8);
}

void read_ids(const std::byte* from, std::span<const std::int64_t> offsets, std::vector<std::uint64_t>& ids) {
    for (const std::int64_t offset : offsets) {
        std::uint64_t id = 0;
        std::memcpy(&id, from + offset, sizeof id);
        id &= ~kTreeOfMesh;  // the tree of that mesh
        const std::uint64_t kind = id >> 56;
        if (kind >= 1 && kind <= kObjectKinds) ids.push_back(id);
    }
}

}  // namespace weft::program
