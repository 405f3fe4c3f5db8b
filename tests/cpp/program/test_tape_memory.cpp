// The copies that a tape keeps of memory that its entries read and write, against snapshots of everything.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "program/tape/tape_memory.h"
#include "support/error.h"

namespace weft::program {
namespace {

constexpr int kBytes = 48;

// Views of two memories, some of them overlapping, with steps of either sign.
class Program {
public:
    explicit Program(std::mt19937& random) {
        for (int memory = 0; memory < 2; ++memory)
            bases_.push_back(
                runtime::zeros(Type::scalar(Scalar::u8), std::vector<std::int64_t>{kBytes}, runtime::device("cpu")));
        for (int i = 0; i < 10; ++i) {
            const int step =
                std::uniform_int_distribution(0, 1)(random) ? 1 : std::uniform_int_distribution(2, 4)(random);
            const int count = std::uniform_int_distribution(0, 6)(random);
            const int start = std::uniform_int_distribution(0, kBytes - 1 - 6 * step)(random);
            runtime::Array view = runtime::slice(base(i % 2), 0, start, count, step);
            if (i % 3 == 0 && count > 0) view = runtime::slice(view, 0, count - 1, count, -1);
            arrays.push_back({.array = view});
        }
    }
    const runtime::Array& base(int memory) const { return bases_[static_cast<std::size_t>(memory)]; }

    std::vector<Variable> arrays;

private:
    std::vector<runtime::Array> bases_;
};

std::vector<int> numbers(const runtime::Array& array) {
    std::vector<int> found;
    for (std::int64_t i = 0; i < array.size(); ++i)
        found.push_back(*(static_cast<const std::uint8_t*>(array.view.data) + i * array.view.strides[0]));
    return found;
}

void set_numbers(const runtime::Array& array, std::mt19937& random) {
    for (std::int64_t i = 0; i < array.size(); ++i)
        *(static_cast<std::uint8_t*>(array.view.data) + i * array.view.strides[0]) =
            static_cast<std::uint8_t>(std::uniform_int_distribution(0, 255)(random));
    if (array.buffer) ++array.buffer->version;
}

struct Read {
    SavedPrimalPtr primal;
    std::vector<int> then;
};

// One entry: some arrays that it reads, some that it writes, and some that it leaves for its adjoint.
std::vector<Read> record(TapeMemory& memory, Program& program, std::mt19937& random, bool fails) {
    const auto some = [&] {
        std::vector<Variable*> found;
        for (Variable& one : program.arrays)
            if (std::uniform_int_distribution(0, 3)(random) == 0) found.push_back(&one);
        return found;
    };
    const std::vector<Variable*> reads = some(), writes = some(), leaves = some();
    memory.begin_entry();
    std::vector<SavedPrimalPtr> primals;
    std::vector<Read> found;
    for (const Variable* one : reads) primals.push_back(memory.save(*one));
    if (memory.may_overlap()) {
        std::vector<SavedPrimalPtr*> all;
        for (SavedPrimalPtr& primal : primals) all.push_back(&primal);
        memory.join_overlapping(all);
    }
    for (const SavedPrimalPtr& primal : primals) found.push_back({primal, numbers(primal->of->array)});
    for (const Variable* one : writes) memory.write(*one, /*counts=*/true);
    std::vector<SavedPrimalPtr> after;
    for (const Variable* one : leaves) after.push_back(memory.save(*one));
    if (fails) {
        memory.forget_entry();
        return {};
    }
    for (const Variable* one : writes) set_numbers(one->array, random);
    for (const SavedPrimalPtr& primal : after) found.push_back({primal, numbers(primal->of->array)});
    return found;
}

TEST(TapeMemory, gives_every_entry_what_it_saw) {
    std::mt19937 random(7);
    int copied = 0, shared = 0;
    for (int run = 0; run < 300; ++run) {
        Program program(random);
        TapeMemory memory;
        std::vector<Read> reads;
        for (int entry = 0; entry < 12; ++entry) {
            const bool fails = std::uniform_int_distribution(0, 9)(random) == 0;
            for (Read& read : record(memory, program, random, fails)) reads.push_back(std::move(read));
        }
        memory.check_versions();
        for (const Read& read : reads) {
            ASSERT_EQ(numbers(read.primal->contents()), read.then) << "run " << run;
            copied += read.primal->copy != nullptr;
            shared += read.primal.use_count() > 2;
        }
    }
    EXPECT_GT(copied, 1000);
    EXPECT_GT(shared, 100);
}

// Arrays of one entry that overlap do so in the copies: the kernel reads through one what it stores through another.
TEST(TapeMemory, keeps_what_overlaps_as_one) {
    const runtime::Array base =
        runtime::zeros(Type::scalar(Scalar::u8), std::vector<std::int64_t>{kBytes}, runtime::device("cpu"));
    const Variable low{.array = runtime::slice(base, 0, 4, 10, 1)}, high{.array = runtime::slice(base, 0, 8, 10, 1)};
    TapeMemory memory;
    memory.begin_entry();
    SavedPrimalPtr first = memory.save(low), second = memory.save(high);
    ASSERT_TRUE(memory.may_overlap());
    std::vector<SavedPrimalPtr*> all{&first, &second};
    memory.join_overlapping(all);
    memory.write(low, /*counts=*/true);
    ASSERT_TRUE(first->copy && second->copy);
    EXPECT_EQ(static_cast<std::byte*>(second->copy->view.data) - static_cast<std::byte*>(first->copy->view.data), 4);
    EXPECT_EQ(memory.kept().copies, 1);
    EXPECT_EQ(memory.kept().bytes, 14);
}

TEST(TapeMemory, notices_writes_that_are_not_recorded) {
    std::mt19937 random(3);
    const runtime::Array base =
        runtime::zeros(Type::scalar(Scalar::u8), std::vector<std::int64_t>{4}, runtime::device("cpu"));
    const Variable array{.array = base};
    TapeMemory memory;
    memory.begin_entry();
    const SavedPrimalPtr before = memory.save(array);
    memory.write(array, /*counts=*/true);
    const SavedPrimalPtr after = memory.save(array);
    set_numbers(base, random);
    memory.check_versions();
    set_numbers(base, random);
    EXPECT_THROW(memory.check_versions(), UsageError);
    memory.clear();
    memory.check_versions();
}

// Entries between which nothing is written share saved primals; a failed one takes none away.
TEST(TapeMemory, shares_saved_primals_and_forgets_failed_entries) {
    std::mt19937 random(5);
    const runtime::Array base =
        runtime::zeros(Type::scalar(Scalar::u8), std::vector<std::int64_t>{4}, runtime::device("cpu"));
    const Variable array{.array = base};
    TapeMemory memory;
    memory.begin_entry();
    const SavedPrimalPtr first = memory.save(array);
    memory.begin_entry();
    EXPECT_EQ(memory.save(array), first);
    memory.forget_entry();
    memory.begin_entry();
    memory.write(array, /*counts=*/true);
    EXPECT_TRUE(first->copy);
    const std::vector<int> then = numbers(base);
    set_numbers(base, random);
    EXPECT_EQ(numbers(first->contents()), then);
}

}  // namespace
}  // namespace weft::program
