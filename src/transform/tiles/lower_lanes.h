// Blocks of several lanes, for a device that runs a block on one thread.
//
// Sema writes the code of one lane: `lane` is its number, `tile_of_lanes` gathers a value of all lanes. This pass turns
// it into the code of the whole block. Values that are the same in all lanes stay as they are. Code between operations
// on tiles becomes a loop over the lanes, and a lane's value that is used beyond such a loop becomes a tile of one
// element for each lane:
//
//     %x = load %a[%lane]              %x = for %k = 0 to 64 step 1 carry (%v = 0) { %y = load %a[%k]; ... insert_at }
//     %t = tile.of_lanes %x[64]        (%x is the tile)
//     %s = tile.reduce %t {...}        %s = tile.reduce %x {...}
//
// Branches and loops that hold an operation on tiles are run by the block. If their condition differs between lanes,
// they run for the lanes that take them: such lanes are a tile of bools, the mask. So lanes that have left by `return`
// take no part in later operations. In debug mode a condition that differs is an error, unless the branch ends the
// kernel and one arm has no such operation.
#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace weft::transform {

struct LaneOptions {
    std::int64_t lanes = 1;
    std::int64_t threads = 0;  // of the whole launch: the last block has the rest of them; 0: all blocks are whole
    bool debug = false;
};

// Whether the kernel has operations of blocks, so that it must know them: tiles, lanes, block_dim().
bool asks_for_blocks(const ir::Module& module);

// Precondition: no other pass has run. Throws CompileError for code that it cannot turn.
void lower_lanes(ir::Module& module, const LaneOptions& options);

}  // namespace weft::transform
