// mov, cvta, isspacep, and combined comparisons.
#include "engine/decoder.h"

namespace weft::emulator {

using Kind = ptx::Operand::Kind;

void Decoder::move() {
    expect_operands(2, 2);
    const Operand& to = statement_->operands[0];
    const Operand& from = statement_->operands[1];
    const ptx::Type type = ptx::type_of(words().empty() ? "" : words().back());
    if (from.kind == Kind::Vector) return pack(to, from, type.bits);
    if (to.kind == Kind::Vector) return unpack(to, from, type.bits);
    row();
}

void Decoder::pack(const Operand& to, const Operand& from, uint32_t bits) {
    const uint32_t count = uint32_t(from.parts.size());
    if ((count != 2 && count != 4) || bits / count < 16 || bits > 64)
        fail("expected two or four parts of 16 bits or more");
    std::vector<RegisterCode> codes;
    for (const Operand& part : from.parts)
        codes.push_back(source(part, {uint8_t(bits / count), 'u', uint8_t(bits / count)}));
    const RegisterCode target = reg(to, bits, "the result");
    Instruction& made = emit(handlers::pack);
    made.result = target;
    made.count = uint8_t(count);
    made.width = uint8_t(bits / count / 8);
    made.extra = uint32_t(function_.lists.size());
    function_.lists.insert(function_.lists.end(), codes.begin(), codes.end());
}

void Decoder::unpack(const Operand& to, const Operand& from, uint32_t bits) {
    const uint32_t count = uint32_t(to.parts.size());
    if ((count != 2 && count != 4) || bits / count < 16 || bits > 64)
        fail("expected two or four parts of 16 bits or more");
    const RegisterCode code = source(from, {uint8_t(bits), 'u', uint8_t(bits)});
    std::vector<RegisterCode> codes;
    for (const Operand& part : to.parts) {
        codes.push_back(part.kind == Kind::Sink ? scratch(bits / count) : reg(part, bits / count, "a part"));
    }
    Instruction& made = emit(handlers::unpack);
    made.source[0] = code;
    made.count = uint8_t(count);
    made.width = uint8_t(bits / count / 8);
    made.extra = uint32_t(function_.lists.size());
    function_.lists.insert(function_.lists.end(), codes.begin(), codes.end());
}

namespace {

// The window of a space. Global and constant memory have plain addresses.
bool window_of(std::string_view space, uint64_t& window) {
    space = space.substr(0, space.find("::"));
    if (space == "global" || space == "const")
        window = 0;
    else if (space == "shared")
        window = kSharedWindow;
    else if (space == "local")
        window = kLocalWindow;
    else if (space == "param")
        window = kParamWindow;
    else
        return false;
    return true;
}

}  // namespace

// cvta.space.u64 and cvta.to.space.u64; addresses of 32 bits are widened first.
void Decoder::convert_address() {
    expect_operands(2, 2);
    const auto all = words();
    const bool to = !all.empty() && all.front() == "to";
    uint64_t window = 0;
    if (all.size() != (to ? 3u : 2u) || all.back() != "u64" || !window_of(all[all.size() - 2], window)) {
        fail("expected cvta.global.u64, cvta.to.shared.u64 or the like");
    }
    // parameters of calls are in local memory, and have its window
    if (window == kParamWindow && !source_.entry) window = kLocalWindow;
    const RegisterCode from = source(statement_->operands[1], {64, 'u', 64});
    const RegisterCode target = reg(statement_->operands[0], 64, "the result");
    if (window == 0) return emit_row("mov.b64", target, {from});
    Instruction& made = emit(to ? handlers::from_window : handlers::to_window);
    made.result = target;
    made.source[0] = from;
    made.immediate = int64_t(window);
}

void Decoder::is_space() {
    expect_operands(2, 2);
    const auto all = words();
    uint64_t window = 0;
    if (all.size() != 1 || !window_of(all[0], window))
        fail("expected isspacep.global, .shared, .local, .const or .param");
    const RegisterCode from = source(statement_->operands[1], {64, 'u', 64});
    Instruction& made = emit(handlers::is_space);
    made.source[0] = from;
    made.result = reg(statement_->operands[0], 1, "the result");
    made.immediate = int64_t(window);
    made.flags = all[0] == "const";
}

// "setp.lt.and.ftz.f32" → "setp.lt.ftz.f32", and "and".
std::string Decoder::without_combination(std::string_view& combination) const {
    std::string opcode = "setp";
    for (const std::string_view word : words()) {
        if (word == "and" || word == "or" || word == "xor")
            combination = word;
        else
            (opcode += '.') += word;
    }
    return opcode;
}

RegisterCode Decoder::compared(const std::string& opcode, const Operand& a, const Operand& b) {
    const Row* found = find_row(opcode, 2);
    if (!found) fail("unknown comparison '" + opcode + "'");
    const RegisterCode first = source(a, found->source[0]), second = source(b, found->source[1]);
    const RegisterCode made = scratch(1);
    Instruction& instruction = emit(found->handler);
    instruction.source[0] = first;
    instruction.source[1] = second;
    instruction.result = made;
    instruction.flags = flags_of(opcode);
    return made;
}

// setp.compare[.and][.ftz].type p[|q], a, b[, c]: p is (a < b) and c, q is !(a < b) and c.
void Decoder::compare() {
    std::string_view combination;
    const std::string opcode = without_combination(combination);
    const Operand& to = operand(0, "a predicate");
    expect_operands(combination.empty() ? 3 : 4, combination.empty() ? 3 : 4);
    if (combination.empty() && to.kind != Kind::Pair) {
        const Row* found = find_row(opcode, 2);
        if (!found) fail("unknown comparison '" + opcode + "'");
        return encode_row(*found, flags_of(opcode), to, std::span(statement_->operands).subspan(1));
    }
    const RegisterCode result = compared(opcode, statement_->operands[1], statement_->operands[2]);
    const RegisterCode other = combination.empty() ? kNone : predicate(statement_->operands[3]);
    const size_t count = to.kind == Kind::Pair ? 2 : 1;
    // both are computed before either is written, as the third predicate may be a result
    RegisterCode values[2];
    for (size_t i = 0; i < count; ++i) {
        RegisterCode value = result;
        if (i == 1) emit_row("not.pred", value = scratch(1), {result});
        values[i] = value;
        if (other != kNone) emit_row(std::string(combination) + ".pred", values[i] = scratch(1), {value, other});
    }
    for (size_t i = 0; i < count; ++i) {
        const Operand& target = count == 2 ? to.parts[i] : to;
        if (target.kind != Kind::Sink) emit_row("mov.pred", reg(target, 1, "the result"), {values[i]});
    }
}

// set.compare[.and][.ftz].dtype.stype d, a, b[, c]: all ones, or 1.0, if it holds.
void Decoder::set() {
    std::string_view combination;
    std::string opcode = without_combination(combination);
    auto all = words();
    if (all.size() < 3) fail("expected set.compare.type.type");
    const std::string_view type = all[all.size() - 2];
    opcode.erase(opcode.size() - all.back().size() - type.size() - 1, type.size() + 1);
    expect_operands(combination.empty() ? 3 : 4, combination.empty() ? 3 : 4);
    const ptx::Type to = ptx::type_of(type);
    if (to.bits != 16 && to.bits != 32) fail("expected a result of 16 or 32 bits");
    RegisterCode result = compared(opcode, statement_->operands[1], statement_->operands[2]);
    if (!combination.empty()) {
        const RegisterCode other = predicate(statement_->operands[3]), both = scratch(1);
        emit_row(std::string(combination) + ".pred", both, {result, other});
        result = both;
    }
    const uint64_t one = to.kind == ptx::Type::Kind::Float   ? (to.bits == 32 ? 0x3f800000 : 0x3c00)
                         : to.kind == ptx::Type::Kind::Brain ? 0x3f80
                                                             : 0xffffffff;
    const RegisterCode target = reg(statement_->operands[0], to.bits, "the result");
    emit_row(to.bits == 32 ? "selp.b32" : "selp.b16", target, {constant(one, to.bits), constant(0, to.bits), result});
}

}  // namespace weft::emulator
