// Lookups of objects by their ids, as runtime/handles.h does for kernels on the host.
#include "devlib/cuda/objects.h"

namespace weft::devlib {

namespace {

// types/objects.h, types/tree_of_mesh.h
constexpr Int32 kBvh = 1, kMesh = 2, kHashGrid = 3, kTexture = 5;
constexpr UInt64 kTreeOfMesh = UInt64(1) << 63, kTangentsOfMesh = UInt64(1) << 62;

UInt64 without_tangents(UInt64 id, Int32 kind) { return kind == kMesh ? id & ~kTangentsOfMesh : id; }

const ObjectSlot* find_previous(const ObjectTable& table, UInt64 id) {
    Int32 first = 0, last = table.previous_count;
    while (first < last) {
        const Int32 middle = first + (last - first) / 2;
        if (table.previous[middle].id < id)
            first = middle + 1;
        else
            last = middle;
    }
    return first < table.previous_count && table.previous[first].id == id ? table.previous + first : nullptr;
}

// The address of the descriptor; 0 if the id names no object of this kind.
UInt64 find(const ObjectTable& table, UInt64 id, Int32 kind) {
    if (Int32(without_tangents(id, kind) >> 56) != kind) return 0;
    if (table.previous_count != 0 || table.are_all != 0) {
        if (const ObjectSlot* previous = find_previous(table, id)) return previous->descriptor;
        if (table.are_all != 0) {
            if (id == without_tangents(id, kind)) *table.missed = 1;
            return 0;
        }
    }
    const Int64 slot = id & 0xffffffff;
    return slot < table.slot_count && table.slots[slot].id == id ? table.slots[slot].descriptor : 0;
}

bool is_tree_of_mesh(UInt64 id, Int32 kind) { return kind == kBvh && (id & kTreeOfMesh) != 0; }

}  // namespace

extern "C" {

// The fields before the tree have the same offsets in meshes of both precisions.
UInt64 weft_lib_find_object(const ObjectTable* table, UInt64 id, Int32 kind) {
    UInt64 found = 0;
    if (is_tree_of_mesh(id, kind)) {
        found = find(*table, id & ~kTreeOfMesh, kMesh);
        if (found != 0) found = UInt64(reinterpret_cast<const MeshDescriptor<float>*>(found)->bvh);
    } else {
        found = find(*table, id, kind);
    }
    if (found != 0) return found;
    return kind == kHashGrid ? table->empty + kDescriptorBytes : table->empty;
}

Int32 weft_lib_has_object(const ObjectTable* table, UInt64 id, Int32 kind) {
    if (is_tree_of_mesh(id, kind)) return find(*table, id & ~kTreeOfMesh, kMesh) != 0;
    if (kind == kTexture && id == 0) return 1;  // no texture: its samples are zeros
    return find(*table, without_tangents(id, kind), kind) != 0;
}

}  // extern "C"

}  // namespace weft::devlib
