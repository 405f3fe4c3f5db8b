// Loops. A local that the body changes is carried: it enters each iteration as an argument of the body's region, leaves
// it through `yield`, and is a result of the loop.
//
//   s = 0.0                          %s = for %k in 0 .. %n step 1 carry (%s0 = 0.0) {
//   for k in range(n):                 %v = load %x[%k];  %s1 = add %s0, %v
//       s += x[k]                      yield %s1
//                                    }
//
// The text (walk.h) gives these locals before the body is analysed. Others are known only after the body (the
// value that it returns, names that it is certain to assign) and are added then. So the operation is put together after
// its body, with the starting values before it.
//
// A local that every iteration assigns before it reads it is not carried. One without a value before the loop starts as
// zero if an iteration may read it from an earlier one. Its type is found by analysing the body once in a dropped
// region:
//
//   for k in range(n):               %last = for %k in 0 .. %n carry (%last0 = 0) {
//       if x[k] > 0.0:                 %last1 = if %positive { yield %k } else { yield %last0 }
//           last = k                   yield %last1
//                                    }
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "sema/locals.h"
#include "sema/value.h"
#include "sema/value_writer.h"
#include "syntax/tree.h"

namespace weft::sema {

struct LoopNames {
    std::set<std::string> assigned;    // those that an iteration may change
    std::set<std::string> by_calls;    // of these, the ones that calls change through their arguments
    std::set<std::string> rebound;     // of these, the ones that it gives a new meaning as a whole
    std::set<std::string> fresh;       // of these, the ones that it assigns first and that no code after the loop reads
    std::set<std::string> taken_over;  // without a value before the loop, and perhaps read from an earlier iteration
};

// One loop. The constructor makes the operation; enter() is called for each region before its code is written, then
// finish() or abandon().
class LoopWriter {
public:
    // `bounds`: start, stop and step of a for loop; none of a while loop.
    LoopWriter(ir::Op op, std::vector<ir::Value*> bounds, const syntax::Block& body, LoopNames names, Span span,
               ir::Function& function, ir::Builder& builder, Locals& locals);

    ir::Region* new_region() { return function_.new_region(operation_); }
    // Enters a region of the loop: carried locals are its arguments there.
    void enter(ir::Region* region);
    // Puts the operation together after the body, which control leaves by `flow`, and appends it. Locals are those of
    // the body's end before, and those after the loop then.
    Flow finish(ir::Region* body, Flow flow);
    // The loop never runs: locals are those before it.
    void abandon();

    bool is_guarded;  // a flag says whether the loop goes on

private:
    struct Carried {
        std::string name;
        Local before;
        std::size_t leaves;
    };
    // A local that the body added, and the first of its yields.
    struct Added {
        std::string name;
        Local local;
        std::size_t first;
    };
    void yield_from_body(const Value& value, Span span);
    void yield_carried();
    void yield_added(bool returns);
    std::vector<ir::Value*> append();
    void set_locals_after(const std::vector<ir::Value*>& results);

    ir::Function& function_;
    ir::Builder& builder_;
    ValueWriter values_;
    Locals& locals_;
    ir::Operation* operation_;
    LoopNames names_;
    Span span_;
    bool saved_skip_needed_;
    Scope before_;
    std::vector<Carried> carried_;
    std::vector<ir::Value*> inits_;  // starting values, one per leaf
    std::vector<ir::Region*> argument_regions_;
    // After the body: the locals at its end, and its yields.
    ir::Region* body_ = nullptr;
    Scope after_body_;
    std::vector<ir::Value*> yields_;
    std::vector<Added> added_;
};

}  // namespace weft::sema
