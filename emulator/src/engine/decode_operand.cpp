// Operands: registers, constants, special registers, symbols and addresses.
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/decoder.h"

namespace weft::emulator {

using Kind = ptx::Operand::Kind;

RegisterCode Decoder::reg(const Operand& operand, uint32_t bits, const char* what) const {
    if (operand.kind != Kind::Register || operand.negated) fail(std::string("expected a register as ") + what);
    if (width_of(operand) != bits) {
        fail("expected a register of " + std::to_string(bits) + " bits as " + what + ", found one of " +
             std::to_string(width_of(operand)));
    }
    return registers_[operand.reg];
}

RegisterCode Decoder::constant(uint64_t bits, uint32_t width) {
    if (width == 1)
        bits = bits ? kAllLanes : 0;
    else if (width < 64)
        bits &= (uint64_t(1) << width) - 1;
    const auto [place, added] = constants_.try_emplace({width, bits}, 0);
    if (!added) return place->second;
    const uint32_t bytes = width == 1 ? 4 : width / 8, count = width == 1 ? 1 : kLanes;
    // whole cache lines, so that every constant is aligned to 64 bytes
    const size_t offset = constant_bytes_.size();
    constant_bytes_.resize(offset + (bytes * count + 63) / 64 * 64);
    for (uint32_t i = 0; i < count; ++i) std::memcpy(constant_bytes_.data() + offset + i * bytes, &bits, bytes);
    return place->second = RegisterCode(offset) | 1;
}

RegisterCode Decoder::scratch(uint32_t width) {
    std::vector<RegisterCode>& all = scratches_[width];
    size_t& used = scratches_used_[width];
    if (used == all.size()) all.push_back(new_register(width));
    return all[used++];
}

RegisterCode Decoder::narrowed(RegisterCode code, uint32_t from, uint32_t to) {
    const RegisterCode made = scratch(to);
    emit_row("cvt.u" + std::to_string(to) + ".u" + std::to_string(from), made, {code});
    return made;
}

RegisterCode Decoder::predicate(const Operand& operand) {
    if (operand.kind == Kind::Integer) return constant(operand.bits, 1);
    if (operand.kind != Kind::Register || width_of(operand) != 1) fail("expected a predicate");
    if (!operand.negated) return registers_[operand.reg];
    const RegisterCode made = scratch(1);
    emit_row("not.pred", made, {registers_[operand.reg]});
    return made;
}

RegisterCode Decoder::immediate(const Operand& operand, Slot slot) {
    uint64_t bits = operand.bits;
    const bool floating = slot.kind == 'f' && slot.bits >= 32;
    if (operand.kind == Kind::Integer) {
        if (floating) fail("expected a float such as 0f3F800000, found an integer");
    } else if (operand.kind == Kind::Float32 && slot.bits == 64) {
        bits = std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(bits))));
    } else if (operand.kind == Kind::Float64 && slot.bits == 32) {
        bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
    } else if (slot.bits < 32) {
        fail("expected the bits of a float of 16 bits");
    }
    return constant(bits, slot.bits);
}

RegisterCode Decoder::source(const Operand& operand, Slot slot) {
    switch (operand.kind) {
        case Kind::Integer:
        case Kind::Float32:
        case Kind::Float64:
            return slot.bits == 1 ? predicate(operand) : immediate(operand, slot);
        case Kind::Special:
            return special(operand, slot.bits);
        case Kind::Symbol:
            return symbol(operand, slot.bits);
        case Kind::Register:
            break;
        default:
            fail("expected a register or a number");
    }
    if (slot.bits == 1) return predicate(operand);
    if (operand.negated) fail("only a predicate can be negated");
    const uint32_t width = width_of(operand);
    // Conversions read the lower part of a wider register.
    if (width > slot.bits && width <= 64 && statement_->opcode.starts_with("cvt")) {
        return narrowed(registers_[operand.reg], width, slot.bits);
    }
    return reg(operand, slot.bits, "an operand");
}

// A special register is read into a register before the instruction that uses it.
RegisterCode Decoder::special(const Operand& operand, uint32_t bits) {
    if (bits != 32 && bits != 64) fail("a special register has 32 or 64 bits");
    uint32_t extra = 0;
    const Handler handler = special_register(operand.symbol, bits == 64, extra);
    if (!handler) fail("unknown register '" + std::string(operand.symbol) + "'");
    const RegisterCode made = scratch(bits);
    Instruction& instruction = emit(handler);
    instruction.result = made;
    instruction.extra = extra;
    return made;
}

RegisterCode Decoder::symbol(const Operand& operand, uint32_t bits) {
    if (bits != 32 && bits != 64) fail("the address of a symbol has 32 or 64 bits");
    if (operand.variable >= 0) {
        return symbol_of_variable(source_.variables[size_t(operand.variable)], operand.variable, operand.bits, bits);
    }
    const std::string name(operand.symbol);
    if (const auto found = program_.variables.find(name); found != program_.variables.end()) {
        return constant(found->second->address + operand.bits, bits);
    }
    if (const auto found = program_.shared.find(name); found != program_.shared.end()) {
        return constant(found->second + operand.bits, bits);
    }
    if (const auto found = program_.function_index.find(name); found != program_.function_index.end()) {
        if (!program_.functions[size_t(found->second)].source->defined) fail("'" + name + "' has no body");
        return constant(kCodeWindow + uint64_t(found->second), bits);
    }
    for (const ptx::Variable& variable : program_.module.variables) {
        if (variable.name == name) return symbol_of_variable(variable, -1, operand.bits, bits);
    }
    fail("unknown symbol '" + name + "'");
}

RegisterCode Decoder::symbol_of_variable(const ptx::Variable& variable, int32_t index, uint64_t offset, uint32_t bits) {
    if (variable.space == ptx::Space::Shared) {
        if (!variable.unsized) {
            // a variable of this function: its offset is stored under the function's name
            return constant(program_.shared.at(source_.name + "/" + std::to_string(index)) + offset, bits);
        }
        const RegisterCode made = scratch(bits);
        Instruction& instruction = emit(handlers::dynamic_shared);
        instruction.result = made;
        instruction.immediate = int64_t(offset);
        instruction.width = uint8_t(bits / 8);
        return made;
    }
    if (index < 0) fail("the variable '" + variable.name + "' is defined nowhere");
    if (variable.space == ptx::Space::Global || variable.space == ptx::Space::Const) {
        return constant(program_.variables.at(source_.name + "/" + std::to_string(index))->address + offset, bits);
    }
    const auto parameter = std::find(source_.parameters.begin(), source_.parameters.end(), uint32_t(index));
    if (source_.entry && variable.space == ptx::Space::Param && parameter != source_.parameters.end()) {
        return constant(function_.parameter_offsets[size_t(parameter - source_.parameters.begin())] + offset, bits);
    }
    const RegisterCode made = scratch(bits);
    Instruction& instruction = emit(handlers::local_address);
    instruction.result = made;
    instruction.immediate = int64_t(local_offsets_[size_t(index)] + offset);
    instruction.width = uint8_t(bits / 8);
    return made;
}

Decoder::Result Decoder::result(const Operand& operand, Slot slot) {
    if (operand.kind == Kind::Sink) return {scratch(slot.bits), kNone, 0, slot};
    if (operand.kind != Kind::Register || operand.negated) fail("expected a register as the result");
    const uint32_t width = width_of(operand);
    const RegisterCode code = registers_[operand.reg];
    if (width == slot.bits) return {code, kNone, 0, slot};
    // Results of conversions may be in a wider register.
    if (slot.bits >= 16 && width > slot.bits && width <= 64 && statement_->opcode.starts_with("cvt")) {
        return {scratch(slot.bits), code, width, slot};
    }
    fail("expected a register of " + std::to_string(slot.bits) + " bits as the result, found one of " +
         std::to_string(width));
}

void Decoder::finish(const Result& made) {
    if (made.target == kNone) return;
    const char kind = made.slot.kind == 's' ? 's' : 'u';
    const auto type = [&](uint32_t bits) { return kind + std::to_string(bits); };
    emit_row("cvt." + type(made.width) + "." + type(made.slot.bits), made.target, {made.code});
}

// The base as a register of 64 bits, and the offset. A symbol of a space other than the instruction's is an error.
RegisterCode Decoder::address(const Operand& operand, ptx::Space& space, int64_t& offset) {
    if (operand.kind != Kind::Address) fail("expected an address such as [%rd1+8]");
    offset = int64_t(operand.bits);
    if (operand.has_base) {
        Operand base{.kind = Kind::Register, .reg = operand.reg};
        const uint32_t width = width_of(base);
        if (width != 32 && width != 64) fail("an address has 32 or 64 bits");
        if (width == 64) return registers_[operand.reg];
        const RegisterCode made = scratch(64);
        emit_row("cvt.u64.u32", made, {registers_[operand.reg]});
        return made;
    }
    if (operand.symbol.empty()) return constant(0, 64);
    Operand base{.kind = Kind::Symbol, .variable = operand.variable, .symbol = operand.symbol};
    if (operand.variable >= 0) {
        // parameters of functions and of calls are in local memory
        const ptx::Variable& variable = source_.variables[size_t(operand.variable)];
        const bool own = source_.entry && std::find(source_.parameters.begin(), source_.parameters.end(),
                                                    uint32_t(operand.variable)) != source_.parameters.end();
        if (variable.space == ptx::Space::Param && space == ptx::Space::Param && !own) space = ptx::Space::Local;
    }
    return symbol(base, 64);
}

}  // namespace weft::emulator
