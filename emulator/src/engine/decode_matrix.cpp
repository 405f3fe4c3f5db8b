// mma.sync, ldmatrix and cp.async.
#include "engine/decoder.h"

namespace weft::emulator {

using Kind = ptx::Operand::Kind;

// As PTX's compiler asks for them.
void Decoder::expect_target(int architecture, int version) const {
    const ptx::Module& module = program_.module;
    if (module.architecture < architecture) {
        fail("expected .target sm_" + std::to_string(architecture) + " or later, found sm_" +
             std::to_string(module.architecture));
    }
    if (module.version < version) {
        fail("expected .version " + std::to_string(version / 10) + "." + std::to_string(version % 10) +
             " or later, found " + std::to_string(module.version / 10) + "." + std::to_string(module.version % 10));
    }
}

// Appends the registers of a fragment to the function's lists.
void Decoder::fragment(const Operand& operand, size_t count, uint32_t bits, const char* what, bool is_result) {
    const std::vector<Operand> one{operand};
    const std::vector<Operand>& parts = operand.kind == Kind::Vector ? operand.parts : one;
    if (parts.size() != count) fail("expected " + std::to_string(count) + " registers as " + what);
    for (const Operand& part : parts) {
        const bool is_number = part.kind == Kind::Float32 || part.kind == Kind::Float64 || part.kind == Kind::Integer;
        function_.lists.push_back(
            is_number && !is_result
                ? source(part, {uint8_t(bits), part.kind == Kind::Integer ? 'u' : 'f', uint8_t(bits)})
                : reg(part, bits, what));
    }
}

namespace {

struct MatrixShape {
    std::string_view words;  // after "mma"
    Handler handler;
    uint16_t depth;            // k
    uint8_t bits, a, b, sums;  // width of the registers, and their number in each fragment
    int architecture, version;
};

constexpr MatrixShape kShapes[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", handlers::multiply_halves, 8, 32, 2, 1, 4, 75, 65},
    {"m16n8k16.row.col.f32.f16.f16.f32", handlers::multiply_halves, 16, 32, 4, 2, 4, 80, 70},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", handlers::multiply_brains, 8, 32, 2, 1, 4, 80, 70},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", handlers::multiply_brains, 16, 32, 4, 2, 4, 80, 70},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", handlers::multiply_tf32, 4, 32, 2, 1, 4, 80, 70},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", handlers::multiply_tf32, 8, 32, 4, 2, 4, 80, 70},
    {"m8n8k4.row.col.f64.f64.f64.f64", handlers::multiply_doubles, 4, 64, 1, 1, 2, 80, 70},
};

}  // namespace

// mma.sync.aligned.shape.row.col.types d, a, b, c
void Decoder::multiply_matrices() {
    expect_operands(4, 4);
    constexpr std::string_view kBegin = "mma.sync.aligned.";
    const std::string_view opcode = statement_->opcode;
    const MatrixShape* shape = nullptr;
    for (const MatrixShape& one : kShapes) {
        if (opcode.starts_with(kBegin) && opcode.substr(kBegin.size()) == one.words) shape = &one;
    }
    if (!shape) fail("unknown instruction '" + std::string(opcode) + "'");
    expect_target(shape->architecture, shape->version);
    const auto first = uint32_t(function_.lists.size());
    const auto& operands = statement_->operands;
    const uint32_t sum_bits = shape->bits;
    fragment(operands[0], shape->sums, sum_bits, "the result", true);
    fragment(operands[1], shape->a, shape->bits, "the first matrix");
    fragment(operands[2], shape->b, shape->bits, "the second matrix");
    fragment(operands[3], shape->sums, sum_bits, "the sums");
    Instruction& made = emit_whole_warp(shape->handler);
    made.extra = first;
    made.flags = shape->depth;
}

// ldmatrix.sync.aligned.m8n8.(x1|x2|x4)[.trans].shared[::cta].b16 r, [p]
void Decoder::load_matrix() {
    expect_operands(2, 2);
    expect_target(75, 65);
    auto all = words();
    uint8_t count = 0;
    bool transposes = false;
    size_t known = 0;
    for (const std::string_view word : all) {
        if (word == "x1" || word == "x2" || word == "x4") count = uint8_t(word[1] - '0');
        if (word == "trans") transposes = true;
        known += word == "sync" || word == "aligned" || word == "m8n8" || word == "b16" || word == "shared" ||
                 word == "shared::cta" || word == "trans" || word[0] == 'x';
    }
    if (!count || known != all.size() || !has_word("m8n8") || !has_word("b16") || !has_word("aligned") ||
        (!has_word("shared") && !has_word("shared::cta"))) {
        fail("unknown instruction '" + std::string(statement_->opcode) + "'");
    }
    const auto first = uint32_t(function_.lists.size());
    fragment(statement_->operands[0], count, 32, "the result", true);
    ptx::Space space = ptx::Space::Shared;
    int64_t offset = 0;
    const RegisterCode base = address(statement_->operands[1], space, offset);
    Instruction& made = emit_whole_warp(handlers::load_matrix);
    made.source[0] = base;
    made.immediate = offset;
    made.extra = first;
    made.count = count;
    made.flags = transposes;
}

// cp.async.(ca|cg).shared[::cta].global[.L2::128B] [to], [from], size[, read]; cp.async.commit_group;
// cp.async.wait_group n; cp.async.wait_all
void Decoder::copy_async() {
    const auto all = words();
    if (all.size() < 2 || all[0] != "async") fail("unknown instruction '" + std::string(statement_->opcode) + "'");
    expect_target(80, 70);
    if (all[1] == "commit_group" || all[1] == "wait_all") {
        expect_operands(0, 0);
        Instruction& made = emit(all[1] == "wait_all" ? handlers::wait_copies : handlers::commit_copies);
        made.flags = 1;  // all
        return;
    }
    const auto& operands = statement_->operands;
    if (all[1] == "wait_group") {
        expect_operands(1, 1);
        if (operands[0].kind != Kind::Integer) fail("expected the number of groups");
        Instruction& made = emit(handlers::wait_copies);
        made.immediate = int64_t(operands[0].bits);
        return;
    }
    const bool by_level_two = all[1] == "cg";
    if (all.size() < 4 || (all[1] != "ca" && !by_level_two) || (all[2] != "shared" && all[2] != "shared::cta") ||
        all[3] != "global" || all.size() > 5 || (all.size() == 5 && !all[4].starts_with("L2::"))) {
        fail("unknown instruction '" + std::string(statement_->opcode) + "'");
    }
    expect_operands(3, 4);
    const uint64_t size = operands[2].kind == Kind::Integer ? operands[2].bits : 0;
    if (size != 16 && (by_level_two || (size != 4 && size != 8)))
        fail(by_level_two ? "expected a size of 16" : "expected a size of 4, 8 or 16");
    ptx::Space shared = ptx::Space::Shared, global = ptx::Space::Global;
    int64_t to_offset = 0, from_offset = 0;
    const RegisterCode to = address(operands[0], shared, to_offset), from = address(operands[1], global, from_offset);
    const RegisterCode read = operands.size() > 3 ? source(operands[3], {32, 'u', 32}) : constant(size, 32);
    Instruction& made = emit(handlers::copy_async);
    made.source[0] = to;
    made.source[1] = from;
    made.source[2] = read;
    made.immediate = to_offset;
    made.extra = uint32_t(from_offset);
    made.width = uint8_t(size);
}

}  // namespace weft::emulator
