// The structure of a packed tree: items in the order of a space-filling curve fill leaves of equal size one after the
// other, leaves fill nodes, and these fill the nodes above. It follows from the number of items alone, so that a device
// rebuilds such a tree in the same memory.
//
// I. Kamel, C. Faloutsos, On Packing R-trees, 1993.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/spatial/topology.h"

namespace weft::runtime::spatial {

// `counts`: the items of each group, whose items follow each other; none of them is 0. Topology::order is left empty:
// leaves are ranges of the sorted items. So are `groups` and `parts`; `group_roots` has the root of each group.
Topology packed_topology(std::span<const std::int64_t> counts, int leaf_size);

}  // namespace weft::runtime::spatial
