// Branches in the IR, and the merging of the scopes of their two arms.
//
// The arms of a branch run on copies of the scope. Afterwards each name is looked up in both copies:
//
//   * the same value in both: nothing to do;
//   * different values of one type: both arms yield theirs, the result of the `if_` is the name's value from here on
//         if c: x = 1.0                 %x2 = if %c { yield 1.0 } else { yield %x1 }
//   * different types: an error that shows both places, if the name is read from here on;
//   * a value in one arm only: zero in the other arm, if the name is read from here on.
//
// The last two rules ignore an arm that always exits (return, break, continue). The statements after the `if` then run
// only if the other arm was taken. They move into that arm, and no flag is tested:
//
//   if i >= n: return                   if %out { yield } else { store %a[%i], 1.0; yield }
//   a[i] = 1.0
//
// If an arm only *may* exit (an inner if that breaks), it yields a flag, and the statements that follow run under it:
//
//   if a:                               %skip, %x1 = if %a { if %b { yield true, %x0 } else { yield false, 2.0 } }
//       if b: break                                  else { yield false, %x0 }
//       x = 2.0                         if %skip { yield } else { use %x1 }
//   use(x)
//
// Arms that have left a loop still yield the locals of that point, because the loop carries them out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "sema/locals.h"
#include "sema/value.h"
#include "sema/value_writer.h"

namespace weft::sema {

class BranchWriter {
public:
    BranchWriter(ir::Function& function, ir::Builder& builder, Locals& locals)
        : function_(function), builder_(builder), values_(builder), locals_(locals) {}

    // Each arm writes its code and says how control leaves it. It may set its argument, whose merged value `result`
    // receives.
    using Body = std::function<Flow(Value&)>;
    Flow write(ir::Value* condition, Span span, const Body& then_arm, const Body& else_arm, Value* result = nullptr);

private:
    struct Arm {
        ir::Region* region = nullptr;
        Scope scope;
        Flow flow = kFalls;
        Value result;  // of an expression with branches
        Span span;
    };
    // Makes both arms yield a value and gives the result; a null side yields zeros.
    using Join = std::function<Value(const Value*, const Value*, const std::string& name)>;
    Scope merge(Arm& then_arm, Arm& else_arm, std::vector<ir::Value*>& then_yields,
                std::vector<ir::Value*>& else_yields, ir::Operation* operation, Value* result);
    Local merge_local(const std::string& name, const Local* in_then, const Local* in_else, const Arm& then_arm,
                      const Arm& else_arm, const Join& join);
    Value merge_results(Arm& then_arm, Arm& else_arm, const Join& join);
    bool agree(Value& a, Value& b, Span a_span, Span b_span);

    ir::Function& function_;
    ir::Builder& builder_;
    ValueWriter values_;
    Locals& locals_;
};

// Replaces the branch just written at the end of the region by straight-line code if that is cheap and safe. Returns
// the value of its one result, or null if the branch stays.
ir::Value* flatten_branch(ir::Builder& builder, ir::Region& region);

}  // namespace weft::sema
