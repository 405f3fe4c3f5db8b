#include "engine/decoder.h"

#include <algorithm>
#include <cstring>

namespace weft::emulator {

namespace {

constexpr uint32_t kMostFrame = 1u << 30;

}  // namespace

void Decoder::fail(const std::string& what) const {
    throw ptx::Error(
        statement_ ? statement_->line : source_.line,
        what + (statement_ ? "; found '" + std::string(statement_->opcode) + "'" : "") + " in '" + source_.name + "'");
}

std::vector<std::string_view> Decoder::words() const {
    std::vector<std::string_view> all;
    const std::string_view opcode = statement_->opcode;
    for (size_t at = opcode.find('.'); at != std::string_view::npos;) {
        const size_t end = opcode.find('.', at + 1);
        all.push_back(opcode.substr(at + 1, end == std::string_view::npos ? end : end - at - 1));
        at = end;
    }
    return all;
}

bool Decoder::has_word(std::string_view word) const {
    const auto all = words();
    return std::find(all.begin(), all.end(), word) != all.end();
}

void Decoder::expect_operands(size_t least, size_t most) const {
    const size_t found = statement_->operands.size();
    if (found >= least && found <= most) return;
    fail("expected " + std::to_string(least) + (most > least ? " to " + std::to_string(most) : "") +
         " operands, found " + std::to_string(found));
}

const ptx::Operand& Decoder::operand(size_t index, const char* what) const {
    if (index >= statement_->operands.size()) fail(std::string("expected ") + what);
    return statement_->operands[index];
}

RegisterCode Decoder::new_register(uint32_t width) {
    const uint32_t bytes = width == 1 ? 4 : width / 8 * kLanes;
    const uint32_t alignment = std::min<uint32_t>(bytes, 64);
    frame_size_ = (frame_size_ + alignment - 1) / alignment * alignment;
    const RegisterCode code = frame_size_;
    frame_size_ += bytes;
    if (frame_size_ > kMostFrame) fail("the function has too many registers");
    return code;
}

// Wide registers first and predicates last, so that alignment needs no padding.
void Decoder::lay_out_registers() {
    registers_.resize(source_.registers.size());
    for (const uint32_t width : {128u, 64u, 32u, 16u, 1u}) {
        for (size_t i = 0; i < registers_.size(); ++i) {
            if (source_.registers[i].bits == width) registers_[i] = new_register(width);
        }
    }
}

void Decoder::decode() {
    lay_out_registers();
    for (const ptx::Statement& statement : source_.statements) {
        counters_.push_back(uint32_t(function_.instructions.size()));
        statement_ = &statement;
        this->statement();
        ++statement_index_;
    }
    statement_ = nullptr;
    counters_.push_back(uint32_t(function_.instructions.size()));
    statement_index_ = source_.statements.empty() ? 0 : uint32_t(source_.statements.size() - 1);
    emit_control(Control::Return);
    for (const auto& [instruction, target] : jumps_) function_.instructions[instruction].immediate = counters_[target];
    for (const auto& [index, target] : list_jumps_) function_.lists[index] = counters_[target];
    function_.frame_size = frame_size_;
    // room to align the constants to 64 bytes
    function_.constants.resize(constant_bytes_.size() + 64);
    if (!constant_bytes_.empty())
        std::memcpy(function_.constant_base(), constant_bytes_.data(), constant_bytes_.size());
}

void Decoder::statement() {
    static const std::unordered_map<std::string_view, Encode> encoders = {
        {"mov", &Decoder::move},
        {"cvta", &Decoder::convert_address},
        {"isspacep", &Decoder::is_space},
        {"setp", &Decoder::compare},
        {"set", &Decoder::set},
        {"ld", &Decoder::load},
        {"ldu", &Decoder::load},
        {"st", &Decoder::store},
        {"atom", &Decoder::atomic},
        {"red", &Decoder::atomic},
        {"membar", &Decoder::fence},
        {"fence", &Decoder::fence},
        {"prefetch", &Decoder::nothing},
        {"prefetchu", &Decoder::nothing},
        {"griddepcontrol", &Decoder::nothing},
        {"bra", &Decoder::branch},
        {"brx", &Decoder::branch_indexed},
        {"call", &Decoder::call},
        {"ret", &Decoder::leave},
        {"exit", &Decoder::exit},
        {"trap", &Decoder::trap},
        {"brkpt", &Decoder::breakpoint},
        {"bar", &Decoder::barrier},
        {"barrier", &Decoder::barrier},
        {"nanosleep", &Decoder::nanosleep},
        {"vote", &Decoder::vote},
        {"shfl", &Decoder::shuffle},
        {"match", &Decoder::match},
        {"activemask", &Decoder::active_mask},
        {"redux", &Decoder::reduce},
        {"elect", &Decoder::elect},
        {"mma", &Decoder::multiply_matrices},
        {"ldmatrix", &Decoder::load_matrix},
        {"cp", &Decoder::copy_async},
    };
    const size_t first = function_.instructions.size();
    scratches_used_.clear();
    const std::string_view opcode = statement_->opcode;
    const auto found = encoders.find(opcode.substr(0, opcode.find('.')));
    if (found != encoders.end())
        (this->*found->second)();
    else
        row();
    if (statement_->guard < 0) return;
    for (size_t i = first; i < function_.instructions.size(); ++i) {
        Instruction& instruction = function_.instructions[i];
        if (instruction.kind == Instruction::Kind::Plain) instruction.kind = Instruction::Kind::Guarded;
        instruction.has_guard = true;
        instruction.guard = registers_[size_t(statement_->guard)];
        instruction.guard_negated = statement_->guard_negated;
    }
}

void Decoder::row() {
    const auto& operands = statement_->operands;
    const Row* found = operands.empty() ? nullptr : find_row(statement_->opcode, operands.size() - 1);
    if (!found) {
        throw ptx::Error(statement_->line, "unknown instruction '" + std::string(statement_->opcode) + "' with " +
                                               std::to_string(operands.size()) + " operands in '" + source_.name + "'");
    }
    encode_row(*found, flags_of(statement_->opcode), operands[0], std::span(operands).subspan(1));
}

void Decoder::encode_row(const Row& row, uint16_t flags, const Operand& to, std::span<const Operand> sources) {
    RegisterCode codes[4] = {};
    for (size_t i = 0; i < sources.size(); ++i) codes[i] = source(sources[i], row.source[i]);
    const Result made = result(to, row.result);
    Instruction& instruction = emit(row.handler);
    instruction.result = made.code;
    instruction.flags = flags;
    for (size_t i = 0; i < sources.size(); ++i) instruction.source[i] = codes[i];
    finish(made);
}

Instruction& Decoder::emit(Handler handler) {
    Instruction& made = function_.instructions.emplace_back();
    made.run = handler;
    made.statement = statement_index_;
    return made;
}

Instruction& Decoder::emit_control(Control operation) {
    Instruction& made = emit(nullptr);
    made.kind = Instruction::Kind::Control;
    made.operation = uint8_t(operation);
    return made;
}

void Decoder::emit_row(std::string_view opcode, RegisterCode result, std::initializer_list<RegisterCode> sources) {
    const Row* found = find_row(opcode, sources.size());
    if (!found) fail("no instruction '" + std::string(opcode) + "'");
    Instruction& made = emit(found->handler);
    made.result = result;
    made.flags = flags_of(opcode);
    std::copy(sources.begin(), sources.end(), made.source);
}

}  // namespace weft::emulator
