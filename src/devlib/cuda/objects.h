// The ids of a device's objects in its memory (runtime/cuda/objects.h), and their lookup by kernels.
#pragma once

#include "devlib/spatial/layout.h"

namespace weft::devlib {

struct ObjectSlot {
    UInt64 id;          // 0: free
    UInt64 descriptor;  // an address
};

inline constexpr UInt64 kDescriptorBytes = 4096;  // no descriptor is larger

// The place of lookups by a launch.
struct ObjectTable {
    const ObjectSlot* slots;
    Int64 slot_count;
    UInt64 empty;  // the address of the descriptor of an empty object; kDescriptorBytes after it, that of a hash grid
    // Ids that have another meaning in this launch, ascending; descriptor 0: none.
    const ObjectSlot* previous;
    Int32 previous_count;
    Int32 are_all;  // ids that are not among `previous` have no meaning
    Int32* missed;  // set when such an id is looked up
};

}  // namespace weft::devlib
