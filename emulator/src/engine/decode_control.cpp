// Branches, calls, barriers, and operations across lanes.
#include <algorithm>

#include "engine/decoder.h"

namespace weft::emulator {

using Kind = ptx::Operand::Kind;

uint32_t Decoder::label(std::string_view name) const {
    const auto found = source_.labels.find(name);
    if (found == source_.labels.end()) fail("unknown label '" + std::string(name) + "'");
    return found->second;
}

void Decoder::branch() {
    expect_operands(1, 1);
    if (statement_->operands[0].kind != Kind::Symbol) fail("expected a label");
    jumps_.emplace_back(function_.instructions.size(), label(statement_->operands[0].symbol));
    emit_control(Control::Branch);
}

void Decoder::branch_indexed() {
    expect_operands(2, 2);
    const auto found = source_.targets.find(operand(1, "a list of targets").symbol);
    if (found == source_.targets.end()) fail("unknown list of targets");
    const RegisterCode index = source(statement_->operands[0], {32, 'u', 32});
    const uint32_t extra = uint32_t(function_.lists.size());
    function_.lists.push_back(uint32_t(found->second.size()));
    for (const std::string_view target : found->second) {
        list_jumps_.emplace_back(function_.lists.size(), label(target));
        function_.lists.push_back(0);
    }
    Instruction& made = emit_control(Control::BranchIndexed);
    made.source[0] = index;
    made.extra = extra;
}

uint32_t Decoder::offset_of_param(const Operand& operand, uint32_t& size) const {
    if (operand.kind != Kind::Symbol || operand.variable < 0 ||
        source_.variables[size_t(operand.variable)].space != ptx::Space::Param) {
        fail("expected a .param variable");
    }
    size = uint32_t(source_.variables[size_t(operand.variable)].size);
    return local_offsets_[size_t(operand.variable)];
}

namespace {

struct SystemFunction {
    std::string_view name;
    SystemCall call;
};
constexpr SystemFunction kSystem[] = {{"vprintf", SystemCall::Printf},
                                      {"__assertfail", SystemCall::Assert},
                                      {"malloc", SystemCall::Malloc},
                                      {"free", SystemCall::Free},
                                      {"cudaGraphSetConditional", SystemCall::SetCondition}};

}  // namespace

// call [(result),] function[, (arguments)][, prototype]
void Decoder::call() {
    const auto& operands = statement_->operands;
    CallSite site;
    size_t at = 0;
    if (at < operands.size() && operands[at].kind == Kind::List) {
        if (operands[at].parts.size() != 1) fail("a call has one result at most");
        site.result = offset_of_param(operands[at++].parts[0], site.result_size);
    }
    const Operand& target = operand(at++, "a function");
    if (at < operands.size() && operands[at].kind == Kind::List) {
        for (const Operand& argument : operands[at++].parts) {
            site.arguments.push_back(offset_of_param(argument, site.sizes.emplace_back()));
        }
    }
    Control control = Control::Call;
    if (target.kind == Kind::Register) {
        site.target = reg(target, 64, "the function");
    } else if (target.kind == Kind::Symbol) {
        const auto found = program_.function_index.find(std::string(target.symbol));
        if (found == program_.function_index.end()) fail("unknown function '" + std::string(target.symbol) + "'");
        site.callee = found->second;
        const CodeFunction& callee = program_.functions[size_t(site.callee)];
        if (!callee.source->defined) {
            const auto* system = std::find_if(std::begin(kSystem), std::end(kSystem),
                                              [&](const SystemFunction& one) { return one.name == target.symbol; });
            if (system == std::end(kSystem)) fail("the function '" + std::string(target.symbol) + "' has no body");
            site.system = system->call;
            control = Control::System;
        } else if (callee.source->entry) {
            fail("an entry cannot be called");
        }
        const size_t wanted = callee.parameter_sizes.size();
        if (site.arguments.size() != wanted || (site.result_size && site.result_size != callee.return_size) ||
            site.sizes != callee.parameter_sizes) {
            fail("the parameters of '" + std::string(target.symbol) + "' have other sizes");
        }
    } else {
        fail("expected a function");
    }
    Instruction& made = emit_control(control);
    made.extra = uint32_t(function_.sites.size());
    function_.sites.push_back(std::move(site));
}

void Decoder::leave() { emit_control(Control::Return); }
void Decoder::exit() { emit_control(Control::Exit); }
void Decoder::trap() { emit_control(Control::Trap); }
void Decoder::breakpoint() { emit_control(Control::Breakpoint); }
void Decoder::nanosleep() { emit_control(Control::Yield); }

Instruction& Decoder::emit_converge(Handler handler, const Operand& mask) {
    const RegisterCode code = source(mask, {32, 'u', 32});
    Instruction& made = emit_control(Control::Converge);
    made.run = handler;
    made.source[3] = code;
    return made;
}

Instruction& Decoder::emit_whole_warp(Handler handler) {
    const RegisterCode code = constant(kAllLanes, 32);
    Instruction& made = emit_control(Control::Converge);
    made.run = handler;
    made.source[3] = code;
    return made;
}

// bar[.cta].sync, barrier[.cta].sync[.aligned], .arrive, .red.op, and bar.warp.sync.
void Decoder::barrier() {
    auto all = words();
    bool aligned = statement_->opcode.starts_with("bar.");
    std::erase_if(all, [&](std::string_view word) {
        if (word == "aligned") aligned = true;
        return word == "aligned" || word == "cta";
    });
    const std::string_view kind = all.empty() ? "" : all[0];
    if (kind == "warp") {
        expect_operands(1, 1);
        emit_converge(handlers::sync_warp, statement_->operands[0]);
        return;
    }
    const bool reduces = kind == "red" && all.size() == 3;
    if ((kind != "sync" && kind != "arrive" && !reduces) || (!reduces && all.size() != 1)) {
        fail("unknown instruction '" + std::string(statement_->opcode) + "'");
    }
    const size_t count = statement_->operands.size(), first = reduces ? 1 : 0, last = reduces ? count - 1 : count;
    expect_operands(kind == "arrive" ? 2 : reduces ? 3 : 1, reduces ? 4 : 2);
    const Slot word{32, 'u', 32};
    const RegisterCode number = source(statement_->operands[first], word);
    const RegisterCode threads = last - first > 1 ? source(statement_->operands[first + 1], word) : constant(0, 32);
    RegisterCode value = 0;
    if (reduces) value = predicate(statement_->operands[last]);
    Instruction& made = emit_control(kind == "arrive" ? Control::Arrive
                                     : reduces        ? Control::BarrierReduce
                                                      : Control::Barrier);
    made.source[0] = number;
    made.source[1] = threads;
    made.source[2] = value;
    made.count = aligned;
    if (!reduces) return;
    made.flags = all[1] == "popc" ? 0 : all[1] == "and" ? 1 : all[1] == "or" ? 2 : 3;
    if (made.flags == 3) fail("expected .popc, .and or .or");
    made.result = reg(statement_->operands[0], made.flags == 0 ? 32 : 1, "the result");
}

// vote.sync.(all|any|uni).pred p, a, mask; vote.sync.ballot.b32 d, a, mask
void Decoder::vote() {
    expect_operands(3, 3);
    const auto all = words();
    static constexpr std::string_view kModes[] = {"all", "any", "uni", "ballot"};
    const auto mode = all.size() == 3 ? std::find(std::begin(kModes), std::end(kModes), all[1]) : std::end(kModes);
    if (mode == std::end(kModes) || all[0] != "sync") fail("expected vote.sync.all, .any, .uni or .ballot");
    const RegisterCode value = predicate(statement_->operands[1]);
    Instruction& made = emit_converge(handlers::vote, statement_->operands[2]);
    made.source[0] = value;
    made.flags = uint16_t(mode - std::begin(kModes));
    made.result = reg(statement_->operands[0], made.flags == 3 ? 32 : 1, "the result");
}

// shfl.sync.mode.b32 d[|p], a, b, c, mask
void Decoder::shuffle() {
    expect_operands(5, 5);
    const auto all = words();
    static constexpr std::string_view kModes[] = {"up", "down", "bfly", "idx"};
    const auto mode = all.size() == 3 ? std::find(std::begin(kModes), std::end(kModes), all[1]) : std::end(kModes);
    if (mode == std::end(kModes) || all[0] != "sync" || all[2] != "b32")
        fail("expected shfl.sync.up.b32, .down, .bfly or .idx");
    const Slot word{32, 'u', 32};
    RegisterCode codes[3];
    for (size_t i = 0; i < 3; ++i) codes[i] = source(statement_->operands[i + 1], word);
    const Operand& to = statement_->operands[0];
    const bool pair = to.kind == Kind::Pair;
    Instruction& made = emit_converge(handlers::shuffle, statement_->operands[4]);
    std::copy(codes, codes + 3, made.source);
    made.flags = uint16_t(mode - std::begin(kModes));
    const Operand& value = pair ? to.parts[0] : to;
    const RegisterCode unused = value.kind == Kind::Sink ? scratch(32) : kNone;
    made.result = value.kind == Kind::Sink ? unused : reg(value, 32, "the result");
    made.extra = pair && to.parts[1].kind != Kind::Sink ? reg(to.parts[1], 1, "the predicate") : kNone;
}

// match.any.sync.type d, a, mask; match.all.sync.type d[|p], a, mask
void Decoder::match() {
    expect_operands(3, 3);
    const auto all = words();
    if (all.size() != 3 || (all[0] != "any" && all[0] != "all") || all[1] != "sync" ||
        (all[2] != "b32" && all[2] != "b64")) {
        fail("expected match.any.sync or match.all.sync of b32 or b64");
    }
    const uint8_t bits = all[2] == "b32" ? 32 : 64;
    const RegisterCode value = source(statement_->operands[1], {bits, 'u', bits});
    const Operand& to = statement_->operands[0];
    const bool pair = to.kind == Kind::Pair;
    Instruction& made = emit_converge(handlers::match, statement_->operands[2]);
    made.source[0] = value;
    made.width = bits / 8;
    made.flags = all[0] == "all";
    made.result = reg(pair ? to.parts[0] : to, 32, "the result");
    made.extra = pair && to.parts[1].kind != Kind::Sink ? reg(to.parts[1], 1, "the predicate") : kNone;
}

void Decoder::active_mask() {
    expect_operands(1, 1);
    Instruction& made = emit(handlers::active_mask);
    made.result = reg(statement_->operands[0], 32, "the result");
}

// redux.sync.op.type d, a, mask
void Decoder::reduce() {
    expect_operands(3, 3);
    const auto all = words();
    static constexpr std::string_view kOps[] = {"add", "min", "max", "and", "or", "xor"};
    const auto op = all.size() == 3 ? std::find(std::begin(kOps), std::end(kOps), all[1]) : std::end(kOps);
    if (op == std::end(kOps) || all[0] != "sync" || (all[2] != "s32" && all[2] != "u32" && all[2] != "b32")) {
        fail("unknown instruction '" + std::string(statement_->opcode) + "'");
    }
    const RegisterCode value = source(statement_->operands[1], {32, 'u', 32});
    Instruction& made = emit_converge(handlers::reduce, statement_->operands[2]);
    made.source[0] = value;
    made.flags = uint16_t(op - std::begin(kOps));
    made.width = all[2] == "s32";
    made.result = reg(statement_->operands[0], 32, "the result");
}

// elect.sync d|p, mask
void Decoder::elect() {
    expect_operands(2, 2);
    const Operand& to = statement_->operands[0];
    if (to.kind != Kind::Pair) fail("expected d|p");
    Instruction& made = emit_converge(handlers::elect, statement_->operands[1]);
    made.result = to.parts[0].kind == Kind::Sink ? kNone : reg(to.parts[0], 32, "the result");
    made.extra = reg(to.parts[1], 1, "the predicate");
}

}  // namespace weft::emulator
