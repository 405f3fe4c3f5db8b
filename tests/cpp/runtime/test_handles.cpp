// Ids and snapshots: kept and replaced objects, and the time at which memory is freed.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/handles.h"

namespace weft::runtime::spatial {
namespace {

struct Number : Object {
    explicit Number(int of) : value(of) {}
    std::uint64_t version() const override { return foreign_writes; }
    Contents copy() const override {
        auto made = std::make_shared<Number>(value);
        return {&made->value, made};
    }

    int value;
    std::uint64_t foreign_writes = 0;
};

int at(const void* descriptor) { return *static_cast<const int*>(descriptor); }
int found(std::uint64_t id) { return at(reinterpret_cast<const void*>(find_object(id, id >> 56))); }

std::uint64_t publish_number(const std::shared_ptr<Number>& number) {
    return publish(ObjectKind::volume, {&number->value, number});
}

TEST(SpatialHandles, snapshots_keep_what_was_replaced_and_let_it_go) {
    auto first = std::make_shared<Number>(1);
    const std::weak_ptr<Number> watched = first;
    const std::uint64_t id = publish_number(first);
    EXPECT_FALSE(is_kept(id));
    auto snapshot = std::make_unique<Snapshot>(id);
    EXPECT_TRUE(is_kept(id));
    const Snapshot other(id);

    auto second = std::make_shared<Number>(2);
    replace(id, {&second->value, second});
    EXPECT_FALSE(is_kept(id));
    first.reset();
    EXPECT_EQ(at(snapshot->contents().descriptor), 1);
    EXPECT_EQ(at(other.contents().descriptor), 1);
    EXPECT_EQ(found(id), 2);
    withdraw(id);
    EXPECT_EQ(found(id), 0);
    EXPECT_TRUE(Snapshot(id).is_empty());
    snapshot.reset();
    EXPECT_FALSE(watched.expired());
}

// 0 is the id of a free slot: to withdraw it must not free a slot a second time, or two objects would share one.
TEST(SpatialHandles, ids_without_an_object_are_withdrawn_without_effect) {
    const std::uint64_t freed = publish_number(std::make_shared<Number>(0));
    withdraw(freed);
    for (const std::uint64_t none : {std::uint64_t{0}, freed, std::uint64_t{0xffffffff}, UINT64_MAX}) withdraw(none);
    auto first = std::make_shared<Number>(1), second = std::make_shared<Number>(2);
    const std::uint64_t one = publish_number(first), two = publish_number(second);
    EXPECT_EQ(found(one), 1);
    EXPECT_EQ(found(two), 2);
    withdraw(one);
    withdraw(two);
}

TEST(SpatialHandles, memory_goes_with_the_last_snapshot) {
    auto number = std::make_shared<Number>(1);
    const std::weak_ptr<Number> watched = number;
    const std::uint64_t id = publish_number(number);
    {
        const Snapshot snapshot(id);
        withdraw(id);
        number.reset();
        EXPECT_FALSE(watched.expired());
    }
    EXPECT_TRUE(watched.expired());
}

TEST(SpatialHandles, snapshots_are_parted_from_what_is_written_in_place) {
    auto number = std::make_shared<Number>(1), unseen = std::make_shared<Number>(5);
    const std::uint64_t id = publish_number(number), other = publish_number(unseen);
    const Snapshot before(id), beside(other);
    for (const std::uint64_t which : {id, std::uint64_t{0}}) {
        const std::uint64_t changes_before = changes();
        keep_apart(which);
        EXPECT_NE(changes(), changes_before);
        ++number->value;
    }
    EXPECT_EQ(at(before.contents().descriptor), 1);
    EXPECT_TRUE(before.is_current());
    unseen->value = 6;
    EXPECT_EQ(at(beside.contents().descriptor), 5);  // which one was written, the second call did not know
    const Snapshot after(id);
    EXPECT_EQ(at(after.contents().descriptor), 3);
    number->foreign_writes = 1;
    EXPECT_FALSE(after.is_current());
    EXPECT_TRUE(Snapshot(id).is_current());
    withdraw(id);
    withdraw(other);
}

TEST(SpatialHandles, a_launch_finds_previous_objects_and_nothing_else) {
    auto number = std::make_shared<Number>(1), previous_number = std::make_shared<Number>(7);
    const std::uint64_t id = publish_number(number), unknown = publish_number(number);
    auto previous = std::make_shared<PreviousObjects>();
    previous->add(id, &previous_number->value, previous_number);
    previous->add(id + (std::uint64_t{1} << 32), nullptr, nullptr);
    {
        const SnapshotScope finding(previous);
        EXPECT_EQ(SnapshotScope::current(), previous);
        EXPECT_EQ(found(id), 1);  // it is for launches, and none runs here
        std::thread([&] {
            EXPECT_EQ(SnapshotScope::current(), nullptr);
            const ThreadSnapshotScope here(*previous);
            EXPECT_EQ(found(id), 7);
            EXPECT_EQ(at(reinterpret_cast<const void*>(find_object(id, int(ObjectKind::mesh)))), 0);
            EXPECT_EQ(found(id + (std::uint64_t{1} << 32)), 0);
            EXPECT_FALSE(previous->has_missed());
            EXPECT_EQ(found(unknown), 0);
            EXPECT_TRUE(previous->has_missed());
        }).join();
        EXPECT_EQ(found(unknown), 1);
    }
    EXPECT_EQ(SnapshotScope::current(), nullptr);
    withdraw(id);
    withdraw(unknown);
}

}  // namespace
}  // namespace weft::runtime::spatial
