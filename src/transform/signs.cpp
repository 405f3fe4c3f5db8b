#include "transform/signs.h"

#include "ir/indices.h"
#include "ir/lower_bounds.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;

class Signs {
public:
    bool run(const Region& region) {
        visit(region);
        return changed_;
    }

private:
    void visit(const Region& region) {
        const std::size_t before = bounds_.mark();
        for (Operation* operation : region.operations) visit(*operation);
        bounds_.rewind(before);
    }

    void visit(Operation& operation) {
        if (operation.op == Op::select) return choose(operation);
        for (std::size_t i = 0; i < operation.regions.size(); ++i) {
            const std::size_t before = bounds_.mark();
            if (operation.op == Op::if_) bounds_.assume(operation.operands[0], i == 0);
            if (operation.op == Op::while_ && i == 1)
                bounds_.assume(operation.body(0).terminator()->operands[0], true);
            visit(operation.body(i));
            bounds_.rewind(before);
        }
    }

    // simplify() takes the index itself then.
    void choose(Operation& operation) {
        const ir::Value* index = ir::as_written(operation.result());
        if (!index) return;
        // An array without elements has no index that is right.
        const std::size_t before = bounds_.mark();
        if (const ir::Value* extent = ir::extent_of(operation.result())) bounds_.assume_least(extent, 1);
        const bool is_never_negative = bounds_.is_never_negative(index);
        bounds_.rewind(before);
        if (!is_never_negative) return;
        operation.operands[1] = operation.operands[2];
        changed_ = true;
    }

    ir::LowerBounds bounds_;
    bool changed_ = false;
};

}  // namespace

bool drop_signs(ir::Function& function) { return Signs().run(function.body); }

}  // namespace weft::transform
