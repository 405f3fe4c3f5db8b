#include <gtest/gtest.h>

#include <cstring>

#include "binary/binary.h"
#include "support/error.h"

namespace weft {
namespace {

Binary sample() {
    Binary binary;
    binary.target = {Target::Kind::cpu, "x86_64-unknown-linux-gnu", "znver3", "+avx2,-sse4a"};
    for (int i = 0; i < 1003; ++i) binary.code.push_back(static_cast<std::byte>(i * 7));
    binary.machine_code = {std::byte{7}, std::byte{0}, std::byte{9}};
    binary.natives = {{std::byte{1}, std::byte{2}}, {}};
    KernelEntry first;
    first.name = "first";
    first.symbol = "weft_0_first";
    first.tid_rank = 3;
    first.remarks = {{3, "the loop is scalar"}, {-1, ""}};
    first.sites = {12, 4, -1};
    first.uncontended_parameters = {2};
    first.effects = {{.reads = true}, {.writes = true, .keeps = true}};
    first.cpu() = {.lanes = 8,
                   .boundary = 2,
                   .cost = 1.25,
                   .has_atomics = true,
                   .finds_objects = true,
                   .ordered = true,
                   .can_fuse = true,
                   .own_arrays = {1, 3},
                   .cost_exclusive = 0.5};
    KernelEntry second;
    second.name = "second \xc3\xa4";
    second.symbol = "weft_1_second__";
    binary.kernels = {first, second};
    for (std::size_t i = 0; i < binary.key.bytes.size(); ++i) binary.key.bytes[i] = static_cast<std::uint8_t>(255 - i);
    return binary;
}

void expect_equal(const Binary& a, const Binary& b) {
    EXPECT_EQ(a.target, b.target);
    EXPECT_EQ(a.code, b.code);
    EXPECT_EQ(a.machine_code, b.machine_code);
    EXPECT_EQ(a.natives, b.natives);
    EXPECT_EQ(a.key, b.key);
    ASSERT_EQ(a.kernels.size(), b.kernels.size());
    for (std::size_t i = 0; i < a.kernels.size(); ++i) {
        const KernelEntry &x = a.kernels[i], &y = b.kernels[i];
        EXPECT_EQ(x.name, y.name);
        EXPECT_EQ(x.symbol, y.symbol);
        EXPECT_EQ(x.tid_rank, y.tid_rank);
        EXPECT_EQ(x.remarks, y.remarks);
        EXPECT_EQ(x.uncontended_parameters, y.uncontended_parameters);
        EXPECT_EQ(x.effects, y.effects);
        EXPECT_EQ(x.code, y.code);
        EXPECT_EQ(x.sites, y.sites);
    }
}

TEST(Serialize, gives_back_every_field) { expect_equal(sample(), deserialize(serialize(sample()))); }

TEST(Serialize, gives_back_every_field_of_code_for_gpus) {
    Binary binary = sample();
    binary.target = {Target::Kind::cuda, "nvptx64-nvidia-cuda", "sm_90", ""};
    binary.kernels[0].code = CudaEntry{.argument_bytes = 5000,
                                       .arguments_in_memory = true,
                                       .ordered = true,
                                       .reports = true,
                                       .prints = true,
                                       .logs = 3,
                                       .most_threads = 128,
                                       .formats = {"%d\n", "", "a %g"}};
    binary.kernels[1].code = CudaEntry{.argument_bytes = 8,
                                       .whole_blocks = true,
                                       .combines = true,
                                       .shared_copies = {{8, 24, 40, 2, 12}, {64, 80, 88, 1, 4}}};
    expect_equal(binary, deserialize(serialize(binary)));
}

TEST(Serialize, gives_back_an_empty_binary) { expect_equal(Binary{}, deserialize(serialize(Binary{}))); }

TEST(Serialize, is_the_same_bytes_for_the_same_binary) { EXPECT_EQ(serialize(sample()), serialize(sample())); }

TEST(Deserialize, refuses_any_flipped_bit) {
    const std::vector<std::byte> good = serialize(sample());
    for (std::size_t at = 0; at < good.size(); ++at) {
        std::vector<std::byte> bad = good;
        bad[at] ^= static_cast<std::byte>(1 << at % 8);
        EXPECT_THROW(deserialize(bad), UsageError) << "byte " << at;
    }
}

TEST(Deserialize, refuses_every_shorter_and_longer_text) {
    const std::vector<std::byte> good = serialize(sample());
    for (std::size_t size = 0; size < good.size(); ++size)
        EXPECT_THROW(deserialize({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), UsageError) << size;
    std::vector<std::byte> longer = good;
    longer.push_back(std::byte{0});
    EXPECT_THROW(deserialize(longer), UsageError);
}

TEST(Digest, prints_as_64_hexadecimal_digits) {
    Digest digest;
    digest.bytes[0] = 0xab;
    digest.bytes[31] = 0x01;
    EXPECT_EQ(digest.hex(), "ab" + std::string(60, '0') + "01");
}

}  // namespace
}  // namespace weft
