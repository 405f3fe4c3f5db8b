#include "program/tape/stopped_gradients.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/typing.h"
#include "support/error.h"

namespace weft::program {

namespace {

using Use = TapeEntry::Use;

// Identifies memory by its address: memory of other libraries gets a new buffer for each launch.
const void* memory_of(const Variable& array) { return array.array.buffer ? array.array.buffer->data : nullptr; }

bool is_smooth(const Variable& array) { return ir::is_smooth(array.array.dtype); }

struct BesideEntry {
    std::weak_ptr<runtime::Buffer> memory, gradient;
    bool is_live() const { return !memory.expired() && !gradient.expired(); }
};
// Never freed: threads may look while the process ends.
struct BesideTable {
    std::mutex mutex;
    std::unordered_map<const runtime::Buffer*, BesideEntry> all;
    std::size_t swept_at = 64;
    std::atomic<bool> has_any{false};
};
BesideTable& beside_table() {
    static BesideTable& made = *new BesideTable;
    return made;
}

bool is_beside(const Variable& array) { return gradient_beside(array) != Beside::nothing; }

// Walks back through a tape as its backward pass would, entry by entry, and keeps the memory that the pass's start
// depends on.
class Search {
public:
    Search(const Tape& tape, std::span<const Variable* const> seeds) : tape_(tape), from_all_(seeds.empty()) {
        for (const auto& entry : tape.entries())
            for (const Use& use : entry->uses())
                if (use.is_written) written_.insert(memory_of(*use.array));
        for (const Variable* seed : seeds) add(*seed, nullptr, {});
    }

    std::vector<std::string> run() {
        for (std::size_t i = tape_.entries().size(); i-- > 0;) look_at(*tape_.entries()[i]);
        return std::move(found_);
    }

private:
    // Memory whose contents matter after an entry: its reader, and whether that reads it as an array with a gradient.
    struct Live {
        const std::byte *begin, *end;
        const TapeEntry* reader;  // null for the start of the pass
        Use use;
        bool has_gradient;
    };

    void add(const Variable& array, const TapeEntry* reader, const Use& use) {
        const auto [begin, end] = array.array.extent();
        if (begin == end) return;
        std::vector<Live>& memory = live_[memory_of(array)];
        const Live added{static_cast<const std::byte*>(begin), static_cast<const std::byte*>(end), reader, use,
                         array.requires_grad};
        for (Live& one : memory)
            if (one.begin == added.begin && one.end == added.end && one.has_gradient == added.has_gradient) {
                one = added;
                return;
            }
        memory.push_back(added);
    }

    template <typename Visit>
    void for_each_live(const Variable& array, Visit&& visit) const {
        const auto memory = live_.find(memory_of(array));
        if (memory == live_.end()) return;
        const auto [begin, end] = array.array.extent();
        for (const Live& one : memory->second)
            if (one.begin < end && begin < one.end) visit(one);
    }

    void forget(const Variable& overwritten) {
        const auto memory = live_.find(memory_of(overwritten));
        if (memory == live_.end()) return;
        const auto [begin, end] = overwritten.array.extent();
        std::erase_if(memory->second, [&](const Live& one) { return begin <= one.begin && one.end <= end; });
    }

    void look_at(const TapeEntry& entry) {
        uses_ = entry.uses();
        // A write that matters, with a reader that has no gradient for it, if there is one.
        struct Written {
            const Use* use;
            std::optional<Live> without;
        };
        std::vector<Written> written;
        for (const Use& use : uses_) {
            if (!use.is_written || !is_smooth(*use.array)) continue;
            bool matters = from_all_ && use.array->requires_grad;
            std::optional<Live> without;
            for_each_live(*use.array, [&](const Live& one) {
                matters = true;
                if (!one.has_gradient || !use.array->requires_grad) without = one;
            });
            if (matters) written.push_back({&use, without});
        }
        if (written.empty()) return;
        for (const Written& one : written)
            if (one.use->is_overwritten) forget(*one.use->array);
        for (const Use& use : uses_) {
            if (!use.is_read || !is_smooth(*use.array)) continue;
            const bool leads_on = is_written_somewhere(*use.array);
            bool is_read_on = false;
            for (const Written& one : written) {
                const bool stops = one.without && use.array->requires_grad && use.array != one.use->array;
                if (!stops && (is_read_on || use.array->requires_grad || !leads_on)) {
                    is_read_on = true;
                } else if (entry.has_derivative(*one.use, use)) {
                    is_read_on = true;
                    if (stops) note(entry, *one.use, *one.without);
                }
            }
            if (is_read_on && leads_on) add(*use.array, &entry, use);
        }
        for (const Use& use : uses_) {
            if (!use.is_read || !is_smooth(*use.array) || is_written_somewhere(*use.array)) continue;
            const auto passes_on = [&](const Written& one) {
                return one.use->array->requires_grad && entry.has_derivative(*one.use, use);
            };
            if (is_beside(*use.array) && std::ranges::any_of(written, passes_on)) note_beside(entry, use);
        }
    }

    void note_beside(const TapeEntry& reader, const Use& use) {
        const bool is_tensor = gradient_beside(*use.array) == Beside::tensor;
        std::string text = "the gradient stops at " + reader.use_text(use) + ", " +
                           (is_tensor ? "a tensor" : "an array") + " of shape " +
                           runtime::shape_text(use.array->array.shape());
        text += is_tensor ? ", which requires a gradient that a wp.Tape does not reach. help: wp.from_torch() or "
                            "wp.from_paddle(), whose array shares the tensor's gradient, or tensor.detach()"
                          : " without a gradient, in memory of an array that has one: it is a view that is older than "
                            "the gradient, or made by wp.array(..., copy=False). help: make the view when the array "
                            "has its gradient, or give it one, view.grad = ...; wp.clone() of it is a constant";
        if (std::ranges::find(found_, text) == found_.end()) found_.push_back(std::move(text));
    }

    void note(const TapeEntry& writer, const Use& written, const Live& live) {
        const bool is_writers = !written.array->requires_grad;
        const std::string reader = live.reader ? live.reader->use_text(live.use) : "the loss";
        std::string text = "the gradient stops at " + (is_writers ? writer.use_text(written) : reader) +
                           ", an array of shape " + runtime::shape_text(written.array->array.shape()) +
                           " without a gradient: it is written from arrays that have one" +
                           (is_writers ? "" : ", by " + writer.use_text(written)) +
                           (is_writers && live.reader ? ", and read by " + reader : "") +
                           ". help: make it with requires_grad=True; wp.launch(..., record_tape=False) leaves out "
                           "a launch that is meant to be constant";
        if (std::ranges::find(found_, text) == found_.end()) found_.push_back(std::move(text));
    }

    bool is_written_somewhere(const Variable& array) const { return written_.contains(memory_of(array)); }

    const Tape& tape_;
    bool from_all_;
    std::unordered_set<const void*> written_;                  // by address of memory
    std::unordered_map<const void*, std::vector<Live>> live_;  // the same
    std::vector<Use> uses_;
    std::vector<std::string> found_;
};

}  // namespace

void note_gradient_beside(const runtime::BufferPtr& memory, const runtime::BufferPtr& gradient) {
    BesideTable& table = beside_table();
    const std::lock_guard lock(table.mutex);
    if (table.all.size() >= table.swept_at) {
        std::erase_if(table.all, [](const auto& one) { return !one.second.is_live(); });
        table.swept_at = std::max<std::size_t>(64, 2 * table.all.size());
    }
    table.all[memory.get()] = {memory, gradient};
    table.has_any.store(true, std::memory_order_release);
}

Beside gradient_beside(const Variable& array) {
    BesideTable& table = beside_table();
    if (array.requires_grad || !array.array.buffer || !table.has_any.load(std::memory_order_acquire))
        return Beside::nothing;
    const std::lock_guard lock(table.mutex);
    const auto found = table.all.find(array.array.buffer.get());
    if (found == table.all.end()) return Beside::nothing;
    const runtime::BufferPtr memory = found->second.memory.lock(), gradient = found->second.gradient.lock();
    if (memory != array.array.buffer || !gradient) return Beside::nothing;
    return gradient == memory ? Beside::tensor : Beside::gradient;
}

bool TapeEntry::may_stop_gradients() const {
    bool has_any = false, may_stop = false;
    for_each_array([&](const Variable& one, bool is_written) {
        has_any |= one.requires_grad;
        may_stop |= !one.requires_grad && is_smooth(one) && (is_written || is_beside(one));
    });
    return has_any && may_stop;
}

std::size_t may_stop_gradients(const Tape& tape) {
    std::size_t mark = tape.entries().size();
    bool may_any = false;
    for (const auto& entry : tape.entries()) {
        may_any = may_any || entry->may_stop_gradients();
        mark = mark * 0x9E3779B97F4A7C15u + reinterpret_cast<std::size_t>(entry->kind());
    }
    return may_any ? mark | 1 : 0;
}

std::vector<std::string> stopped_gradients(const Tape& tape, std::span<const Variable* const> seeds) {
    return Search(tape, seeds).run();
}

}  // namespace weft::program
