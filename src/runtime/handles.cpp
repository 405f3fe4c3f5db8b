#include "runtime/handles.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "devlib/spatial/hash_grid.h"
#include "devlib/spatial/layout.h"
#include "runtime/recording.h"
#include "support/error.h"
#include "types/tree_of_mesh.h"

namespace weft::runtime::spatial {

namespace {

// Number of launches with previous objects: if it is 0, kernels skip the thread-local lookup.
std::atomic<int> finding_count{0};
constinit thread_local const PreviousObjectsPtr* snapshot_scope = nullptr;
constinit thread_local const PreviousObjects* thread_snapshot = nullptr;

constexpr std::size_t kSlots = std::size_t{1} << 20;
constexpr std::uint64_t kGenerations = std::uint64_t{1} << 24;

struct Slot {
    std::atomic<std::uint64_t> id{0};                  // 0: free
    std::atomic<const void*> descriptor{nullptr};      // the empty one for objects of another table
    std::atomic<const Device*> table_device{nullptr};  // of that table
};

// Zeros: the descriptor of an empty object.
alignas(64) constexpr std::byte kEmpty[kMostDescriptorBytes]{};

// An empty hash grid has a grid of groups, too: itself.
const void* empty_grid() {
    alignas(64) static std::byte made[kMostDescriptorBytes]{};
    [[maybe_unused]] static const bool is_made = [] {
        const auto at = reinterpret_cast<std::uintptr_t>(made);
        std::memcpy(made + offsetof(devlib::HashGridFields, grouped), &at, sizeof at);
        return true;
    }();
    return made;
}

const void* empty(ObjectKind kind) { return kind == ObjectKind::hash_grid ? empty_grid() : kEmpty; }

// Pages of it cost nothing until they are touched.
constinit Slot slots[kSlots];

struct Use {
    std::uint64_t generation = 0;
    Contents contents;
};
struct Slots {
    std::mutex mutex;
    std::vector<std::uint32_t> free;
    std::vector<Use> uses;  // of all slots that were ever used
};
// Never freed: objects may outlive static ones.
Slots& owners() {
    static Slots& made = *new Slots;
    return made;
}

// ---- readers ----

// The time at which a launch began; 0 if the place is free. A place is used by one launch at a time.
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
std::atomic<std::uint64_t> change_count{0};

// Removes and returns the objects that no launch can be reading any more.
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
// Whether an object has the id now; 0 is that of every free slot.
bool is_present(std::uint64_t id) { return id != 0 && slot_of(id) < kSlots && slots[slot_of(id)].id == id; }

// Empty if the id has no meaning. Precondition: the lock is held.
Contents contents_of(std::uint64_t id) {
    id &= ~kTreeOfMesh;
    return is_present(id) ? owners().uses[slot_of(id)].contents : Contents();
}

void set_free(std::size_t slot) {
    const std::lock_guard lock(owners().mutex);
    owners().free.push_back(static_cast<std::uint32_t>(slot));
}

// False if the id has no meaning.
bool remove(std::uint64_t id) {
    Slots& own = owners();
    Contents previous;
    {
        const std::lock_guard lock(own.mutex);
        if (!is_present(id)) return false;
        Slot& slot = slots[slot_of(id)];
        slot.id = 0;
        slot.descriptor = kEmpty;
        slot.table_device = nullptr;
        previous = std::exchange(own.uses[slot_of(id)].contents, {});
    }
    if (previous.table) {
        previous.table->remove(slot_of(id), [slot = slot_of(id), object = std::move(previous.object)]() mutable {
            object.reset();
            set_free(slot);
        });
        return true;
    }
    set_free(slot_of(id));
    retire(std::move(previous.object));
    return true;
}

}  // namespace

namespace {

// An unused slot, and the id that an object of this kind has in it.
std::pair<std::uint32_t, std::uint64_t> take_slot(ObjectKind kind) {
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
    std::uint64_t& generation = own.uses[slot].generation;
    generation = (generation + 1) % kGenerations;
    return {slot, static_cast<std::uint64_t>(kind) << 56 | generation << 32 | slot};
}

}  // namespace

std::uint64_t publish(ObjectKind kind, Contents contents) {
    const auto [slot, id] = take_slot(kind);
    if (contents.table) {
        try {
            contents.table->set(slot, id, contents.descriptor);
        } catch (...) {
            set_free(slot);
            throw;
        }
    }
    const std::lock_guard lock(owners().mutex);
    slots[slot].descriptor = contents.table ? kEmpty : contents.descriptor;
    slots[slot].table_device = contents.table ? &contents.table->device() : nullptr;
    owners().uses[slot].contents = std::move(contents);
    slots[slot].id = id;
    return id;
}

void replace(std::uint64_t id, Contents contents) {
    DeviceTable* const table = contents.table;
    if (table) table->change(slot_of(id), contents.descriptor);
    std::shared_ptr<const Object> previous;
    {
        const std::lock_guard lock(owners().mutex);
        if (!table) slots[slot_of(id)].descriptor = contents.descriptor;
        previous = std::exchange(owners().uses[slot_of(id)].contents, std::move(contents)).object;
    }
    ++change_count;
    if (table)
        previous.reset();  // its memory is freed in the order of the stream
    else
        retire(std::move(previous));
}

void count_change() { ++change_count; }

std::uint64_t changes() { return change_count; }

std::vector<std::uint64_t> all_ids() {
    std::vector<std::uint64_t> ids;
    const std::lock_guard lock(owners().mutex);
    for (std::size_t slot = 0; slot < owners().uses.size(); ++slot)
        if (const std::uint64_t id = slots[slot].id; id != 0) ids.push_back(id);
    return ids;
}

Contents present_contents(std::uint64_t id) {
    const std::lock_guard lock(owners().mutex);
    return contents_of(id);
}

namespace {

// One keep() of an id.
struct Keeper {
    std::uint64_t id;
    std::function<void(const Object&)> withdrawn;
    bool is_withdrawn = false;

    Keeper(std::uint64_t of, std::function<void(const Object&)> tell);
    ~Keeper();
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;
};

struct Keepers {
    std::recursive_mutex mutex;
    std::multimap<std::uint64_t, Keeper*> all;
};
Keepers& keepers() {
    static auto& made = *new Keepers;
    return made;
}

Keeper::Keeper(std::uint64_t of, std::function<void(const Object&)> tell) : id(of), withdrawn(std::move(tell)) {
    keepers().all.emplace(id, this);
}

Keeper::~Keeper() {
    const std::lock_guard lock(keepers().mutex);
    std::erase_if(keepers().all, [&](const auto& each) { return each.second == this; });
    if (is_withdrawn && !keepers().all.contains(id) && remove(id)) ++change_count;
}

}  // namespace

void withdraw(std::uint64_t id) {
    {
        const std::lock_guard lock(keepers().mutex);
        const auto [first, last] = keepers().all.equal_range(id);
        std::shared_ptr<const Object> object;
        if (first != last) {
            const std::lock_guard contents_lock(owners().mutex);
            object = contents_of(id).object;
        }
        for (auto each = first; each != last; ++each) {
            each->second->is_withdrawn = true;
            if (object) each->second->withdrawn(*object);
        }
        if (first != last) return;
    }
    if (remove(id)) ++change_count;
}

std::shared_ptr<const void> keep(std::uint64_t id, std::function<void(const Object&)> withdrawn) {
    const std::lock_guard lock(keepers().mutex);
    if (!is_present(id)) return nullptr;
    return std::make_shared<const Keeper>(id, std::move(withdrawn));
}

// ---- snapshots ----

namespace {

// If it is 0, the search for snapshots is skipped.
std::atomic<int> kept_count{0};

}  // namespace

struct SnapshotState {
    SnapshotState(Contents of, std::uint64_t at, std::uint64_t builds, std::uint64_t capture)
        : contents(std::move(of)), version(at), captured_builds(builds), capture(capture) {
        ++kept_count;
    }
    ~SnapshotState() { --kept_count; }
    SnapshotState(const SnapshotState&) = delete;
    SnapshotState& operator=(const SnapshotState&) = delete;

    Contents contents;
    std::uint64_t version, captured_builds;
    std::uint64_t capture;  // that it was taken in; 0: none
};

namespace {

// The number of this thread's capture on the device of the object; 0 if there is none, and if the host runs the nodes.
std::uint64_t capture_of(const Contents& contents) {
    if (!contents.table) return 0;
    const Recording* const recording = current_recording(contents.table->device());
    return recording ? recording->number() : 0;
}

}  // namespace

// Snapshots of one object share one record until the object changes, so a snapshot costs no more than a lookup.
Snapshot::Snapshot(std::uint64_t of) {
    const std::uint64_t capture = capture_of(present_contents(of));
    const std::lock_guard lock(owners().mutex);
    Contents contents = contents_of(of);
    const std::shared_ptr<const Object> object = contents.object;
    if (!object) return;
    const std::uint64_t version = object->version(), builds = object->captured_builds_;
    for (const std::weak_ptr<SnapshotState>& each : object->kept_) {
        kept_ = each.lock();
        if (kept_ && kept_->version == version && kept_->captured_builds == builds && kept_->capture == capture) return;
    }
    std::erase_if(object->kept_, [](const auto& each) { return each.expired(); });
    kept_ = std::make_shared<SnapshotState>(std::move(contents), version, builds, capture);
    object->kept_.push_back(kept_);
}

Contents Snapshot::contents() const {
    const std::lock_guard lock(owners().mutex);
    return kept_->contents;
}

bool Snapshot::is_current() const {
    const std::lock_guard lock(owners().mutex);
    return kept_->contents.object->version() == kept_->version;
}

bool Snapshot::was_built_again() const {
    const std::lock_guard lock(owners().mutex);
    return kept_->contents.object->captured_builds_ != kept_->captured_builds;
}

bool is_kept(std::uint64_t id) {
    if (kept_count == 0) return false;
    const std::lock_guard lock(owners().mutex);
    const std::shared_ptr<const Object> object = contents_of(id).object;
    return object && std::ranges::any_of(object->kept_, [](const auto& each) { return !each.expired(); });
}

void keep_apart_in(Recording* recording, std::uint64_t id) {
    if (recording && !recording->runs_nodes())
        recording->memory().add_preparation([id, own = recording->number()] { keep_apart(id, own); });
    keep_apart(id);
}

// The copy is made without the lock. A snapshot that is taken meanwhile may see the following writes, as any concurrent
// launch may.
void keep_apart(std::uint64_t id, std::uint64_t except) {
    std::vector<std::pair<Contents, std::shared_ptr<SnapshotState>>> all;
    const auto add = [&](const Contents& contents) {
        if (!contents.object) return;
        for (const std::weak_ptr<SnapshotState>& each : contents.object->kept_)
            if (std::shared_ptr<SnapshotState> kept = each.lock()) all.emplace_back(contents, std::move(kept));
    };
    ++change_count;
    if (kept_count == 0) return;
    {
        const std::lock_guard lock(owners().mutex);
        if (id != 0) {
            add(contents_of(id));
        } else {
            for (const Slot& slot : std::span(slots, owners().uses.size()))
                if (slot.id >> 56 == static_cast<std::uint64_t>(ObjectKind::volume)) add(contents_of(slot.id));
        }
    }
    for (const auto& [contents, kept] : all) {
        const std::shared_ptr<const Object>& object = contents.object;
        if (object->version() != kept->version) continue;  // the snapshots are outdated
        const std::uint64_t capture = capture_of(contents);
        if (capture != 0 ? kept->capture != capture : except != 0 && kept->capture == except) continue;
        Contents copy = object->copy();
        const std::lock_guard lock(owners().mutex);
        if (kept->contents.object != object) continue;  // another thread did it first
        kept->version = copy.object->version();
        kept->captured_builds = copy.object->captured_builds_;
        kept->contents = std::move(copy);
        std::erase_if(object->kept_, [&](const auto& each) { return each.lock() == kept; });
    }
}

namespace {

bool is_tree_of_mesh(std::uint64_t id, ObjectKind kind) { return kind == ObjectKind::bvh && (id & kTreeOfMesh) != 0; }

// Removes the flag of tangents: they exist if the mesh does, perhaps as zeros.
std::uint64_t without_tangents(std::uint64_t id, ObjectKind kind) {
    return kind == ObjectKind::mesh ? id & ~kTangentsOfMesh : id;
}

// The fields before the tree have the same offsets in meshes of both precisions.
const void* tree_of(const void* mesh) {
    const void* const bvh = static_cast<const devlib::MeshDescriptor<float>*>(mesh)->bvh;
    return bvh ? bvh : kEmpty;
}

}  // namespace

bool is_object(std::uint64_t id, ObjectKind kind) {
    if (is_tree_of_mesh(id, kind)) return is_object(id & ~kTreeOfMesh, ObjectKind::mesh);
    return id >> 56 == static_cast<std::uint64_t>(kind) && slot_of(id) < kSlots && slots[slot_of(id)].id == id;
}

const Device* table_device(std::uint64_t id) {
    id &= ~(kTreeOfMesh | kTangentsOfMesh);
    if (!is_present(id)) return nullptr;
    const Device* const found = slots[slot_of(id)].table_device;
    return is_present(id) ? found : nullptr;
}

// The id is read again: meanwhile the slot may have been reused by another object, with another id.
const void* find_descriptor(std::uint64_t id, ObjectKind kind) {
    if (is_tree_of_mesh(id, kind)) return tree_of(find_descriptor(id & ~kTreeOfMesh, ObjectKind::mesh));
    if (!is_object(id, kind)) return empty(kind);
    const void* found = slots[slot_of(id)].descriptor;
    return is_object(id, kind) && found != kEmpty ? found : empty(kind);
}

std::uint64_t find_object(std::uint64_t id, std::int32_t kind) {
    const auto of = static_cast<ObjectKind>(kind);
    const bool finds_previous = finding_count.load(std::memory_order_relaxed) != 0 && thread_snapshot;
    return reinterpret_cast<std::uintptr_t>(finds_previous ? thread_snapshot->find(id, of) : find_descriptor(id, of));
}

std::int32_t has_object(std::uint64_t id, std::int32_t kind) {
    const auto of = static_cast<ObjectKind>(kind);
    const bool finds_previous = finding_count.load(std::memory_order_relaxed) != 0 && thread_snapshot;
    if (of == ObjectKind::texture && id == 0) return 1;  // no texture: its samples are zeros
    id = without_tangents(id, of);
    return finds_previous ? thread_snapshot->has(id, of) : is_object(id, of) && table_device(id) == nullptr;
}

// ---- previous objects ----

void PreviousObjects::add(std::uint64_t id, const void* descriptor, std::shared_ptr<const void> holder,
                          const DeviceTable* table) {
    id &= ~kTreeOfMesh;
    const auto at = std::ranges::lower_bound(entries_, id, {}, &Entry::id);
    entries_.insert(at, {id, descriptor, std::move(holder), table});
}

const PreviousObjects::Entry* PreviousObjects::entry(std::uint64_t id, ObjectKind kind) const {
    if (without_tangents(id, kind) >> 56 != static_cast<std::uint64_t>(kind)) return nullptr;
    const auto found = std::ranges::lower_bound(entries_, id, {}, &Entry::id);
    if (found != entries_.end() && found->id == id && !found->table) return &*found;
    if (id == without_tangents(id, kind)) has_missed_ = true;
    return nullptr;
}

void PreviousObjects::follow(std::uint64_t id, std::vector<ArrayView> arrays, std::shared_ptr<const Snapshot> kept,
                             std::uint64_t as) {
    followed_.push_back({id, as ? as : id, std::move(arrays), std::move(kept)});
}

PreviousObjectsPtr PreviousObjects::for_launch() const {
    auto made = std::make_shared<PreviousObjects>(are_all_);
    made->entries_ = entries_;
    for (const Followed& each : followed_) {
        const bool has_kept = each.kept && !each.kept->is_empty();
        Contents contents = has_kept ? each.kept->contents() : present_contents(each.id);
        made->found_.push_back(contents.object);
        if (!contents.object) {
            made->add(each.as, nullptr, nullptr);
            continue;
        }
        auto held = std::make_shared<std::pair<std::shared_ptr<const void>, Contents>>(nullptr, contents);
        if (!each.arrays.empty()) held->first = contents.object->descriptor_with(each.arrays);
        const void* const descriptor = held->first ? held->first.get() : contents.descriptor;
        made->add(each.as, descriptor, std::move(held), contents.table);
    }
    return made;
}

bool PreviousObjects::have_moved(const PreviousObjects& before) const {
    for (std::size_t i = 0; i < followed_.size(); ++i)
        if (!followed_[i].kept && present_contents(followed_[i].id).object != before.found_[i]) return true;
    return false;
}

void PreviousObjects::add_launch(std::function<bool()> missed) const {
    const std::lock_guard lock(launches_mutex_);
    launches_.push_back(std::move(missed));
}

bool PreviousObjects::has_missed() const {
    const std::lock_guard lock(launches_mutex_);
    for (const auto& missed : std::exchange(launches_, {}))
        if (missed()) has_missed_ = true;
    return has_missed_;
}

const void* PreviousObjects::find(std::uint64_t id, ObjectKind kind) const {
    if (is_tree_of_mesh(id, kind)) return tree_of(find(id & ~kTreeOfMesh, ObjectKind::mesh));
    const Entry* const found = entry(id, kind);
    if (!found && !are_all_) return find_descriptor(id, kind);
    return found && found->descriptor ? found->descriptor : empty(kind);
}

bool PreviousObjects::has(std::uint64_t id, ObjectKind kind) const {
    if (is_tree_of_mesh(id, kind)) return has(id & ~kTreeOfMesh, ObjectKind::mesh);
    const Entry* const found = entry(id, kind);
    if (!found && !are_all_) return is_object(id, kind);
    return found && found->descriptor;
}

SnapshotScope::SnapshotScope(PreviousObjectsPtr objects) : objects_(std::move(objects)), outer_(snapshot_scope) {
    ++finding_count;
    snapshot_scope = &objects_;
}

SnapshotScope::~SnapshotScope() {
    snapshot_scope = outer_;
    --finding_count;
}

const PreviousObjectsPtr& SnapshotScope::current() {
    static const PreviousObjectsPtr none;
    return snapshot_scope ? *snapshot_scope : none;
}

ThreadSnapshotScope::ThreadSnapshotScope(const PreviousObjects& objects)
    : outer_(std::exchange(thread_snapshot, &objects)) {
    ++finding_count;
}

ThreadSnapshotScope::~ThreadSnapshotScope() {
    thread_snapshot = outer_;
    --finding_count;
}

// A reader takes its place before any lookup, and a writer reads the places after its withdrawal: one of the two sees
// the other. (All of these are sequentially consistent.)
ReadLease::ReadLease() {
    std::size_t reader = std::hash<std::thread::id>()(std::this_thread::get_id()) % kReaders;
    for (std::uint64_t none = 0; !readers[reader].began.compare_exchange_strong(none, now.load()); none = 0)
        reader = (reader + 1) % kReaders;
    reader_ = reader;
}

ReadLease::~ReadLease() {
    if (reader_ == kMoved) return;
    readers[reader_].began = 0;
    if (any_retired.load(std::memory_order_relaxed)) take_unread();
}

}  // namespace weft::runtime::spatial
