// The values of a lane's code: the same in all lanes of a block, or not; and the operations that belong to the block.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// Before LaneValues: a block has so many lanes, a kernel asks once for its lane, and has no operations without use.
void prepare_lanes(ir::Function& function, std::int64_t lanes);

class LaneValues {
public:
    // `kernel` has no calls but those of functions with custom derivatives.
    explicit LaneValues(const ir::Function& kernel);

    // Whether lanes may have different values. Tiles belong to the block.
    bool varies(const ir::Value* value) const { return varying_.contains(value); }
    // Whether the block runs it: it makes or changes a tile, or a region of it does.
    bool is_of_block(const ir::Operation& operation) const { return of_block_.contains(&operation); }
    // Whether all lanes do the same, and nothing else is changed by it.
    bool is_uniform(const ir::Operation& operation) const;
    // Whether it reads memory, or writes it.
    bool reads(const ir::Operation& operation) const;
    const std::vector<const ir::Operation*>& users(const ir::Value* value) const;
    // Whether the number of iterations differs between lanes.
    bool trips_vary(const ir::Operation& loop) const;

private:
    void find_uses(const ir::Region& region);
    bool find_block(const ir::Region& region);
    void visit(const ir::Region& region);
    void visit(const ir::Operation& operation);
    void mark(const ir::Value* value);
    void mark(const std::vector<ir::Value*>& values);

    std::unordered_set<const ir::Value*> varying_;
    std::unordered_set<const ir::Operation*> of_block_;
    std::unordered_map<const ir::Value*, std::vector<const ir::Operation*>> users_;
    bool changed_ = false;
};

// Whether the value is defined in the region, or in one inside it.
bool is_inside(const ir::Value* value, const ir::Region& region);

}  // namespace weft::transform
