#include "runtime/cpu/accesses.h"

#include <atomic>
#include <cstring>

#include "runtime/cpu/fault.h"

namespace weft::runtime {

namespace {

std::atomic<bool> marks = false;

// Whether a number of this place was never written. One or two bytes may hold anything by accident.
std::uintptr_t unwritten_number(const Accesses::AccessedBytes& range) {
    if (range.unit < 4) return 0;
    for (std::uintptr_t at = range.address; at < range.address + static_cast<std::uintptr_t>(range.bytes);
         at += static_cast<std::uintptr_t>(range.unit)) {
        std::uint32_t words[2] = {kUnwritten, kUnwritten};
        std::memcpy(words, reinterpret_cast<const void*>(at), range.unit < 8 ? 4 : 8);
        if (words[0] == kUnwritten && words[1] == kUnwritten) return at;
    }
    return 0;
}

}  // namespace

void mark_new_memory(bool on) { marks.store(on, std::memory_order_relaxed); }
bool marks_new_memory() { return marks.load(std::memory_order_relaxed); }

void mark_unwritten(void* data, std::int64_t bytes) {
    auto* const first = static_cast<std::byte*>(data);
    for (std::int64_t at = 0; at < bytes; at += 4)
        std::memcpy(first + at, &kUnwritten, static_cast<std::size_t>(bytes - at < 4 ? bytes - at : 4));
}

Accesses::Page& Accesses::page_of(std::uintptr_t address, std::uintptr_t unit) {
    const auto [found, is_new] = pages_.try_emplace(address / kPageBytes);
    Page& page = found->second;
    if (is_new) page = {unit, std::vector<Cell>(kPageBytes / unit)};
    if (unit >= page.unit) return page;
    Page finer{unit, std::vector<Cell>(kPageBytes / unit)};
    for (std::size_t i = 0; i < finer.cells.size(); ++i) finer.cells[i] = page.cells[i * unit / page.unit];
    return page = std::move(finer);
}

// Calls visit(cell, offset in the place) for each cell, until one gives an access.
template <class Visit>
const Accesses::Access* Accesses::visit(const AccessedBytes& range, Visit&& visit) {
    const std::uintptr_t end = range.address + static_cast<std::uintptr_t>(range.bytes);
    const auto unit = static_cast<std::uintptr_t>(range.unit);
    // Arrays that are views of bytes may lie anywhere.
    const std::uintptr_t aligned = range.address % unit == 0 ? unit : 1;
    for (std::uintptr_t at = range.address; at < end;) {
        Page& page = page_of(at, aligned);
        const std::uintptr_t next = at - at % page.unit + page.unit;
        if (const Access* const found = visit(page.cells[at % kPageBytes / page.unit], at - range.address, next - at))
            return found;
        at = next;
    }
    return nullptr;
}

const Accesses::Access* Accesses::read(const AccessedBytes& range, Access by) {
    return visit(range, [&](Cell& cell, std::uintptr_t, std::uintptr_t) -> const Access* {
        if (cell.changed && cell.writer.thread != by.thread) return &cell.writer;
        if (cell.reader.thread < 0 || cell.reader.thread == by.thread)
            cell.reader = by;
        else
            cell.other_reader = by;
        return nullptr;
    });
}

void Accesses::before_write(const AccessedBytes& range) {
    const auto* const data = reinterpret_cast<const std::byte*>(range.address);
    before_.assign(data, data + range.bytes);
}

const Accesses::Access* Accesses::written(const AccessedBytes& range, Access by) {
    const auto* const data = reinterpret_cast<const std::byte*>(range.address);
    const auto size = static_cast<std::uintptr_t>(range.bytes);
    return visit(range, [&](Cell& cell, std::uintptr_t offset, std::uintptr_t bytes) -> const Access* {
        const std::uintptr_t count = bytes < size - offset ? bytes : size - offset;
        const bool changes = std::memcmp(data + offset, before_.data() + offset, count) != 0;
        if (changes) {
            for (const Access* other : {&cell.writer, &cell.reader, &cell.other_reader})
                if (other->thread >= 0 && other->thread != by.thread) return other;
        }
        cell.changed = changes || (cell.changed && cell.writer.thread == by.thread);
        cell.writer = by;
        return nullptr;
    });
}

}  // namespace weft::runtime

extern "C" void weft_access(const weft::LaunchContext* context, void* address, std::int64_t bytes, std::int64_t thread,
                            std::int32_t unit, std::int32_t kind, std::int32_t site) noexcept {
    using weft::AccessKind, weft::FaultKind;
    if (context->accesses == nullptr || context->fault == nullptr || context->fault->claimed != 0) return;
    const weft::runtime::Accesses::AccessedBytes range{reinterpret_cast<std::uintptr_t>(address), bytes, unit};
    const auto of = static_cast<AccessKind>(kind);
    const auto report = [&](FaultKind found, std::uintptr_t number, std::int32_t other_site) {
        weft_fault(context, static_cast<std::int32_t>(found), thread, static_cast<std::int64_t>(number), 0, other_site,
                   site);
    };
    if (of == AccessKind::write) return context->accesses->before_write(range);
    if (of != AccessKind::written) {
        if (const std::uintptr_t number = weft::runtime::unwritten_number(range))
            return report(FaultKind::unwritten, number, 0);
        if (of == AccessKind::atomic) return;
    }
    const weft::runtime::Accesses::Access by{thread, site};
    const auto* const other =
        of == AccessKind::read ? context->accesses->read(range, by) : context->accesses->written(range, by);
    if (other == nullptr) return;
    report(FaultKind::race, range.address, other->site);
    std::int64_t coordinates[weft::kMaxDims];
    weft::thread_coordinates(*context, other->thread, coordinates);
    std::memcpy(context->fault->message, coordinates, sizeof coordinates);
}
