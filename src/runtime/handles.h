// Ids: names of objects in kernels (types/objects.h).
//
// An id leads to the object's descriptor through a table and is no address. An id of a removed object, or of an object
// of another kind, leads to an empty descriptor. Generations tell objects apart that used the same slot.
//
// Descriptors that kernels may still be reading are not freed until every launch has ended that began before their
// removal.
//
// Kernels that run on the host share one table. A device whose kernels cannot read it has a table of its own
// (DeviceTable), in its memory. An object belongs to one table: kernels of others find an empty descriptor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "types/objects.h"
#include "weft/array_view.h"

namespace weft::runtime {
class Device;
class Recording;
}  // namespace weft::runtime

namespace weft::runtime::spatial {

class Object;
struct SnapshotState;

// The ids of a device's objects in its memory.
class DeviceTable {
public:
    virtual Device& device() const = 0;
    // A new id; every launch from now on finds it.
    virtual void set(std::size_t slot, std::uint64_t id, const void* descriptor) = 0;
    // Another descriptor for it, in the order of the current stream.
    virtual void change(std::size_t slot, const void* descriptor) = 0;
    // Removes the id when the work is done that may look it up, and calls `done` when the descriptor is in use by none.
    virtual void remove(std::size_t slot, std::function<void()> done) = 0;

protected:
    ~DeviceTable() = default;
};

// The present meaning of an id.
struct Contents {
    const void* descriptor = nullptr;  // in memory that the kernels of its table read
    std::shared_ptr<const Object> object;
    DeviceTable* table = nullptr;  // null: that of kernels which run on the host
};

// Owns the descriptor and everything that it leads to.
class Object {
public:
    virtual ~Object() = default;
    // The addresses of the user's arrays and of their gradients.
    virtual std::vector<const void*> addresses() const { return {}; }
    // Changes when the memory is written outside Weft's control.
    virtual std::uint64_t version() const { return 0; }
    // Its descriptor with other arrays in the first fields. Null for objects that have no arrays of the user's.
    virtual std::shared_ptr<const void> descriptor_with(std::span<const ArrayView>) const { return nullptr; }
    // A copy with memory of its own. Needed for kinds of objects that launches, or the work of graphs, write to.
    virtual Contents copy() const { return {}; }
    // To be called when a capture builds it again and its snapshots get no copy.
    void note_captured_build() const { ++captured_builds_; }

private:
    friend class Snapshot;
    friend bool is_kept(std::uint64_t);
    friend void keep_apart(std::uint64_t, std::uint64_t);
    // The states that its snapshots share: one for those outside of captures, and one for each capture.
    mutable std::vector<std::weak_ptr<SnapshotState>> kept_;
    mutable std::atomic<std::uint64_t> captured_builds_{0};
};

// Gives an id to an object. Throws UsageError (category memory) if there are more than a million objects.
std::uint64_t publish(ObjectKind kind, Contents contents);
// Gives the id a new meaning. Running launches may still use the former contents.
void replace(std::uint64_t id, Contents contents);
// Removes the id's meaning as soon as no keep() holds it.
void withdraw(std::uint64_t id);
// While the result lives, the id keeps its meaning even after withdraw(): for graphs. `withdrawn` is called with the
// object at the withdrawal, before the owner releases the arrays that it leads to. Null if the id has no meaning.
std::shared_ptr<const void> keep(std::uint64_t id, std::function<void(const Object&)> withdrawn);

// The present state of an object, which a tape keeps for its backward pass; empty if the id has no meaning.
//
// Code that changes an object must first ask is_kept(): if so, it calls keep_apart(), or makes a new object and calls
// replace().
class Snapshot {
public:
    Snapshot() = default;
    explicit Snapshot(std::uint64_t of);

    bool is_empty() const { return !kept_; }
    // The contents at the time of the snapshot.
    Contents contents() const;
    // False if anything but its own kernels and functions modified the object since.
    bool is_current() const;
    // Whether a capture has built the object again since.
    bool was_built_again() const;

private:
    std::shared_ptr<SnapshotState> kept_;
};
// Whether snapshots of the id's present contents exist.
bool is_kept(std::uint64_t id);
// Gives snapshots of the id's contents their own copy, before these are written in place. 0: of every volume. In a
// capture on the object's device this concerns its own snapshots, and each launch of the graph makes the copy anew.
// Those of the capture `except` are left out.
void keep_apart(std::uint64_t id, std::uint64_t except = 0);
// The same for a change that `recording` captures, if it is not null: each launch of its graph gives the snapshots of
// others their copy again. A recording whose nodes the host runs does so by its nodes.
void keep_apart_in(Recording* recording, std::uint64_t id);

// Counts replacements, withdrawals and changes in place of all objects.
std::uint64_t changes();
void count_change();
// The ids of all present objects.
std::vector<std::uint64_t> all_ids();
// Empty if the id has no meaning.
Contents present_contents(std::uint64_t id);

// For kernels that run on the host. Never null.
const void* find_descriptor(std::uint64_t id, ObjectKind kind);
// Whether the id names an object of this kind, on any device.
bool is_object(std::uint64_t id, ObjectKind kind);
// The device in whose table the object is; null for the table of the host, and if there is no such object.
const Device* table_device(std::uint64_t id);
// For compiled kernels: find_descriptor() on plain numbers, or the lookup that ThreadSnapshotScope has set.
std::uint64_t find_object(std::uint64_t id, std::int32_t kind);
// Whether the id names an object of this kind. For checks of debug builds.
std::int32_t has_object(std::uint64_t id, std::int32_t kind);

// While it lives, no descriptor is freed that an id leads to during its life: held by a launch that looks up objects.
class ReadLease {
public:
    ReadLease();
    ReadLease(ReadLease&& other) noexcept : reader_(std::exchange(other.reader_, kMoved)) {}
    ~ReadLease();
    ReadLease& operator=(ReadLease&&) = delete;

private:
    static constexpr std::size_t kMoved = ~std::size_t{0};
    std::size_t reader_;
};

// Other meanings of ids for some launches: the backward pass of a launch finds the objects that the launch found.
class PreviousObjects {
public:
    // `are_all`: ids that were not added have no meaning; else they have their present one.
    explicit PreviousObjects(bool are_all = true) : are_all_(are_all) {}

    struct Entry {
        std::uint64_t id;
        const void* descriptor;  // null: the id has no meaning
        std::shared_ptr<const void> holder;
        const DeviceTable* table;
    };

    // `holder` keeps alive everything that the descriptor leads to; null: the id has no meaning.
    void add(std::uint64_t id, const void* descriptor, std::shared_ptr<const void> holder,
             const DeviceTable* table = nullptr);
    // Never null.
    const void* find(std::uint64_t id, ObjectKind kind) const;
    // False if the id has no meaning.
    bool has(std::uint64_t id, ObjectKind kind) const;
    // Whether a lookup of an id that was not added may have meant an object.
    bool has_missed() const;

    // For an adjoint in a graph, which finds the id as each launch of the graph does: the contents that `kept` has by
    // then, or without it the present ones. A mesh has these arrays. `as`: the id by which the adjoint asks for it, if
    // it is another one.
    void follow(std::uint64_t id, std::vector<ArrayView> arrays, std::shared_ptr<const Snapshot> kept,
                std::uint64_t as = 0);
    // Whether they were made for a launch in a graph.
    bool are_of_graph() const { return are_of_graph_; }
    void set_of_graph() { are_of_graph_ = true; }
    // The meanings for a launch of the graph now.
    std::shared_ptr<const PreviousObjects> for_launch() const;
    // Whether ids that are followed have other contents than `before`, which for_launch() returned.
    bool have_moved(const PreviousObjects& before) const;

    // For launches on devices with a table, which look ids up by themselves.
    const std::vector<Entry>& entries() const { return entries_; }
    bool are_all() const { return are_all_; }
    // `missed` says whether a launch on such a device did so; called when that launch is done.
    void add_launch(std::function<bool()> missed) const;

private:
    // Null if the id was not added, which is noted.
    const Entry* entry(std::uint64_t id, ObjectKind kind) const;

    struct Followed {
        std::uint64_t id, as;
        std::vector<ArrayView> arrays;
        std::shared_ptr<const Snapshot> kept;
    };

    std::vector<Entry> entries_;  // sorted by id
    std::vector<Followed> followed_;
    std::vector<std::shared_ptr<const Object>> found_;  // by for_launch(), for each that is followed
    bool are_all_, are_of_graph_ = false;
    mutable std::atomic<bool> has_missed_{false};
    mutable std::mutex launches_mutex_;
    mutable std::vector<std::function<bool()>> launches_;
};
using PreviousObjectsPtr = std::shared_ptr<const PreviousObjects>;

// While it lives, launches of this thread use these meanings of ids; null: the present ones.
class SnapshotScope {
public:
    explicit SnapshotScope(PreviousObjectsPtr objects);
    ~SnapshotScope();
    SnapshotScope(const SnapshotScope&) = delete;
    SnapshotScope& operator=(const SnapshotScope&) = delete;

    // Null if none is set.
    static const PreviousObjectsPtr& current();

private:
    PreviousObjectsPtr objects_;
    const PreviousObjectsPtr* outer_;
};

// While it lives, kernels that run on this thread use these meanings. A launch sets it on each of its threads.
class ThreadSnapshotScope {
public:
    explicit ThreadSnapshotScope(const PreviousObjects& objects);
    ~ThreadSnapshotScope();
    ThreadSnapshotScope(const ThreadSnapshotScope&) = delete;
    ThreadSnapshotScope& operator=(const ThreadSnapshotScope&) = delete;

private:
    const PreviousObjects* outer_;
};

}  // namespace weft::runtime::spatial
