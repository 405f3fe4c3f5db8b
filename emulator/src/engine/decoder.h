#pragma once
// Decodes statements of a function: opcodes become handlers, registers offsets in a frame, labels counters.
#include <map>
#include <span>
#include <string_view>

#include "engine/code.h"
#include "lanes/table.h"
#include "ptx/token.h"

namespace weft::emulator {

class Decoder {
public:
    Decoder(Program& program, CodeFunction& function)
        : program_(program), function_(function), source_(*function.source) {}

    void decode();

private:
    using Operand = ptx::Operand;
    using Statement = ptx::Statement;
    using Encode = void (Decoder::*)();
    static constexpr RegisterCode kNone = 0xffffffff;

    [[noreturn]] void fail(const std::string& what) const;
    // Words of the opcode after the first.
    std::vector<std::string_view> words() const;
    bool has_word(std::string_view word) const;
    const Operand& operand(size_t index, const char* what) const;
    void expect_operands(size_t least, size_t most) const;

    // decoder.cpp
    void lay_out_registers();
    void statement();
    void row();
    void encode_row(const Row& row, uint16_t flags, const Operand& result, std::span<const Operand> sources);
    Instruction& emit(Handler handler);
    Instruction& emit_control(Control operation);
    void emit_row(std::string_view opcode, RegisterCode result, std::initializer_list<RegisterCode> sources);

    // decode_operand.cpp
    RegisterCode reg(const Operand& operand, uint32_t bits, const char* what) const;
    RegisterCode constant(uint64_t bits, uint32_t width);
    RegisterCode scratch(uint32_t width);
    RegisterCode new_register(uint32_t width);
    RegisterCode source(const Operand& operand, Slot slot);
    RegisterCode immediate(const Operand& operand, Slot slot);
    RegisterCode narrowed(RegisterCode code, uint32_t from, uint32_t to);
    RegisterCode special(const Operand& operand, uint32_t bits);
    RegisterCode symbol(const Operand& operand, uint32_t bits);
    RegisterCode symbol_of_variable(const ptx::Variable& variable, int32_t index, uint64_t offset, uint32_t bits);
    // The result register of an instruction. If the register is wider, finish() appends the conversion.
    struct Result {
        RegisterCode code, target;
        uint32_t width;  // of `target`, if it differs from `code`
        Slot slot;
    };
    Result result(const Operand& operand, Slot slot);
    void finish(const Result& result);
    RegisterCode address(const Operand& operand, ptx::Space& space, int64_t& offset);
    RegisterCode predicate(const Operand& operand);
    uint32_t width_of(const Operand& operand) const { return source_.registers[operand.reg].bits; }

    // decode_move.cpp
    void move();
    void pack(const Operand& target, const Operand& parts, uint32_t bits);
    void unpack(const Operand& parts, const Operand& from, uint32_t bits);
    void convert_address();
    void is_space();
    void compare();
    void set();
    std::string without_combination(std::string_view& combination) const;
    RegisterCode compared(const std::string& opcode, const Operand& a, const Operand& b);

    // decode_memory.cpp
    void load();
    void store();
    void atomic();
    void memory_words(Instruction& instruction, ptx::Space& space, bool stores);
    void fence();
    void nothing();

    // decode_control.cpp
    void branch();
    void branch_indexed();
    void call();
    void leave();
    void exit();
    void trap();
    void breakpoint();
    void barrier();
    void nanosleep();
    void vote();
    void shuffle();
    void match();
    void active_mask();
    void reduce();
    void elect();
    Instruction& emit_converge(Handler handler, const Operand& mask);
    Instruction& emit_whole_warp(Handler handler);

    // decode_matrix.cpp
    void expect_target(int architecture, int version) const;
    void fragment(const Operand& operand, size_t count, uint32_t bits, const char* what, bool is_result = false);
    void multiply_matrices();
    void load_matrix();
    void copy_async();

    uint32_t offset_of_param(const Operand& operand, uint32_t& size) const;
    uint32_t label(std::string_view name) const;

    Program& program_;
    CodeFunction& function_;
    const ptx::Function& source_;
    const Statement* statement_ = nullptr;
    uint32_t statement_index_ = 0;
    std::vector<RegisterCode> registers_;
    std::vector<uint32_t> local_offsets_;  // of the function's variables in local memory
    std::vector<uint32_t> counters_;       // instruction counters of the statements
    std::map<std::pair<uint32_t, uint64_t>, RegisterCode> constants_;
    std::vector<std::byte> constant_bytes_;
    uint32_t frame_size_ = 0;
    std::map<uint32_t, std::vector<RegisterCode>> scratches_;  // by width
    std::map<uint32_t, size_t> scratches_used_;                // number used by the current statement
    std::vector<std::pair<size_t, uint32_t>> jumps_;           // instruction, statement
    std::vector<std::pair<size_t, uint32_t>> list_jumps_;
    friend std::unique_ptr<Program> load_program(std::string text, int device);
};

// Handlers that are not rows of lanes/*.def.
Handler special_register(std::string_view name, bool wide, uint32_t& extra);

namespace handlers {
void pack(Lanes&, const Instruction&);
void unpack(Lanes&, const Instruction&);
void local_address(Lanes&, const Instruction&);
void dynamic_shared(Lanes&, const Instruction&);
void to_window(Lanes&, const Instruction&);
void from_window(Lanes&, const Instruction&);
void is_space(Lanes&, const Instruction&);
void load(Lanes&, const Instruction&);
void store(Lanes&, const Instruction&);
void load_parameter(Lanes&, const Instruction&);
void atomic(Lanes&, const Instruction&);
void fence(Lanes&, const Instruction&);
void nothing(Lanes&, const Instruction&);
void active_mask(Lanes&, const Instruction&);
void shuffle(Lanes&, const Instruction&);
void vote(Lanes&, const Instruction&);
void match(Lanes&, const Instruction&);
void reduce(Lanes&, const Instruction&);
void elect(Lanes&, const Instruction&);
void sync_warp(Lanes&, const Instruction&);
void multiply_halves(Lanes&, const Instruction&);
void multiply_brains(Lanes&, const Instruction&);
void multiply_tf32(Lanes&, const Instruction&);
void multiply_doubles(Lanes&, const Instruction&);
void load_matrix(Lanes&, const Instruction&);
void copy_async(Lanes&, const Instruction&);
void commit_copies(Lanes&, const Instruction&);
void wait_copies(Lanes&, const Instruction&);
}  // namespace handlers

// Values of Instruction::operation for atomics and memory.
enum class AtomicOp : uint8_t { Add, Min, Max, Exchange, CompareExchange, And, Or, Xor, Increment, Decrement };
// Instruction::flags of memory accesses.
enum MemoryFlags : uint16_t {
    kSpaceMask = 7,      // ptx::Space
    kSigned = 8,         // a load extends the sign
    kStrong = 16,        // volatile, relaxed, acquire, release
    kReadOnly = 32,      // .nc
    kOrders = 64,        // acquire or release
    kRegisterShift = 8,  // bytes of a register, as 2, 4 or 8
};

}  // namespace weft::emulator
