// The inside of adjoint(), cut by subject. Reading order: reverse.cpp (values and straight-line code), control.cpp
// (branches and loops), checkpoints.cpp (initial states of iterations), loads_and_stores.cpp (loads, stores, atomics).
//
// `source` names parts of the kernel that is differentiated, which stays as it is. New operations go to the end of the
// region in which the builder stands.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/copier.h"
#include "transform/adjoint/adjoint.h"
#include "transform/adjoint/to_be_recorded.h"
#include "weft/array_view.h"

namespace weft::transform {

// Throws CompileError if the kernel has effects or inputs that the backward pass cannot repeat.
void refuse_unknown(const ir::Function& kernel);

inline const ir::Region& body_of(const ir::Operation& loop) { return *loop.regions.back(); }

// For a function it makes the function's gradient (ir::Function::gradient).
class Reverser : ir::Copier {
public:
    // The first `prepass` operations of the source have no part in the derivative (to_be_recorded.h).
    Reverser(const ir::Function& source, std::size_t prepass, const AdjointOptions& options);

    std::unique_ptr<ir::Function> run();

private:
    // Adjoints of source values while one region is reversed. Those of values from outside are found through `outer`;
    // additions to them stay here until the region is left.
    struct Frame {
        Frame* outer = nullptr;
        const ir::Region* region = nullptr;  // of the source
        ir::Region* loop = nullptr;          // the body of the reverse loop, if the region is a loop's
        std::unordered_map<const ir::Value*, ir::Value*> adjoints;
        std::vector<const ir::Value*> carried;  // values from outside, in the order of the loop's arguments for them
    };

    // The data that the replay of a loop saves for its reverse.
    struct SavedLoop {
        ir::Value* count = nullptr;      // iterations
        std::vector<ir::Value*> stacks;  // by carried value: the state at the start of each iteration; null for arrays
        // If there may be more iterations than slots: the number of slots, whether they suffice, and otherwise the
        // iteration at each checkpoint.
        std::int64_t slots = 0;
        ir::Value* is_complete = nullptr;
        ir::Value* iterations = nullptr;

        bool has_checkpoints() const { return slots > 0; }
    };

    // ---- reverse.cpp: values ----
    void find_active();
    void find_used();
    bool is_active(const ir::Value* source) const { return active_[static_cast<std::size_t>(source->id)]; }
    ir::Value* adjoint_of(const ir::Value* source);  // null stands for zero
    ir::Value* adjoint_or_zero(const ir::Value* source);
    void set_adjoint(const ir::Value* source, ir::Value* adjoint) { frame_->adjoints[source] = adjoint; }
    void accumulate(const ir::Value* source, ir::Value* contribution);
    // Values from outside whose adjoints the region changed, in a fixed order.
    std::vector<const ir::Value*> changed_outside(const Frame& frame) const;

    // ---- reverse.cpp: straight-line code ----
    // Copies the region's operations, without effects. If it is to be reversed (`saves_loops`), the loops directly in
    // it save their states. A branch is then left out if only the end of the region uses its results.
    void replay(const ir::Region& region, bool saves_loops);
    void reverse(const ir::Region& region);
    void reverse(const ir::Operation& operation);
    void reverse_by_partials(const ir::Operation& operation, ir::Value* d);
    void reverse_parts(const ir::Operation& operation, ir::Value* d);
    void reverse_product(const ir::Operation& operation, ir::Value* d);

    // ---- control.cpp ----
    void replay_loop(const ir::Operation& operation);
    ir::Value* trip_count(const ir::Operation& operation);
    ir::Value* counted(const ir::Operation& operation);
    void set_counter(const ir::Operation& operation, ir::Value* t);
    void reverse_if(const ir::Operation& operation);
    void reverse_loop(const ir::Operation& operation);

    // ---- checkpoints.cpp ----
    void open_stacks(const ir::Operation& operation, SavedLoop& saved);
    std::int64_t slots_for(const ir::Operation& loop, std::int64_t bytes, Type counting) const;
    ir::Value* stack(Type element, ir::Value* count, std::int64_t most);
    void save_state(const ir::Operation& operation, const SavedLoop& saved, ir::Value* t);
    // The initial state of iteration `t`; the reverse asks for the last one first. `newest` is the last checkpoint.
    std::vector<ir::Value*> state_at(const ir::Operation& operation, const SavedLoop& saved, ir::Value* t,
                                     ir::Value*& newest);
    std::vector<ir::Value*> recomputed(const ir::Operation& operation, const SavedLoop& saved, ir::Value* t,
                                       std::vector<ir::Value*> state, ir::Value* newest);
    std::vector<ir::Value*> run_on(const ir::Operation& operation, ir::Value* from, ir::Value* steps,
                                   std::vector<ir::Value*> state);

    // ---- calls.cpp: functions with derivatives of their own ----
    void replay_call(const ir::Operation& call);
    void reverse_call(const ir::Operation& call);
    void reverse_library_call(const ir::Operation& call, ir::Value* d);
    bool passes_gradients(const ir::Operation& call) const;  // whether an array among its operands has one
    std::vector<ir::Value*> arguments_of(const ir::Operation& call, const ir::Function& callee);
    ir::Value* as_after(const ir::Operation& use, const ir::Value* array);

    // ---- loads_and_stores.cpp ----
    // The position of each coordinate of the thread among the indices.
    using CoordinatePositions = std::array<int, kMaxDims>;
    Gradient gradient_of(const ir::Value* array) const;
    bool has_gradient(const ir::Value* array) const;  // false only if it surely has none
    bool may_lack_gradient(const ir::Value* array) const;
    bool writes_gradients(const ir::Operation& operation) const;  // whether its reverse writes gradients in its regions
    std::optional<CoordinatePositions> coordinate_positions(const ir::Operation& access) const;
    void find_uncontended_accesses();
    bool is_uncontended(const ir::Operation& access) const;
    std::vector<ir::Value*> where_it_has_one(const ir::Value* array, const std::vector<Type>& types,
                                             const std::function<std::vector<ir::Value*>(ir::Value* gradient)>& body);
    void reverse_load(const ir::Operation& operation, ir::Value* d);
    void reverse_store(const ir::Operation& operation);
    void reverse_atomic(const ir::Operation& operation);
    void reverse_extreme(const ir::Operation& operation);
    void add_to_gradient(ir::Value* gradient, const std::vector<ir::Value*>& indices, ir::Value* d,
                         bool is_uncontended);
    std::vector<ir::Value*> indices_of(const ir::Operation& operation) const;
    std::string name_of(const ir::Value& array) const;

    [[noreturn]] void fail(const ir::Operation& operation, const std::string& what) const;

    const std::size_t prepass_;
    const AdjointOptions& options_;
    Frame* frame_ = nullptr;
    std::unordered_map<const ir::Operation*, SavedLoop> saved_loops_;
    std::unordered_map<const ir::Value*, std::optional<CoordinatePositions>>
        uncontended_;           // by the root array of the accesses
    std::vector<bool> active_;  // by id
    std::vector<bool> used_;    // by id: whether more than the end of the value's own region uses it
    std::unordered_map<const ir::Value*, ir::Value*> after_;  // parameters as they are after the launch
};

}  // namespace weft::transform
