#include "transform/analysis/cost/arm_forms.h"

#include <algorithm>

#include "transform/analysis/cost/op_costs.h"
#include "transform/analysis/cost/speculation.h"
#include "types/leaves.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;

// The most instructions for which an arm is cheaper than a branch.
constexpr int kCheapArm = 24;
// The most operations of an arm that is emitted twice. Masked stores cost several times plain ones: kernels on grids
// test for the border, and most of their groups are inside.
constexpr int kSmallArm = 96;

class Finder {
public:
    explicit Finder(ArmForms& forms) : forms_(forms) {}

    struct Size {
        int operations = 0;
        int instructions = 0;  // if all lanes compute the region; above kCheapArm: too many
    };
    Size visit(const ir::Region& region) {
        Size size;
        for (const Operation* operation : region.operations) {
            ++size.operations;
            int instructions = instructions_of(*operation);
            for (const ir::Region* inner : operation->regions) {
                const Size of_inner = visit(*inner);
                size.operations += of_inner.operations;
                if (operation->op != Op::if_) continue;
                instructions += of_inner.instructions;
                forms_.emplace(inner, form_of(of_inner, *operation));
            }
            size.instructions = std::min(size.instructions + instructions, kCheapArm + 1);
        }
        return size;
    }

private:
    static int instructions_of(const Operation& operation) {
        if (operation.op == Op::if_) return 0;  // its arms count
        if (!is_cheap_to_speculate(operation)) return kCheapArm + 1;
        const int each = static_cast<int>(ir::op_info(operation.op).cost / kSimpleCost);
        if (each == 0) return 0;
        const Type type = operation.operands[0]->type;
        return each * (type.is_array() ? 1 : std::min(leaf_count(type), kCheapArm + 1));
    }

    static ArmForm form_of(const Size& size, const Operation& branch) {
        if (size.instructions <= kCheapArm) return ArmForm::computed;
        return branch.results.empty() && size.operations <= kSmallArm ? ArmForm::twice : ArmForm::masked;
    }

    ArmForms& forms_;
};

}  // namespace

ArmForms find_arm_forms(const ir::Function& kernel) {
    ArmForms forms;
    Finder(forms).visit(kernel.body);
    return forms;
}

}  // namespace weft::transform
