// The differences between targets while a kernel is written as LLVM IR. Emitter writes everything else, for any number
// of lanes, and calls these hooks. A GPU runs one thread per hardware lane (W = 1): it implements the pure virtual
// hooks and keeps the defaults of most others.
//
// Pointers in generic code are in address space 0, which reaches all memory on every target. The stack may lie in
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
#include "transform/plan.h"

namespace weft::codegen {

struct Options;
struct TargetInfo;

// The properties of a machine that generic emission depends on.
struct Machine {
    int vector_bits = 128;
    bool fma = true;
    bool half_conversions = true;  // float <-> f16 instructions
    bool mask_registers = true;    // <W x i1> has registers of its own
    bool fast_gathers = true, fast_scatters = true;
    bool loads_rows = false;       // TargetInfo::loads_rows
    bool wide_elements = false;    // elements are loaded and stored several numbers at a time
    bool read_only_loads = false;  // memory that no thread of a launch writes has its own load instruction
    // Elements at a constant distance in the indices share one computed address: additions are expensive, and accesses
    // add constants only.
    bool shares_addresses = false;
    bool only_lines = false;       // debug information holds lines for profilers only
    bool unrolls_loops = false;    // short loops are unrolled, for loads in flight
    bool short_indices = false;    // negative indices of 32 bits are counted from the end in 32 bits, without a branch
    bool ptx_conversions = false;  // floats become integers by PTX's cvt.rzi, which saturates
    bool object_tables = false;    // objects are looked up in a table that each launch gets
};

// The facts about a failed check, as LLVM values.
struct FaultReport {
    FaultKind kind;
    llvm::Value *thread, *index, *size;
    int axis;
    std::uint32_t site;
};

// An access that is reported to the runtime.
struct AccessReport {
    llvm::Value *pointer, *thread;
    std::int64_t bytes, unit;  // in total, and of each number
    AccessKind kind;
    std::uint32_t site;
};

class TargetHooks {
public:
    virtual ~TargetHooks() = default;

    // ---- the entry ----
    // Emits the function that runs threads of the kernel, with its loop over threads if it has one. Fills `entry` with
    // the facts that launches need.
    virtual void emit_entry(KernelEntry& entry) = 0;
    // The number of threads of a block (ir::Op::block_dim), i32; null if there are no blocks.
    virtual llvm::Value* threads_of_block() { return nullptr; }

protected:
    using Values = llvm::ArrayRef<llvm::Value*>;

    // ---- math functions ----
    // A function of math.def, of scalars or of vectors of all lanes.
    virtual llvm::Value* math_function(ir::Op op, Scalar scalar, Values operands) = 0;
    // Whether one call for sine and cosine of an angle is cheaper than two. sine_and_cosine() is called only if both
    // are needed.
    virtual bool has_sine_and_cosine() const { return false; }
    virtual std::pair<llvm::Value*, llvm::Value*> sine_and_cosine(Scalar, llvm::Value*) { return {}; }

    // ---- memory of a thread ----
    // Memory of dynamic size (ir::Op::stack). It is released in reverse order, down to `first`.
    virtual llvm::Value* take_scratch(const ir::Operation& operation, llvm::Value* bytes) = 0;
    virtual void release_scratch(llvm::Value* first) = 0;
    // All the room there is, once per operation and worker: (memory, number of rows).
    virtual std::pair<llvm::Value*, llvm::Value*> take_long_scratch(const ir::Operation& operation,
                                                                    std::int64_t row_bytes) = 0;

    // ---- reports ----
    virtual void report_fault(const FaultReport& fault) = 0;
    // Precondition: Options::notes_accesses is set, which is for CPUs.
    virtual void report_access(const AccessReport& access);
    virtual void report_raise(llvm::Value* thread, std::uint32_t site, llvm::Value* format, llvm::Value* words,
                              std::int64_t count) = 0;
    // The arguments lie in words of 8 bytes, promoted as C promotes those of a variadic function.
    virtual void report_print(llvm::Value* format, llvm::Value* words, std::int64_t count) = 0;

    // The address of an object's descriptor, as an integer (ir::Op::object).
    virtual llvm::Value* find_object(llvm::Value* id, std::int64_t kind) = 0;
    // Whether there is such an object, as an i1.
    virtual llvm::Value* has_object(llvm::Value* id, std::int64_t kind) = 0;

    // ---- atomics ----
    // The threads among which they are atomic.
    virtual llvm::SyncScope::ID atomic_scope() const { return llvm::SyncScope::System; }
    // Whether there is an instruction; otherwise a loop of compare and swap is emitted.
    virtual bool has_atomic(ir::Op, Scalar scalar) const { return !info(scalar).is_small_float(); }
    // Emits an atomic whose result is unused in a cheaper way, if the target has one; false if it has none.
    virtual bool emit_put_together(const ir::Operation&) { return false; }
    // Memory that no other worker touches while the code being emitted runs.
    virtual bool is_private(MemoryRoot) const { return false; }

    // ---- accesses of lanes ----
    // Emits the load in a target's own way if most groups load neighbouring elements; false if it has none.
    virtual bool emit_load_of_neighbours(const ir::Operation&) { return false; }
};

class Emitter;
class NativeFunctions;
struct Callees;

// The state that all emitters of one module share.
struct ModuleState {
    const TargetInfo& target;
    const Options& options;
    llvm::Module& module;
    NativeFunctions& natives;
    Callees& callees;
};

using Remarks = std::vector<transform::Uniformity::Remark>;

// Makes the emitters of one module; must outlive them, as they refer to its facts about the machine.
class TargetCodegen {
public:
    virtual ~TargetCodegen() = default;
    // `remarks` receives notes on how the kernel will run.
    virtual std::unique_ptr<Emitter> kernel(const transform::KernelPlan& plan, Remarks& remarks) = 0;
    virtual std::unique_ptr<Emitter> callee(const transform::KernelPlan& plan) = 0;
};

std::unique_ptr<TargetCodegen> cpu_codegen(const ModuleState& state);   // cpu/codegen.cpp
std::unique_ptr<TargetCodegen> cuda_codegen(const ModuleState& state);  // cuda/codegen.cpp

}  // namespace weft::codegen
