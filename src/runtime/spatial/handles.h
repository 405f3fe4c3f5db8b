// Ids: how kernels name objects (types/objects.h).
//
// An id finds the object's descriptor through a table, and is no address: an id of an object that is gone, or of
// another kind, finds an empty descriptor. Generations tell objects apart that had the same slot one after the other.
//
// What kernels may still be reading is not freed: it goes when every launch has ended that began before.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "types/objects.h"

namespace weft::runtime::spatial {

// The descriptor and all that it leads to lie in one.
class Object {
public:
    virtual ~Object() = default;
    // Another number when launches see other things in it than before, as after a refit in place.
    virtual std::uint64_t version() const { return 0; }
};

// What an id stands for at present.
struct Contents {
    const void* descriptor = nullptr;
    std::shared_ptr<const Object> object;
};

// Gives an id to an object. Throws UsageError (category memory) where there are more than a million objects.
std::uint64_t publish(ObjectKind kind, Contents contents);
// From now on the id finds these. Launches that run may still use the former ones.
void replace(std::uint64_t id, Contents contents);
// From now on the id finds nothing.
void withdraw(std::uint64_t id);

// An object as it is now, under an id of its own: a tape keeps it for the way back. Nothing where the id names none.
class Snapshot {
public:
    explicit Snapshot(std::uint64_t of);
    ~Snapshot();
    Snapshot(Snapshot&& other) noexcept
        : id_(std::exchange(other.id_, 0)),
          object_(std::move(other.object_)),
          version_(other.version_),
          writes_(other.writes_) {}
    Snapshot& operator=(Snapshot&&) = delete;

    std::uint64_t id() const { return id_; }  // 0: nothing
    bool is_current() const;

private:
    std::uint64_t id_ = 0;
    std::shared_ptr<const Object> object_;
    std::uint64_t version_ = 0, writes_ = 0;
};
// A launch begins that writes into volumes. Which ones is not known: all count as changed.
void count_write();
// Counts what has happened to objects: that one was replaced or withdrawn.
std::uint64_t changes();

// Never null.
const void* find_descriptor(std::uint64_t id, ObjectKind kind);
bool is_object(std::uint64_t id, ObjectKind kind);
// For compiled kernels: find_descriptor() with numbers.
std::uint64_t find_object(std::uint64_t id, std::int32_t kind);

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

}  // namespace weft::runtime::spatial
