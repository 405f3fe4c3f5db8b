#include "runtime/spatial/handles.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "support/error.h"

namespace weft::runtime::spatial {

namespace {

constexpr std::size_t kSlots = std::size_t{1} << 20;
constexpr std::uint64_t kGenerations = std::uint64_t{1} << 24;

struct Slot {
    std::atomic<std::uint64_t> id{0};  // 0: free
    std::atomic<const void*> descriptor{nullptr};
};

// Zeros: the descriptor of every kind of object that has nothing in it.
alignas(64) constexpr std::byte kEmpty[kMostDescriptorBytes]{};

// Memory that costs nothing before it is touched.
constinit Slot slots[kSlots];

struct Use {
    std::uint64_t generation = 0;
    std::shared_ptr<const Object> object;
};
struct Slots {
    std::mutex mutex;
    std::vector<std::uint32_t> free;
    std::vector<Use> uses;  // of the slots that were ever used
};
// Never freed: objects may outlive static ones.
Slots& owners() {
    static Slots& made = *new Slots;
    return made;
}

// ---- readers ----

// The time at which a launch began, 0 where none runs. A place is taken by one launch at a time.
struct alignas(64) Reader {
    std::atomic<std::uint64_t> began{0};
};
constexpr std::size_t kReaders = 256;
Reader readers[kReaders];
std::atomic<std::uint64_t> now{1};

struct Retired {
    std::uint64_t at;
    std::shared_ptr<const Object> object;
};
std::mutex retired_mutex;
std::vector<Retired>& retired() {
    static auto& list = *new std::vector<Retired>;
    return list;
}
std::atomic<bool> any_retired{false};
std::atomic<std::uint64_t> change_count{0}, write_count{0};

// What nobody can be reading any more.
std::vector<Retired> take_unread() {
    std::vector<Retired> unread;
    const std::lock_guard lock(retired_mutex);
    std::uint64_t oldest = UINT64_MAX;
    for (const Reader& reader : readers)
        if (const std::uint64_t began = reader.began.load(); began != 0) oldest = std::min(oldest, began);
    std::vector<Retired>& list = retired();
    std::erase_if(list, [&](Retired& item) {
        if (item.at >= oldest) return false;
        unread.push_back(std::move(item));
        return true;
    });
    any_retired = !list.empty();
    return unread;
}

void retire(std::shared_ptr<const Object> object) {
    {
        const std::lock_guard lock(retired_mutex);
        retired().push_back({now.fetch_add(1), std::move(object)});
        any_retired = true;
    }
    take_unread();
}

std::size_t slot_of(std::uint64_t id) { return id & 0xffffffff; }

// False where the id finds nothing.
bool remove(std::uint64_t id) {
    Slots& own = owners();
    std::shared_ptr<const Object> former;
    {
        const std::lock_guard lock(own.mutex);
        Slot& slot = slots[slot_of(id)];
        if (slot.id != id) return false;
        slot.id = 0;
        slot.descriptor = kEmpty;
        former = std::move(own.uses[slot_of(id)].object);
        own.free.push_back(static_cast<std::uint32_t>(slot_of(id)));
    }
    retire(std::move(former));
    return true;
}

}  // namespace

std::uint64_t publish(ObjectKind kind, Contents contents) {
    Slots& own = owners();
    const std::lock_guard lock(own.mutex);
    std::uint32_t slot = 0;
    if (!own.free.empty()) {
        slot = own.free.back();
        own.free.pop_back();
    } else if (own.uses.size() < kSlots) {
        slot = static_cast<std::uint32_t>(own.uses.size());
        own.uses.emplace_back();
    } else {
        throw UsageError("a mesh, grid or volume",
                         "there are " + std::to_string(kSlots) + " of them, and no more are possible",
                         ErrorCategory::memory);
    }
    Use& use = own.uses[slot];
    use.generation = (use.generation + 1) % kGenerations;
    const std::uint64_t id = static_cast<std::uint64_t>(kind) << 56 | use.generation << 32 | slot;
    use.object = std::move(contents.object);
    slots[slot].descriptor = contents.descriptor;
    slots[slot].id = id;
    return id;
}

void replace(std::uint64_t id, Contents contents) {
    std::shared_ptr<const Object> former;
    {
        const std::lock_guard lock(owners().mutex);
        slots[slot_of(id)].descriptor = contents.descriptor;
        former = std::exchange(owners().uses[slot_of(id)].object, std::move(contents.object));
    }
    ++change_count;
    retire(std::move(former));
}

void withdraw(std::uint64_t id) {
    if (remove(id)) ++change_count;
}

Snapshot::Snapshot(std::uint64_t of) {
    Contents now;
    {
        const std::lock_guard lock(owners().mutex);
        if (of == 0 || slot_of(of) >= kSlots || slots[slot_of(of)].id != of) return;
        now = {slots[slot_of(of)].descriptor, owners().uses[slot_of(of)].object};
    }
    object_ = now.object;
    version_ = object_->version();
    writes_ = write_count;
    id_ = publish(static_cast<ObjectKind>(of >> 56), std::move(now));
}

// Nobody but the tape knew it: for others nothing changes.
Snapshot::~Snapshot() {
    if (id_) remove(id_);
}

bool Snapshot::is_current() const {
    if (!object_) return true;
    const bool may_be_written = id_ >> 56 == static_cast<std::uint64_t>(ObjectKind::volume);
    return object_->version() == version_ && (!may_be_written || write_count == writes_);
}

void count_write() { ++write_count; }

std::uint64_t changes() { return change_count + write_count; }

bool is_object(std::uint64_t id, ObjectKind kind) {
    return id >> 56 == static_cast<std::uint64_t>(kind) && slot_of(id) < kSlots && slots[slot_of(id)].id == id;
}

// The id is read again: meanwhile the slot may have gone to another object, which has another id.
const void* find_descriptor(std::uint64_t id, ObjectKind kind) {
    if (!is_object(id, kind)) return kEmpty;
    const void* found = slots[slot_of(id)].descriptor;
    return is_object(id, kind) ? found : kEmpty;
}

std::uint64_t find_object(std::uint64_t id, std::int32_t kind) {
    return reinterpret_cast<std::uintptr_t>(find_descriptor(id, static_cast<ObjectKind>(kind)));
}

// The place is taken before anything is looked up, and whoever retires looks at the places after it has withdrawn: one
// of the two sees the other. (All of these are sequentially consistent.)
Reading::Reading() {
    std::size_t place = std::hash<std::thread::id>()(std::this_thread::get_id()) % kReaders;
    for (std::uint64_t none = 0; !readers[place].began.compare_exchange_strong(none, now.load()); none = 0)
        place = (place + 1) % kReaders;
    place_ = place;
}

Reading::~Reading() {
    readers[place_].began = 0;
    if (any_retired.load(std::memory_order_relaxed)) take_unread();
}

}  // namespace weft::runtime::spatial
