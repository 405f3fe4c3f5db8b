// The analysis of one function: walks its statements in order and emits IR. FunctionAnalyzer is the walk of the tree.
// Classes of their own do the work that does not need it: values, locals, branches, loops. Reading order:
//
//   value.h                the values of expressions and locals
//   assignment_target.h    assignment targets, and parts of values
//   module_state.h         the state that all functions of a module share
//   walk.h                 scans of the text
//   expected_types.h       the types that values take, without IR
//   value_writer.h         values as IR
//   parts.h                parts of values: components, fields, elements of lists
//   constructors.h         calls of types
//   printout.h             the text of a print
//   sequence_access.h      the elements of a loop's sequence
//   locals.h               the locals at the current point
//   name_lookup.h          the meaning of all other names
//   branch_writer.h        branches in the IR, and the merging of the locals of their arms
//   loop_writer.h          loops in the IR, and their carried locals
//   tile_arguments.h       arguments of tile functions
//   bound_call.h           arguments of calls, matched to parameters
//   gradient_body.h        wp.adjoint in a gradient that the user wrote
//   infer/                 expressions: names, operators, comparisons, attributes and subscripts
//   tiles/                 tiles: views and elements, and the functions of the language for them
//   call/                  calls: the builtin table (overload), user functions (functions), print, statics, tid
//   control/               statements: assignment, lists of statements (blocks), loops, return
//   sema.cpp               the module: kernel first, functions as they are met
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "builtins/registry.h"
#include "builtins/resolve.h"
#include "ir/builder.h"
#include "ir/tile_builder.h"
#include "sema/assignment_target.h"
#include "sema/bound_call.h"
#include "sema/branch_writer.h"
#include "sema/constructors.h"
#include "sema/environment.h"
#include "sema/expected_types.h"
#include "sema/gradient_body.h"
#include "sema/locals.h"
#include "sema/loop_writer.h"
#include "sema/messages.h"
#include "sema/module_state.h"
#include "sema/name_lookup.h"
#include "sema/options.h"
#include "sema/parts.h"
#include "sema/printout.h"
#include "sema/sequence_access.h"
#include "sema/tile_arguments.h"
#include "sema/value.h"
#include "sema/value_writer.h"
#include "sema/walk.h"
#include "support/error.h"
#include "syntax/tree.h"

namespace weft::sema {

// Whether this struct is an indexedarray (infer/indexed.cpp).
bool is_indexed(Type type);

class FunctionAnalyzer {
public:
    FunctionAnalyzer(ModuleState& module, const FunctionSource& source, ir::Function& function);

    // Writes the body. There is one value for each parameter: an argument of the function, or a compile-time value.
    void analyze(const std::vector<Value>& parameters);
    // The same for a gradient (@wp.func_grad). Its first `own` parameters are those of the differentiated function.
    void analyze_gradient(const std::vector<Value>& parameters, std::size_t own);

private:
    // ---- infer/names.cpp ----
    Value name(const syntax::Name& name, Span span);
    void check_assigned(const std::string& name, Span span);

    // ---- infer/expressions.cpp ----
    Value expression(const syntax::Expression& expression);
    Value expression_node(const syntax::Expression& expression);
    Value tuple(const std::vector<syntax::ExpressionPtr>& elements);
    std::vector<Value> starred_values(const syntax::Starred& starred);
    Value number(const syntax::IntegerLiteral& literal, Span span);
    // ---- infer/operators.cpp ----
    Value binary(syntax::BinaryOperator op, Value a, Value b, Span span, Span a_span, Span b_span);
    Value repeated(const Value& list, std::int64_t times, Span span);
    Value unary(syntax::UnaryOperator op, Value a, Span span);
    // ---- infer/compare.cpp ----
    Value compare(const syntax::Compare& compare, Span span);
    Value compare_pair(syntax::CompareOperator op, Value a, Value b, Span span);
    Value compare_types(syntax::CompareOperator op, Value a, Value b, Span span);
    std::optional<Value> compare_bools(syntax::CompareOperator op, const Value& a, const Value& b, Span span);
    Value equal(Value a, Value b, Span span);
    std::optional<Value> equal_structs(const Value& a, const Value& b, Span span);
    Value bool_op(const syntax::BoolOp& op, std::size_t first, std::size_t last, Span span);
    Value if_expression(const syntax::IfExpression& e, Span span);
    // ---- infer/attributes.cpp, infer/subscripts.cpp ----
    Value attribute(const syntax::Attribute& attribute, Span span);
    Value attribute_of(const Value& object, const std::string& name, Span span);
    Value subscript(const syntax::Subscript& subscript, Span span);
    Value subscript_of(const Value& object, const std::vector<syntax::ExpressionPtr>& indices, Span span);
    std::vector<ir::Value*> array_indices(const Value& array, const std::vector<syntax::ExpressionPtr>& indices);
    ir::Value* index_along(ir::Value* array, int axis, const syntax::Expression& expression_node);
    // infer/indexed.cpp: wp.indexedarray
    struct IndexedElement {
        ir::Value* array;
        std::vector<ir::Value*> indices;
    };
    IndexedElement indexed_element(const Value& object, const std::vector<syntax::ExpressionPtr>& indices, Span span);
    // x[i] of an indexedarray with more dimensions than indices: an indexedarray of the remaining ones.
    Value indexed_row(const Value& object, const std::vector<syntax::ExpressionPtr>& indices, Span span);
    // Changes the arguments of atomic_add(x, i, value) of an indexedarray to those for its array.
    void pass_indexed_element(std::vector<Actual>& arguments);
    std::optional<Value> indexed_attribute(const Value& object, const std::string& name, Span span);
    Value array_step(const syntax::Slice& slice);
    struct Cut {
        ir::Value *start, *count, *step;  // no step: 1
    };
    Cut cut(const syntax::Slice& slice, const Value& step, ir::Value* array, int axis);
    Cut cut_by(const syntax::Slice& slice, ir::Value* step, ir::Value* array, int axis);
    ir::Value* array_position(const syntax::Expression& at, ir::Value* array, int axis);
    void raise_value_error(ir::Value* condition, const std::string& text, Span span);
    Value array_slice(const Value& array, const std::vector<syntax::ExpressionPtr>& indices);
    std::vector<Value> sliced_elements(const Value& array, const std::vector<syntax::ExpressionPtr>& indices);
    std::vector<std::int64_t> static_slice(const syntax::Slice& slice, std::int64_t size, Span span);
    bool is_empty_slice(Type type, const std::vector<syntax::ExpressionPtr>& indices);
    PartStep part_slice(Type type, std::span<const syntax::ExpressionPtr> indices);
    PartStep part_subscript(Type type, std::span<const syntax::ExpressionPtr> indices, Span span);
    // ---- infer/patterns.cpp: match ----
    bool is_instance(const syntax::ClassTest& test);
    Value part_by_number(const syntax::PartByNumber& part, Span span);
    // ---- infer/dataclasses.cpp ----
    Value construct(Type type, const std::vector<Actual>& arguments, Span span);
    Value construct_dataclass(Type type, const Construction& rules, const std::vector<Actual>& arguments, Span span);

    // ---- call/calls.cpp ----
    Value call(const syntax::Call& call, Span span);
    // object.method(...) of a struct. Empty if it is no method call; `callee` then has the value of the attribute.
    std::optional<Value> call_method(const syntax::Call& call, Span span, std::optional<Value>& callee);
    Value call_class_method(const Binding& method, std::vector<Actual> arguments, Span span);
    std::vector<Actual> actuals(const syntax::Call& call, const FunctionSource* callee = nullptr,
                                std::size_t given = 0);
    Actual argument(const syntax::Expression& expression, bool by_reference);
    std::optional<Type> type_of_place(const syntax::Expression& e) const;
    Value call_language_builtin(const std::string& name, const syntax::Call& call, Span span, bool& handled);
    Value length_of(const std::vector<Actual>& arguments, Span span);
    Value type_of_argument(const std::vector<Actual>& arguments, Span span);
    // ---- call/folds.cpp, call/sequences.cpp ----
    std::optional<Value> fold_generator(const std::string& name, const syntax::Call& call, Span span);
    Value start_of_fold(const std::string& name, const syntax::Comprehension& generators,
                        const std::function<Value()>& element, Span span);
    Value fold_values(const std::string& name, const syntax::Comprehension& generators,
                      const std::vector<Value>& values, Span span);
    Value fold_loop(const std::string& name, const syntax::Comprehension& generators, const Iterable& over, Span span);
    Value with_element(const std::string& name, const syntax::Comprehension& generators, std::size_t condition,
                       const Value& before, Span span);
    Value chosen(const std::string& name, const Value& found, const syntax::Expression* otherwise, Span span);
    std::optional<Value> fold_sequence(const std::string& name, const std::vector<Actual>& arguments, Span span);
    Value local_array(const std::vector<Actual>& arguments, Span span);
    Value array_at(const std::vector<Actual>& arguments, Span span);
    Value tid(int rank);
    Value call_static(const syntax::Call& call, Span span);
    Value address_of(const syntax::Call& call, Span span);
    Value index_function(const syntax::Call& call, Span span);
    std::vector<ir::Value*> first_component(Type element, std::span<const PartStep> steps, Span span);
    // The value that Python gives the expression when the kernel is built; messages call it `spelled`.
    Value evaluated(const syntax::Expression& expression, const std::string& spelled = "this expression");
    // ---- call/overload.cpp ----
    Value call_builtin(const std::string& name, const std::vector<Actual>& arguments, Span span,
                       const std::string& operator_sign = {});
    Value call_resolved(const std::string& name, const builtins::Resolution& resolution,
                        const std::vector<Actual>& arguments, Span span);
    std::vector<Note> operator_help(const std::string& name, const std::string& sign,
                                    const std::vector<Actual>& arguments);
    [[noreturn]] void refuse_call(const std::string& text, const std::vector<std::string>& refusals,
                                  const std::vector<Actual>& arguments, Span span);
    // `a + b` by a function of the program named add; empty if none accepts these types.
    std::optional<Value> call_own_operator(const std::string& name, const std::vector<Actual>& arguments, Span span);
    // ---- call/functions.cpp ----
    Value call_function(const std::shared_ptr<const FunctionSource>& function, const std::vector<Actual>& arguments,
                        Span span);
    void assign_reference(const AssignmentTarget& place, const Value& value, Span span);
    ir::Function* instance_of(const BoundCall& call, Span span, const Note& signature);
    ir::Function* new_instance(const FunctionSource& callee, const std::vector<Value>& values, Span span,
                               std::optional<std::size_t> own = {});
    std::vector<ir::Value*> operands_of(const BoundCall& call);
    // ---- call/gradients.cpp: derivatives that the user wrote, and wp.grad ----
    void add_custom_derivatives(const BoundCall& call, ir::Function& instance);
    Value gradient_of_argument(const std::vector<Actual>& arguments, Span span);
    Value call_gradient(const std::shared_ptr<const FunctionSource>& function, const std::vector<Actual>& arguments,
                        Span span);
    Value call_builtin_gradient(const std::string& name, const std::vector<Actual>& arguments, Span span);
    // Reports a wp.adjoint[...] that was not read as a parameter's adjoint.
    static void reject_adjoint(const Binding& indexed, Span span);
    // ---- call/closures.cpp: lambdas, functions within functions, comprehensions ----
    Value lambda(const syntax::Lambda& lambda);
    Value call_closure(const Value& closure, const std::vector<Actual>& arguments, Span span);
    Value body_of(const syntax::Lambda& lambda);
    // ---- call/native.cpp ----
    Value call_native(const BoundCall& call, Span span, const Note& signature);
    ir::Function* native_instance(const FunctionSource& callee, const std::vector<ir::Value*>& operands, Type result,
                                  Span span);

    // ---- tiles/views.cpp: names, views and elements of tiles ----
    Value with_view(const syntax::Expression& expression);
    Value tile_of_local(const std::string& name, const Value& local);
    bool is_tile_name(const std::string& name) const;
    void take_tile(std::size_t number, const Value& parameter);
    void keep_tile(const std::string& name, Value& value);
    void add_tiles(const syntax::Block& body, const syntax::Expression* condition, std::set<std::string>& names) const;
    // A view of `tile` in the terms of its own elements: see TileView.
    Value view_of_tile(const Value& tile, const ir::Extents& shape, std::int64_t base, ir::Value* offset,
                       std::vector<std::int64_t> strides);
    ir::Value* gathered(ir::Value* root, const TileView& view, const ir::Extents& shape);
    Value tile_at(const Value& tile, ir::Value* number);
    // One element, with the brackets that are left for it, or a view of several.
    struct TilePartition {
        ir::Value* number = nullptr;
        std::size_t used = 0;
        Value view;
    };
    TilePartition cut_tile(const Value& tile, const std::vector<syntax::ExpressionPtr>& indices, Span span);
    ir::Value* tile_position(const Value& index, std::int64_t extent, Span span, std::int64_t& fixed);
    Value part_of_tile(const Value& tile, const std::vector<syntax::ExpressionPtr>& indices, Span span);
    std::optional<Value> tile_attribute(Type type, const std::string& name);
    AssignmentTarget target_of_view(const Value& value, Span span);
    AssignmentTarget target_in_tile(const AssignmentTarget& base, const std::vector<syntax::ExpressionPtr>& indices,
                                    Span span);
    Value read_tile(const AssignmentTarget& place);
    void check_apart(const BoundCall& call, std::size_t changed) const;
    ir::Value* scattered(ir::Value* root, const TileView& view, const ir::Extents& shape,
                         const std::function<ir::Value*(const std::vector<ir::Value*>&)>& element);
    void write_tile(const AssignmentTarget& place, const Value& value, Span value_span);
    // ---- tiles/maps.cpp ----
    Value apply(const Value& function, const std::vector<Value>& arguments, Span span);
    Value map_tiles(const std::vector<Value>& operands, const std::function<Value(const std::vector<Value>&)>& f,
                    Span span);
    Value tile_binary(syntax::BinaryOperator op, const Value& a, const Value& b, Span span, Span a_span, Span b_span);
    Value by_fields(syntax::BinaryOperator op, const Value& a, const Value& b, Span span, Span a_span, Span b_span);
    Value tile_unary(syntax::UnaryOperator op, const Value& a, Span span);
    Value tile_map(TileArguments& call);
    Value reduced_tile(const Value& function, const Actual& tile, std::optional<std::int64_t> axis, Span span);
    Value tile_sum(TileArguments& call);
    Value tile_reduce(TileArguments& call);
    Value tile_extreme(TileArguments& call);
    Value tile_place_of_extreme(TileArguments& call);
    Value tile_dot(TileArguments& call);
    Value tile_axpy(TileArguments& call);
    Value tile_of_one(ir::Value* element);
    // ---- tiles/scans.cpp ----
    Value tile_scan(TileArguments& call);
    Value tile_sort(TileArguments& call);
    // ---- tiles/linear.cpp ----
    using TileBody = std::function<ir::Value*(ir::Builder&, const std::vector<ir::Value*>&)>;
    using TileGradient = std::function<std::vector<ir::Value*>(ir::Builder&, const std::vector<ir::Value*>&)>;
    ir::Function* tile_function(const std::string& key, const std::vector<Type>& parameters, Span span,
                                const TileBody& body, const TileGradient& gradient);
    Value finish_in_place(TileArguments& call, const std::string& parameter, ir::Value* result);
    ir::Value* solved(ir::Value* triangle, ir::Value* right, bool is_transposed, bool reads_upper, Span span);
    Value tile_matmul(TileArguments& call);
    Value tile_cholesky(TileArguments& call);
    Value tile_solve(TileArguments& call);
    Value tile_diag_add(TileArguments& call);
    Value tile_fft(TileArguments& call);
    // ---- tiles/lanes.cpp ----
    using LaneBody = std::function<std::vector<ir::Value*>(ir::Value* k, const std::vector<ir::Value*>& of_lane,
                                                           const std::vector<ir::Value*>& carried)>;
    using QueryStep = std::function<Value(const Value& query, ir::Value*& hit, ir::Value*& index)>;
    std::int64_t lanes() const;
    Value tid_of_lane(int rank);
    std::vector<ir::Value*> for_each_lane(const std::vector<ir::Value*>& given, ir::Value* asked,
                                          std::vector<ir::Value*> start, const LaneBody& body);
    void update_by_lanes(const AssignmentTarget& to, const syntax::AugmentedAssign& assign, Span span);
    ir::Value* scattered_by_lanes(ir::Value* tile, ir::Value* number, ir::Value* value, ir::Value* counts, bool adds,
                                  Span span);
    std::vector<ir::Value*> pushed_by_lanes(ir::Value* stack, ir::Value* count, ir::Value* value, ir::Value* asked);
    std::vector<ir::Value*> popped_by_lanes(ir::Value* count);
    Value next_of_lanes(const Value& query, const QueryStep& step, std::vector<ir::Value*>& after, Span span);
    // ---- tiles/stack.cpp ----
    const std::string& changed_local(const TileArguments& call, const std::string& parameter, const char* what);
    Value tile_stack(TileArguments& call);
    Value tile_stack_push(TileArguments& call);
    Value tile_stack_pop(TileArguments& call);
    Value tile_stack_clear(TileArguments& call);
    Value tile_stack_count(TileArguments& call);
    Value tile_query(TileArguments& call);
    Value tile_query_next(TileArguments& call);
    Value tile_query_valid(TileArguments& call);
    // ---- tiles/making.cpp ----
    Value call_tile_function(const std::string& name, const syntax::Call& call, Span span);
    void check_lanes();
    Value tile_filled(TileArguments& call);
    Value tile_full(TileArguments& call);
    Value tile_arange(TileArguments& call);
    Value tile_from_thread(TileArguments& call);
    Value tile_random(TileArguments& call);
    Value tile_of_lanes(TileArguments& call);
    Value untile(TileArguments& call);
    // ---- tiles/memory.cpp ----
    Value tile_load(TileArguments& call);
    Value tile_store(TileArguments& call);
    Value tile_atomic_add(TileArguments& call);
    Value tile_load_indexed(TileArguments& call);
    Value tile_store_indexed(TileArguments& call);
    Value tile_atomic_add_indexed(TileArguments& call);
    Value tile_scatter(TileArguments& call);
    // ---- tiles/shapes.cpp ----
    Value tile_extract(TileArguments& call);
    Value tile_view(TileArguments& call);
    Value tile_assign(TileArguments& call);
    Value tile_transpose(TileArguments& call);
    Value tile_reshape(TileArguments& call);
    Value tile_squeeze(TileArguments& call);
    Value tile_broadcast(TileArguments& call);
    Value tile_astype(TileArguments& call);
    Value tile_slice_indexed(TileArguments& call);
    Value slice_object(const syntax::Call& call, Span span);
    std::optional<std::vector<std::int64_t>> chosen_by(const Value& slice, std::int64_t extent, Span span);
    Value gather_along(const Value& tile, std::size_t axis, ir::Value* indices, Span span);

    // ---- call/print.cpp ----
    // Appends the text of an expression; `separator` stands between the values of a starred one.
    void add_printed(Printout& to, const syntax::Expression& expression, const std::string& separator);
    Value call_print(const syntax::Call& call, Span span);
    Value call_printf(const std::vector<Actual>& arguments, Span span);

    // ---- control/assign.cpp, control/assignment_targets.cpp ----
    void statement(const syntax::Statement& statement, Flow& flow);
    void assign(const syntax::Assign& assign);
    void assign_to(const syntax::Expression& target, const Value& value, Span value_span);
    void reject_frozen(const AssignmentTarget& to);
    void unpack(const syntax::Tuple& targets, const Value& value, Span target_span, Span value_span);
    void annotated_assign(const syntax::AnnotatedAssign& assign, Span span);
    Type annotated_type(const syntax::Expression& annotation);
    void augmented_assign(const syntax::AugmentedAssign& assign, Span span);
    std::optional<ir::Op> atomic_for(syntax::BinaryOperator op, const AssignmentTarget& to) const;
    void update(const AssignmentTarget& to, ir::Op atomic, const syntax::AugmentedAssign& assign, Span span);
    void assert_(const syntax::Assert& assert_statement, Span span);
    static bool shows_values(const syntax::Assert& statement);
    void raise(const syntax::Raise& statement, Span span);
    AssignmentTarget assignment_target(const syntax::Expression& expression);
    AssignmentTarget target_of_subscript(const syntax::Subscript& subscript, Span span);
    AssignmentTarget target_of_array(const Value& value, Span span);
    AssignmentTarget target_of_part(AssignmentTarget base, PartStep step);
    Value read(const AssignmentTarget& place);
    // Writes to memory: by `atomic` if given, else by a store.
    void write(const AssignmentTarget& place, const Value& value, Span value_span, std::optional<ir::Op> atomic = {});
    void store_part(const AssignmentTarget& place, ir::Value* value, std::optional<ir::Op> atomic);

    // ---- control/lists.cpp ----
    AssignmentTarget target_of_element(AssignmentTarget base, const Value& list, const syntax::Subscript& subscript,
                                       Span span);
    // `is_part`: the assignment changes only a part of the element.
    void write_element(const AssignmentTarget& place, const Value& value, Span value_span, bool is_part = false);
    std::optional<Value> element_of_local(const syntax::Expression& e) const;
    // list.append(x) of a local
    bool append_to_list(const syntax::Call& call, Span span);

    // ---- control/blocks.cpp ----
    Flow run(WorkList work);
    Flow run_assert(const syntax::Assert& statement, Span span, WorkList& work);
    // Runs a part of the statement that was taken last. If that part branches (a and b), the rest of the statement
    // follows.
    template <typename Part>
    auto within_statement(WorkList& work, const Part& part) {
        --work.back().next;
        locals_.afterwards.push_back(&work);
        auto result = part();
        locals_.afterwards.pop_back();
        ++work.back().next;
        return result;
    }
    Flow run_if(const syntax::If& statement, Span span, WorkList& work, bool& took_rest);

    // ---- control/iterable.cpp ----
    std::optional<Range> range(const syntax::Expression& iterable);
    bool is_static_variable(const syntax::For& loop);
    Iterable iterable(const syntax::Expression& expression);
    Value comprehension(const syntax::Comprehension& comprehension, const Iterable* first = nullptr);
    void generate(const syntax::Comprehension& comprehension, std::size_t number, const Iterable& over,
                  std::vector<Value>& elements);
    std::optional<std::vector<Value>> unrolled_values(const syntax::For& loop, const Iterable& over);

    // ---- control/loops.cpp ----
    struct KnownCondition {
        std::optional<bool> truth;
        bool asking_has_effects = false;
    };
    Flow for_statement(const syntax::For& loop, Span span, WorkList& work);
    Flow for_loop(const syntax::For& loop, const Iterable& over, Span span);
    Flow while_loop(const syntax::While& loop, Span span);
    // ---- control/queries.cpp ----
    Flow query_loop(const syntax::For& loop, const Value& query, Span span);
    int queries_ = 0;  // loops over queries so far

    // ---- control/unrolled.cpp ----
    Flow unrolled_loop(const syntax::For& loop, const std::vector<Value>& values, Span span, WorkList& work);
    Flow unrolled_bodies(const syntax::For& loop, const std::vector<Value>& values, std::size_t from, Span span);
    LoopNames loop_names(const syntax::Block& body, const syntax::Expression* target,
                         const syntax::Expression* condition);
    static void add_assigned_flags(LoopNames& names);
    void start_from_zero(const LoopNames& names, const std::function<void()>& iteration);
    LoopWriter begin_loop(ir::Op op, std::vector<ir::Value*> bounds, const syntax::Block& body, LoopNames names,
                          Span span);
    KnownCondition known_condition(const syntax::Expression& condition);
    ir::Value* asked_after(ir::Value* go, const std::function<Flow(Value&)>& condition, Span span);

    // ---- control/return.cpp ----
    void return_statement(const syntax::Return& statement, Span span, Flow& flow);
    void finish_function();

    ModuleState& module_;
    const FunctionSource& source_;
    const syntax::Function& tree_;
    ir::Function& function_;
    ir::Builder builder_;
    ValueWriter values_;
    PartAccess parts_;
    Constructors constructors_;
    SequenceAccess sequences_;
    Locals locals_;
    NameLookup names_;
    BranchWriter branches_;

    std::int64_t unrolled_bodies_ = 0;  // copies of loop bodies made so far

    std::optional<GradientBody> gradient_;  // of a function made with @wp.func_grad

    std::map<std::string, const ir::Value*> reference_starts_;  // the references' values at the function's begin
};

// Limits that stop a kernel before the compiler exhausts the stack or memory.
inline constexpr std::size_t kMostNestedCalls = 200;
inline constexpr std::int64_t kMostUnrolledBodies = 2048;  // in one function

}  // namespace weft::sema
