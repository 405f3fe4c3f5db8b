// Ids: names of objects in kernels (types/objects.h).
//
// An id leads to the object's descriptor through a table and is no address. An id of a removed object, or of an object
// of another kind, leads to an empty descriptor. Generations tell objects apart that used the same slot.
//
// Descriptors that kernels may still be reading are not freed until every launch has ended that began before their
// removal.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "types/objects.h"
#include "weft/array_view.h"

namespace weft::runtime::spatial {

class Object;
struct SnapshotState;

// The present meaning of an id.
struct Contents {
    const void* descriptor = nullptr;
    std::shared_ptr<const Object> object;
};

// Owns the descriptor and everything that it leads to.
class Object {
public:
    virtual ~Object() = default;
    // Changes when the memory is written outside Weft's control.
    virtual std::uint64_t version() const { return 0; }
    // Its descriptor with other arrays in the first fields. Null for objects that have no arrays of the user's.
    virtual std::shared_ptr<const void> descriptor_with(std::span<const ArrayView>) const { return nullptr; }
    // A copy with memory of its own. Needed for kinds of objects that launches write to.
    virtual Contents copy() const { return {}; }

private:
    friend class Snapshot;
    friend bool is_kept(std::uint64_t);
    friend void keep_apart(std::uint64_t);
    mutable std::weak_ptr<SnapshotState> kept_;  // shared by its snapshots
};

// Gives an id to an object. Throws UsageError (category memory) if there are more than a million objects.
std::uint64_t publish(ObjectKind kind, Contents contents);
// Gives the id a new meaning. Running launches may still use the former contents.
void replace(std::uint64_t id, Contents contents);
// Removes the id's meaning as soon as no keep() holds it.
void withdraw(std::uint64_t id);
// While the result lives, the id keeps its meaning even after withdraw(): for graphs. `withdrawn` is called with the
// descriptor at the withdrawal, before the owner releases the arrays that it leads to. Null if the id has no meaning.
std::shared_ptr<const void> keep(std::uint64_t id, std::function<void(const void* descriptor)> withdrawn);

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

private:
    std::shared_ptr<SnapshotState> kept_;
};
// Whether snapshots of the id's present contents exist.
bool is_kept(std::uint64_t id);
// Gives snapshots of the id's contents their own copy, before these are written in place. 0: of every volume.
void keep_apart(std::uint64_t id);

// Counts replacements, withdrawals and changes in place of all objects.
std::uint64_t changes();
void count_change();
// The ids of all present objects.
std::vector<std::uint64_t> all_ids();

// Never null.
const void* find_descriptor(std::uint64_t id, ObjectKind kind);
bool is_object(std::uint64_t id, ObjectKind kind);
// For compiled kernels: find_descriptor() on plain numbers, or the lookup that ThreadSnapshotScope has set.
std::uint64_t find_object(std::uint64_t id, std::int32_t kind);
// Whether the id names an object of this kind. For checks of debug builds.
std::int32_t has_object(std::uint64_t id, std::int32_t kind);

// While it lives, no descriptor is freed that an id leads to during its life: held by a launch that looks up objects.
class ReadLease {
public:
    ReadLease();
    ReadLease(ReadLease&& other) noexcept : place_(std::exchange(other.place_, kMoved)) {}
    ~ReadLease();
    ReadLease& operator=(ReadLease&&) = delete;

private:
    static constexpr std::size_t kMoved = ~std::size_t{0};
    std::size_t place_;
};

// Other meanings of ids for some launches: the backward pass of a launch finds the objects that the launch found.
class PreviousObjects {
public:
    // `are_all`: ids that were not added have no meaning; else they have their present one.
    explicit PreviousObjects(bool are_all = true) : are_all_(are_all) {}

    // `holder` keeps alive everything that the descriptor leads to; null: the id has no meaning.
    void add(std::uint64_t id, const void* descriptor, std::shared_ptr<const void> holder);
    // Never null.
    const void* find(std::uint64_t id, ObjectKind kind) const;
    // False if the id has no meaning.
    bool has(std::uint64_t id, ObjectKind kind) const;
    // Whether a lookup of an id that was not added may have meant an object.
    bool has_missed() const { return has_missed_; }

private:
    struct Entry {
        std::uint64_t id;
        const void* descriptor;
        std::shared_ptr<const void> holder;
    };
    // Null if the id was not added, which is noted.
    const Entry* entry(std::uint64_t id, ObjectKind kind) const;

    std::vector<Entry> entries_;  // sorted by id
    bool are_all_;
    mutable std::atomic<bool> has_missed_{false};
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
