// Accesses reported to the runtime (runtime/cpu/accesses.h). Each number that a thread reads or writes in memory
// visible to other threads is reported with the thread and the operation. For code of one lane.
#include <algorithm>

#include "codegen/emitter.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

void TargetHooks::report_access(const AccessReport&) {
    throw InternalError("codegen: accesses are noted by code for CPUs only");
}

// Only the components that the kernel uses: other threads may write the others.
std::vector<LeafType> Emitter::parts_used(const Operation& load) {
    const Type type = load.result()->type;
    const std::vector<LeafType> all = leaf_types(type);
    std::vector<bool> used(all.size(), false);
    if (users_.empty()) {
        ir::for_each_operation(kernel_.body, [&](const Operation& user) {
            for (const ir::Value* const operand : user.operands) users_.emplace(operand, &user);
        });
    }
    const auto [begin, end] = users_.equal_range(load.result());
    for (auto at = begin; at != end; ++at) {
        const Operation& user = *at->second;
        if (user.op == Op::extract_at) {  // note_part()
            part_addresses_.try_emplace(load.result(), nullptr);
            continue;
        }
        int first = 0, count = static_cast<int>(all.size());
        if (user.op == Op::extract) {
            const LeafRange part = find_part(type, {user.ints.begin(), user.ints.end()});
            first = part.first;
            count = leaf_count(part.type);
        }
        std::fill_n(used.begin() + first, count, true);
    }
    std::vector<LeafType> parts;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (used[i]) parts.push_back(all[i]);
    return parts;
}

void Emitter::note_parts(const Operation& operation, std::vector<LeafType> parts, const Address& address,
                         AccessKind kind) {
    const std::uint32_t site = new_site(operation);
    llvm::Value* const thread = thread_number(nullptr);
    for (std::size_t i = 0; i < parts.size();) {
        // Adjacent numbers of one size are one access.
        const std::int64_t unit = size_of(parts[i]);
        std::size_t end = i + 1;
        while (end < parts.size() && size_of(parts[end]) == unit && parts[end].offset == parts[end - 1].offset + unit)
            ++end;
        llvm::Value* const pointer = byte_offset(address.base, parts[i].offset);
        report_access({pointer, thread, unit * static_cast<std::int64_t>(end - i), unit, kind, site});
        i = end;
    }
}

// Memory without races: that of one thread, or the argument block.
static bool is_own(const ir::Value* array) {
    const Operation* made = ir::root_of(array)->definition;
    return ir::is_of_thread(array) || (made && made->op == ir::Op::argument);
}

void Emitter::note_access(const Operation& operation, const Address& address, AccessKind kind) {
    if (!options_.notes_accesses || is_own(operation.operands[0])) return;
    WEFT_CHECK(address.uniform(), "accesses are noted in code of one lane only");
    if (kind == AccessKind::read) return note_parts(operation, parts_used(operation), address, kind);
    if (kind == AccessKind::atomic && operation.op == Op::atomic_exch) return;  // does not depend on the former value
    note_parts(operation, leaf_types(operation.operands.back()->type), address, kind);
}

// Keeps the address of a loaded element for note_part(). Called before the load's own checks: a failed check ends the
// reports of its launch.
void Emitter::keep_part_address(const Operation& load) {
    if (!options_.notes_accesses || is_own(load.operands[0])) return;
    parts_used(load);
    const auto found = part_addresses_.find(load.result());
    if (found == part_addresses_.end()) return;
    found->second = address_of(load.operands[0], llvm::ArrayRef<ir::Value*>(load.operands).drop_front()).base;
}

void Emitter::note_part(const Operation& extract, const Leaf& position, std::int64_t bytes) {
    const auto found = part_addresses_.find(extract.operands[0]);
    if (found == part_addresses_.end()) return;
    const std::int64_t unit = info(extract.operands[0]->type.scalar()).bytes();
    llvm::Value* const offset =
        builder_.CreateMul(builder_.CreateZExt(position.scalar, builder_.getInt64Ty()), i64(bytes));
    llvm::Value* const pointer = builder_.CreateGEP(builder_.getInt8Ty(), found->second, offset);
    const std::uint32_t site = new_site(*extract.operands[0]->definition);
    report_access({pointer, thread_number(nullptr), bytes, unit, AccessKind::read, site});
}

}  // namespace weft::codegen
