// Ids: how kernels name objects (types/objects.h).
//
// An id finds the object's descriptor through a table, and is no address: an id of an object that is gone, or of
// another kind, finds an empty descriptor. Generations tell objects apart that had the same slot one after the other.
//
// What kernels may still be reading is not freed: it goes when every launch has ended that began before.
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
struct Kept;

// What an id stands for at present.
struct Contents {
    const void* descriptor = nullptr;
    std::shared_ptr<const Object> object;
};

// The descriptor and all that it leads to lie in one.
class Object {
public:
    virtual ~Object() = default;
    // Another number when somebody has written to it of whom nobody here is told.
    virtual std::uint64_t version() const { return 0; }
    // Its descriptor with other arrays in the first fields. Null for objects that have no arrays of the user's.
    virtual std::shared_ptr<const void> descriptor_with(std::span<const ArrayView>) const { return nullptr; }
    // One with the same contents in memory of its own, where launches write to objects of this kind.
    virtual Contents copy() const { return {}; }

private:
    friend class Snapshot;
    friend bool is_kept(std::uint64_t);
    friend void keep_apart(std::uint64_t);
    mutable std::weak_ptr<Kept> kept_;  // what snapshots of it share
};

// Gives an id to an object. Throws UsageError (category memory) where there are more than a million objects.
std::uint64_t publish(ObjectKind kind, Contents contents);
// From now on the id finds these. Launches that run may still use the former ones.
void replace(std::uint64_t id, Contents contents);
// From now on the id finds nothing, or as soon as nobody keeps it any more.
void withdraw(std::uint64_t id);
// While the result lives, the id finds its object, though that be withdrawn: for graphs. The descriptor goes to
// `withdrawn` when it is, before its owner lets go of the arrays that it leads to. Null where the id finds nothing.
std::shared_ptr<const void> keep(std::uint64_t id, std::function<void(const void* descriptor)> withdrawn);

// An object as it is now: a tape keeps it for its backward pass. Nothing where the id names none.
//
// Who changes an object asks whether it is kept: then he makes another one and calls replace(), or keep_apart().
class Snapshot {
public:
    Snapshot() = default;
    explicit Snapshot(std::uint64_t of);

    bool is_empty() const { return !kept_; }
    // What the object was then.
    Contents contents() const;
    // False where it is what it was no more: somebody has written to its memory past kernels and functions of its own.
    bool is_current() const;

private:
    std::shared_ptr<Kept> kept_;
};
// Whether there are snapshots of what the id finds.
bool is_kept(std::uint64_t id);
// Snapshots of what the id finds get a copy of it: somebody is about to write to it in place. 0: of every volume.
void keep_apart(std::uint64_t id);

// Counts what has happened to objects: that one was replaced, withdrawn or changed in place.
std::uint64_t changes();
void count_change();
// The ids of all objects that there are.
std::vector<std::uint64_t> all_ids();

// Never null.
const void* find_descriptor(std::uint64_t id, ObjectKind kind);
bool is_object(std::uint64_t id, ObjectKind kind);
// For compiled kernels: find_descriptor() with numbers, or what FindingHere says.
std::uint64_t find_object(std::uint64_t id, std::int32_t kind);
// Whether that is an object's. For checks of debug builds.
std::int32_t has_object(std::uint64_t id, std::int32_t kind);

// While it lives, nothing is freed that an id finds when it begins or later: a launch that looks up objects.
class Reading {
public:
    Reading();
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

private:
    std::size_t place_;
};

// What ids stand for to some launches, in place of what they stand for at present: the backward pass of a launch finds
// what the launch found.
class FormerObjects {
public:
    // `are_all`: what is not among them is not there; else other ids stand for what they do at present.
    explicit FormerObjects(bool are_all = true) : are_all_(are_all) {}

    // `holder` keeps alive what the descriptor leads to; null: the id finds nothing.
    void add(std::uint64_t id, const void* descriptor, std::shared_ptr<const void> holder);
    // Never null.
    const void* find(std::uint64_t id, ObjectKind kind) const;
    // False where the id found nothing.
    bool has(std::uint64_t id, ObjectKind kind) const;
    // Whether somebody has asked for an id that is not among them, and may be that of an object.
    bool has_missed() const { return has_missed_; }

private:
    struct Entry {
        std::uint64_t id;
        const void* descriptor;
        std::shared_ptr<const void> holder;
    };
    // Null where there is none, which is noted.
    const Entry* entry(std::uint64_t id, ObjectKind kind) const;

    std::vector<Entry> entries_;  // by id
    bool are_all_;
    mutable std::atomic<bool> has_missed_{false};
};
using FormerObjectsPtr = std::shared_ptr<const FormerObjects>;

// While it lives, launches that this thread makes find these; null: what there is at present.
class Finding {
public:
    explicit Finding(FormerObjectsPtr objects);
    ~Finding();
    Finding(const Finding&) = delete;
    Finding& operator=(const Finding&) = delete;

    // Null where there is none.
    static const FormerObjectsPtr& current();

private:
    FormerObjectsPtr objects_;
    const FormerObjectsPtr* outer_;
};

// While it lives, kernels that run on this thread find these. A launch says so on each thread that takes part in it.
class FindingHere {
public:
    explicit FindingHere(const FormerObjects& objects);
    ~FindingHere();
    FindingHere(const FindingHere&) = delete;
    FindingHere& operator=(const FindingHere&) = delete;

private:
    const FormerObjects* outer_;
};

}  // namespace weft::runtime::spatial
