// Code for CUDA devices, as NVVM IR: each lane is a thread of its own (W = 1). The hooks of target.h:
//
//   entry.cpp              the entry
//   thread_coarsening.cpp  its loops over elements
//   math.cpp               functions of libdevice, or of libclc
//   atomics.cpp            atomics of whole warps at one address
//   privatised.cpp         contributions that a block combines
//   reports.cpp            faults, prints: calls of the device library (devlib/cuda)
//
// LLVM infers that the entry's parameters are in parameter memory, and that arrays of parameters are in global memory.
// Everything else is written with generic pointers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/emitter.h"

namespace weft::codegen {

struct CudaMachine : Machine {
    CudaMachine(int of_architecture, bool with_libclc) : architecture(of_architecture), has_libclc(with_libclc) {
        // Debug information beyond lines would make NVIDIA's compiler turn off its optimisations.
        only_lines = true;
        wide_elements = true;
        read_only_loads = true;
        shares_addresses = true;
        short_indices = true;
        unrolls_loops = true;
        ptx_conversions = true;
        object_tables = true;
    }
    int architecture;  // 90 for sm_90
    bool has_libclc;   // TargetInfo::has_libclc
};

// The reports of the functions of one module, for the host.
struct CudaReporting {
    std::vector<std::string> formats;
    std::vector<llvm::GlobalVariable*> texts;  // the globals of `formats`, unused on the device
    bool reports = false, prints = false;
};

inline constexpr int kWarp = 32;

// The name of a block's dynamic shared memory.
inline constexpr char kDynamicShared[] = "weft_shared";

// Registers of a thread with several elements: the largest block, of 1024 threads, has 65536.
inline constexpr int kRegistersTogether = 64;

class CudaEmitter final : public Emitter {
public:
    CudaEmitter(const transform::KernelPlan& plan, const CudaMachine& machine, const Options& options,
                llvm::Module& module, NativeFunctions& natives, Callees& callees, CudaReporting& reporting)
        : Emitter(plan, /*lanes=*/1, machine, options, module, natives, callees),
          architecture_(machine.architecture),
          has_libclc_(machine.has_libclc),
          reporting_(reporting) {}

    void emit_entry(KernelEntry& entry) override;

protected:
    // ---- entry.cpp ----
    void wait_for_previous_launch();
    llvm::Function* declare_entry(const std::string& symbol, const CudaEntry& entry);
    llvm::Value* of_launch(llvm::Value* launch, std::size_t offset, llvm::Type* type);
    void load_launch(llvm::Value* launch);
    void describe(CudaEntry& entry);
    llvm::Value* threads_of_block() override;

    // ---- thread_coarsening.cpp ----
    void emit_elements(int together, bool whole_blocks);
    // A thread's number in its block, the block's number of threads, and the block's number on each axis of the grid.
    struct Position {
        llvm::Value *thread, *threads, *block[3];
    };
    // Indices of elements that a thread takes one by one, and the block that leads to the loop over them.
    struct Range {
        llvm::Value *first, *step, *end;
        llvm::BasicBlock* from;
    };
    Range emit_together(int together, const Position& at, llvm::BasicBlock* one_by_one);
    void emit_one_by_one(llvm::BasicBlock* element, llvm::SmallVector<Range, 2> ranges, llvm::BasicBlock* done,
                         bool whole_blocks);
    llvm::Value* emit_rounds(int together);
    struct Element;
    void emit_in_step(const ir::Region& region, llvm::MutableArrayRef<Element> elements, llvm::BasicBlock* one_by_one);
    llvm::Value* sum(llvm::Value* a, llvm::Value* b);
    llvm::Value* product(llvm::Value* a, llvm::Value* b);
    llvm::Value* wide_index(llvm::Value* number);
    llvm::Value* short_index(llvm::Value* number);
    void find_coordinates(llvm::Value* index);
    void find_short_coordinates(llvm::Value* index);

    // ---- math.cpp ----
    llvm::Value* math_function(ir::Op op, Scalar scalar, Values operands) override;
    llvm::Value* within_limits(llvm::Value* exponent);
    bool has_sine_and_cosine() const override;
    std::pair<llvm::Value*, llvm::Value*> sine_and_cosine(Scalar scalar, llvm::Value* a) override;

    // ---- reports.cpp ----
    void report_fault(const FaultReport& fault) override;
    void report_raise(llvm::Value* thread, std::uint32_t site, llvm::Value* format, llvm::Value* words,
                      std::int64_t count) override;
    void report_print(llvm::Value* format, llvm::Value* words, std::int64_t count) override;
    llvm::Value* find_object(llvm::Value* id, std::int64_t kind) override;
    llvm::Value* has_object(llvm::Value* id, std::int64_t kind) override;
    llvm::Value* call_library(const char* symbol, llvm::Type* result, Values arguments);
    void report(const char* symbol, Values arguments);
    llvm::Value* fault_record(FaultKind kind);
    llvm::Value* format_number(llvm::Value* format);

    // ---- memory of a thread ----
    llvm::Value* take_scratch(const ir::Operation& operation, llvm::Value* bytes) override;
    void release_scratch(llvm::Value*) override {}
    std::pair<llvm::Value*, llvm::Value*> take_long_scratch(const ir::Operation& operation,
                                                            std::int64_t row_bytes) override;

    // ---- atomics ----
    llvm::SyncScope::ID atomic_scope() const override { return context_.getOrInsertSyncScopeID("device"); }
    bool has_atomic(ir::Op op, Scalar scalar) const override;
    bool emit_put_together(const ir::Operation& atomic) override;
    llvm::Value* of_other_lane(llvm::Value* number, int distance, llvm::Value* lanes);
    llvm::Value* reduced_at_once(ir::Op kind, Scalar scalar, llvm::Value* number, llvm::Value* lanes);
    llvm::Value* sum_of_warp(ir::Op op, Scalar scalar, llvm::Value* number);

    // ---- privatised.cpp ----
    // An atomic at one address for the whole launch, whose operands a thread combines first.
    struct Accumulator {
        ir::Op kind;
        Scalar scalar;
        llvm::Value* sum = nullptr;      // a local variable
        llvm::Value* pointer = nullptr;  // the address of the final atomic
    };
    struct SharedCopy {
        MemoryRoot root;
        ir::Op kind;
        Scalar scalar;
        llvm::Value* is_there = nullptr;
        llvm::Value* home = nullptr;     // the array's memory
        llvm::Value* memory = nullptr;   // the copy's
        llvm::Value* numbers = nullptr;  // their count, i32; 0 if there is no copy
    };
    void open_block_sums();
    void open_accumulators();
    bool accumulate(const ir::Operation& operation);
    llvm::Value* combine_warp(ir::Op kind, Scalar scalar, llvm::Value* number, llvm::Value* lane, llvm::Value* present);
    void close_accumulators();
    void open_shared_copies();
    bool add_to_shared_copy(const ir::Operation& atomic);
    void close_shared_copies();
    void close_block_sums();
    void describe_block_sums(CudaEntry& entry) const;
    void emit_barrier();
    void emit_by_block(llvm::Value* count, const std::function<void(llvm::Value* i)>& body);
    llvm::Value* thread_of_block();

    const int architecture_;
    const bool has_libclc_;

    CudaReporting& reporting_;
    llvm::Value *first_ = nullptr, *threads_ = nullptr;   // this thread's number in the launch, and their count
    llvm::Value *logs_ = nullptr, *log_bytes_ = nullptr;  // CudaLaunch
    std::map<const ir::Operation*, std::int64_t> log_numbers_;
    llvm::Value* count_ = nullptr;         // of all elements
    llvm::Value* is_together_ = nullptr;   // CudaLaunch::together
    llvm::Value* shared_flags_ = nullptr;  // CudaLaunch::shared_copies
    llvm::Value* any_shared_copy_ = nullptr;
    bool adds_to_copies_ = false;  // the code being emitted runs if there is a copy
    std::map<const ir::Operation*, std::vector<Accumulator>> accumulators_;
    std::vector<SharedCopy> shared_copies_;
    llvm::SmallVector<llvm::Value*, kMaxDims> multipliers_;  // CudaAxis
    llvm::SmallVector<llvm::Value*, kMaxDims> short_multipliers_, shifts_;
};

}  // namespace weft::codegen
