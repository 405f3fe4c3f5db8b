// ld, st, atom, red and fences.
#include <algorithm>

#include "engine/decoder.h"

namespace weft::emulator {

using Kind = ptx::Operand::Kind;

namespace {

bool is_hint(std::string_view word) {
    static constexpr std::string_view kHints[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak"};
    return std::find(std::begin(kHints), std::end(kHints), word) != std::end(kHints) || word.starts_with("L1::") ||
           word.starts_with("L2::");
}
bool is_scope(std::string_view word) { return word == "cta" || word == "cluster" || word == "gpu" || word == "sys"; }

// "shared::cta" → Shared; Register: not a space.
ptx::Space space_of(std::string_view word) {
    if (word == "shared::cluster") return ptx::Space::Register;
    word = word.substr(0, word.find("::"));
    if (word == "global") return ptx::Space::Global;
    if (word == "shared") return ptx::Space::Shared;
    if (word == "local") return ptx::Space::Local;
    if (word == "param") return ptx::Space::Param;
    if (word == "const") return ptx::Space::Const;
    return ptx::Space::Register;
}

}  // namespace

// The words between the first and the type: order, scope, space, hints, vector.
void Decoder::memory_words(Instruction& instruction, ptx::Space& space, bool stores) {
    auto all = words();
    if (all.empty()) fail("expected a type");
    all.pop_back();
    for (const std::string_view word : all) {
        if (const ptx::Space named = space_of(word); named != ptx::Space::Register) {
            space = named;
        } else if (word == "relaxed" || word == "volatile" || word == "mmio") {
            instruction.flags |= kStrong;
        } else if (word == (stores ? "release" : "acquire")) {
            instruction.flags |= kStrong | kOrders;
        } else if (word == "nc" && !stores) {
            instruction.flags |= kReadOnly;
        } else if (word == "v2" || word == "v4" || word == "v8") {
            instruction.count = uint8_t(word[1] - '0');
        } else if (!is_scope(word) && !is_hint(word)) {
            fail("unknown word '." + std::string(word) + "'");
        }
    }
}

void Decoder::load() {
    expect_operands(2, 2);
    Instruction made;
    ptx::Space space = ptx::Space::Generic;
    memory_words(made, space, false);
    const ptx::Type type = ptx::type_of(words().back());
    if (type.bits < 8 || type.bits > 64) fail("expected a type of 8 to 64 bits");
    if (type.kind == ptx::Type::Kind::Signed) made.flags |= kSigned;
    made.width = uint8_t(type.bits / 8);
    const Operand& from = statement_->operands[1];
    if (from.kind == Kind::Address && from.has_base && space == ptx::Space::Param && !source_.entry)
        space = ptx::Space::Local;
    made.source[0] = address(from, space, made.immediate);
    const Operand& to = statement_->operands[0];
    const std::vector<Operand> one{to};
    const std::vector<Operand>& parts = to.kind == Kind::Vector ? to.parts : one;
    if (parts.size() != made.count) fail("expected " + std::to_string(made.count) + " registers as the result");
    made.extra = uint32_t(function_.lists.size());
    uint32_t width = 0;
    for (const Operand& part : parts) {
        const bool sink = part.kind == Kind::Sink;
        if (!sink && (part.kind != Kind::Register || width_of(part) == 1)) fail("expected a register as the result");
        const uint32_t bits = sink ? std::max<uint32_t>(type.bits, 16) : width_of(part);
        if (bits < type.bits || bits > 64 || (width && bits != width)) fail("expected a register that holds the type");
        width = bits;
        function_.lists.push_back(sink ? scratch(bits) : registers_[part.reg]);
    }
    made.flags |= uint16_t(width / 8 << kRegisterShift) | uint16_t(space);
    made.result = function_.lists[made.extra];
    Instruction& placed = emit(space == ptx::Space::Param ? handlers::load_parameter : handlers::load);
    made.run = placed.run;
    made.statement = placed.statement;
    placed = made;
}

void Decoder::store() {
    expect_operands(2, 2);
    Instruction made;
    ptx::Space space = ptx::Space::Generic;
    memory_words(made, space, true);
    const ptx::Type type = ptx::type_of(words().back());
    if (type.bits < 8 || type.bits > 64) fail("expected a type of 8 to 64 bits");
    made.width = uint8_t(type.bits / 8);
    const Operand& to = statement_->operands[0];
    if (to.kind == Kind::Address && to.has_base && space == ptx::Space::Param && !source_.entry)
        space = ptx::Space::Local;
    made.source[0] = address(to, space, made.immediate);
    if (space == ptx::Space::Const || space == ptx::Space::Param) fail("a store cannot change this space");
    const Operand& from = statement_->operands[1];
    const std::vector<Operand> one{from};
    const std::vector<Operand>& parts = from.kind == Kind::Vector ? from.parts : one;
    if (parts.size() != made.count) fail("expected " + std::to_string(made.count) + " registers to store");
    std::vector<RegisterCode> codes;
    uint32_t width = 0;
    for (const Operand& part : parts) {
        // values have the type's width, in a register of at least 16 bits
        const bool is_register = part.kind == Kind::Register && !part.negated;
        uint32_t bits = is_register ? width_of(part) : std::max<uint32_t>(type.bits, 16);
        if (is_register && (bits < type.bits || bits > 64 || bits == 1))
            fail("expected a register that holds the type");
        RegisterCode code =
            is_register ? registers_[part.reg]
                        : source(part, {uint8_t(bits), bits < 32 || type.kind != ptx::Type::Kind::Float ? 'u' : 'f',
                                        uint8_t(bits)});
        if (width && bits != width) {
            const uint32_t narrow = std::max<uint32_t>(type.bits, 16);
            if (bits != narrow) code = narrowed(code, bits, narrow);
            bits = narrow;
            if (width != narrow) fail("the registers of a vector have one width");
        }
        width = bits;
        codes.push_back(code);
    }
    made.extra = uint32_t(function_.lists.size());
    function_.lists.insert(function_.lists.end(), codes.begin(), codes.end());
    made.flags |= uint16_t(width / 8 << kRegisterShift) | uint16_t(space);
    Instruction& placed = emit(handlers::store);
    made.run = placed.run;
    made.statement = placed.statement;
    placed = made;
}

// atom[.order][.scope][.space].op[.noftz].type d, [a], b[, c]; red has no result.
void Decoder::atomic() {
    static const std::unordered_map<std::string_view, AtomicOp> operations = {{"add", AtomicOp::Add},
                                                                              {"min", AtomicOp::Min},
                                                                              {"max", AtomicOp::Max},
                                                                              {"exch", AtomicOp::Exchange},
                                                                              {"cas", AtomicOp::CompareExchange},
                                                                              {"and", AtomicOp::And},
                                                                              {"or", AtomicOp::Or},
                                                                              {"xor", AtomicOp::Xor},
                                                                              {"inc", AtomicOp::Increment},
                                                                              {"dec", AtomicOp::Decrement}};
    const bool returns = statement_->opcode.starts_with("atom");
    Instruction made;
    ptx::Space space = ptx::Space::Generic;
    bool found = false;
    auto all = words();
    const ptx::Type type = ptx::type_of(all.empty() ? "" : all.back());
    for (size_t i = 0; i + 1 < all.size(); ++i) {
        const std::string_view word = all[i];
        if (const auto operation = operations.find(word); operation != operations.end()) {
            made.operation = uint8_t(operation->second);
            found = true;
        } else if (const ptx::Space named = space_of(word);
                   named == ptx::Space::Global || named == ptx::Space::Shared) {
            space = named;
        } else if (word == "acquire" || word == "release" || word == "acq_rel") {
            made.flags |= kOrders;
        } else if (word != "relaxed" && word != "noftz" && !is_scope(word) && !is_hint(word)) {
            fail("unknown word '." + std::string(word) + "'");
        }
    }
    const bool swaps = found && made.operation == uint8_t(AtomicOp::CompareExchange);
    const size_t sources = swaps ? 3 : 2, first = returns ? 1 : 0;
    if (!found || type.bits < 16 || type.bits > 64)
        fail("unknown instruction '" + std::string(statement_->opcode) + "'");
    expect_operands(first + sources, first + sources);
    using K = ptx::Type::Kind;
    const char kind = type.kind == K::Signed ? 's' : type.kind == K::Float ? 'f' : type.kind == K::Brain ? 'b' : 'u';
    made.source[0] = address(statement_->operands[first], space, made.immediate);
    const Slot slot{uint8_t(type.bits), type.lanes == 2 ? 'x' : kind, uint8_t(type.bits)};
    for (size_t i = 1; i < sources; ++i) made.source[i] = source(statement_->operands[first + i], slot);
    made.result = kNone;
    if (returns && statement_->operands[0].kind != Kind::Sink)
        made.result = reg(statement_->operands[0], type.bits, "the result");
    made.width = uint8_t(type.bits / 8);
    made.count = type.lanes;
    made.extra = uint32_t(kind);
    made.flags |= uint16_t(space);
    Instruction& placed = emit(handlers::atomic);
    made.run = placed.run;
    made.statement = placed.statement;
    placed = made;
}

void Decoder::fence() {
    expect_operands(0, 0);
    const auto all = words();
    for (const std::string_view word : all) {
        if (!is_scope(word) && word != "gl" && word != "sc" && word != "acq_rel" && word != "acquire" &&
            word != "release" && word != "proxy" && word != "alias") {
            fail("unknown word '." + std::string(word) + "'");
        }
    }
    emit(handlers::fence);
}

// Hints have no effect.
void Decoder::nothing() { emit(handlers::nothing); }

}  // namespace weft::emulator
