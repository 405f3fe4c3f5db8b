// What differs between targets while a kernel is written as LLVM IR. Emitter writes everything else, for any number of
// lanes, and calls these hooks; codegen/cpu/ has those of CPUs. A GPU runs one thread per lane of its own (W = 1) and
// has an entry of its own: it implements the hooks without an answer here and leaves the others as they are.
//
// Pointers in generic code are those of address space 0, which reaches all memory on every target; the stack may lie in
// another one (Emitter::stack_slot).
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Value.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "binary/binary.h"
#include "codegen/value.h"
#include "ir/ir.h"
#include "transform/analysis/plan.h"

namespace weft::codegen {

struct Options;
struct TargetInfo;

// What a machine has that generic emission asks about.
struct Machine {
    int vector_bits = 128;
    bool fma = true;
    bool half_conversions = true;  // float <-> f16 instructions
    bool mask_registers = true;    // <W x i1> has registers of its own
    bool fast_gathers = true, fast_scatters = true;
    bool loads_rows = false;       // TargetInfo::loads_rows
    bool wide_elements = false;    // elements are loaded and stored several numbers at a time
    bool read_only_loads = false;  // reads what no thread of a launch writes in a way of their own
    // Elements at a constant distance in the indices are addressed from one of them: additions are dear, and accesses
    // add constants only.
    bool shares_addresses = false;
    bool only_lines = false;  // debug information is lines for profilers and no more
};

// What a check has to say about a thread, in LLVM's numbers.
struct FaultReport {
    FaultKind kind;
    llvm::Value *thread, *index, *size;
    int axis;
    std::uint32_t site;
};

// An access that the runtime hears of.
struct AccessReport {
    llvm::Value *pointer, *thread;
    std::int64_t bytes, unit;  // of it, and of each of its numbers
    AccessKind kind;
    std::uint32_t site;
};

class TargetHooks {
public:
    virtual ~TargetHooks() = default;

    // ---- the entry ----
    // The function that runs threads of the kernel: its signature, its loop over threads where it has one, and in
    // `entry` what launches must know of it.
    virtual void emit_entry(KernelEntry& entry) = 0;
    // How many threads a block has (ir::Op::block_dim), i32; null where there are no blocks.
    virtual llvm::Value* threads_of_block() { return nullptr; }

protected:
    using Values = llvm::ArrayRef<llvm::Value*>;

    // ---- math functions ----
    // A function of math.def of numbers, or of as many as there are lanes.
    virtual llvm::Value* math_function(ir::Op op, Scalar scalar, Values operands) = 0;
    // Sine and cosine of one angle in one call, where that is cheaper. Only asked for where both are needed.
    virtual bool has_sine_and_cosine() const { return false; }
    virtual std::pair<llvm::Value*, llvm::Value*> sine_and_cosine(Scalar, llvm::Value*) { return {}; }

    // ---- memory of a thread ----
    // Its size is known when it runs only (ir::Op::stack). What is taken last is released first, down to `first`.
    virtual llvm::Value* take_scratch(const ir::Operation& operation, llvm::Value* bytes) = 0;
    virtual void release_scratch(llvm::Value* first) = 0;
    // As much as there is room for, once for each operation and worker: (memory, number of rows).
    virtual std::pair<llvm::Value*, llvm::Value*> take_long_scratch(const ir::Operation& operation,
                                                                    std::int64_t row_bytes) = 0;

    // ---- reports ----
    virtual void report_fault(const FaultReport& fault) = 0;
    // Precondition: Options::notes_accesses is set, which is for CPUs.
    virtual void report_access(const AccessReport& access);
    virtual void report_raise(llvm::Value* thread, std::uint32_t site, llvm::Value* format, Values arguments) = 0;
    virtual void report_print(llvm::Value* format, Values arguments) = 0;
    // The same with the arguments in words of 8 bytes, as C passes them to a variadic function.
    virtual void report_printed_words(llvm::Value* format, llvm::Value* words, std::int64_t count) = 0;

    // The address of an object's descriptor, as a number (ir::Op::object).
    virtual llvm::Value* find_object(llvm::Value* id, std::int64_t kind) = 0;
    // Whether there is such an object, as a bit.
    virtual llvm::Value* has_object(llvm::Value* id, std::int64_t kind) = 0;

    // ---- atomics ----
    // Between whom they hold.
    virtual llvm::SyncScope::ID atomic_scope() const { return llvm::SyncScope::System; }
    // Whether there is an instruction; otherwise it is a loop of compare and swap.
    virtual bool has_atomic(ir::Op, Scalar scalar) const { return !info(scalar).is_small_float(); }
    // Whether the target has a better way than an atomic for what nobody needs at once; then it is emitted.
    virtual bool emit_put_together(const ir::Operation&) { return false; }
    // Memory that nobody else touches where code is written at present.
    virtual bool is_private(MemoryRoot) const { return false; }

    // ---- accesses of lanes ----
    // Whether lanes that lie side by side in most groups are loaded in a way of the target's; then it is emitted.
    virtual bool emit_load_of_neighbours(const ir::Operation&) { return false; }
};

class Emitter;
class NativeFunctions;
struct Callees;

// What everything of one module shares.
struct ModuleState {
    const TargetInfo& target;
    const Options& options;
    llvm::Module& module;
    NativeFunctions& natives;
    Callees& callees;
};

using Remarks = std::vector<transform::Uniformity::Remark>;

// Makes the emitters of one module. What it has found out about the machine lives as long as these.
class TargetCodegen {
public:
    virtual ~TargetCodegen() = default;
    // `remarks` gets what there is to say about how the kernel will run.
    virtual std::unique_ptr<Emitter> kernel(const transform::KernelPlan& plan, Remarks& remarks) = 0;
    virtual std::unique_ptr<Emitter> callee(const transform::KernelPlan& plan) = 0;
};

std::unique_ptr<TargetCodegen> cpu_codegen(const ModuleState& state);   // cpu/codegen.cpp
std::unique_ptr<TargetCodegen> cuda_codegen(const ModuleState& state);  // cuda/codegen.cpp

}  // namespace weft::codegen
