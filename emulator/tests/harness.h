#pragma once
// Kernels from PTX texts, arrays on the emulated device, launches.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "engine/execution.h"
#include "engine/system.h"

namespace weft::emulator {

inline std::string ptx_file(const std::string& name) {
    std::ifstream file("emulator/tests/ptx/" + name);
    EXPECT_TRUE(file) << name << " is missing: run the tests in the root of the repository";
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// A body in an entry "kernel" with the parameters a, b, c, d of 64 bits, and registers of every kind.
inline std::string kernel_text(const std::string& body, const std::string& before = "") {
    return ".version 8.7\n.target sm_90\n.address_size 64\n" + before +
           "\n.visible .entry kernel(.param .b64 a, .param .b64 b, .param .b64 c, .param .b64 d)\n{\n"
           ".reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %d<64>;\n" +
           body + "\n}\n";
}

template <class T>
class DeviceArray {
public:
    explicit DeviceArray(size_t count)
        : memory_(AddressSpace::instance().allocate(0, count * sizeof(T), Allocation::Kind::Device)) {}
    explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { set(values); }
    DeviceArray(const DeviceArray&) = delete;
    ~DeviceArray() { release(); }

    void set(const std::vector<T>& values) {
        std::memcpy(memory_->data, values.data(), values.size() * sizeof(T));
        mark_written(*memory_, memory_->address, values.size() * sizeof(T));
    }
    std::vector<T> get() const {
        std::vector<T> values(memory_->size / sizeof(T));
        std::memcpy(values.data(), memory_->data, memory_->size);
        return values;
    }
    uint64_t address() const { return address_; }
    void release() {
        if (memory_) AddressSpace::instance().release(address_, Allocation::Kind::Device);
        memory_ = nullptr;
    }

private:
    Allocation* memory_;
    uint64_t address_ = memory_->address;
};

struct Grid {
    uint32_t blocks = 1, threads = 32, shared = 0;
    uint64_t seed = 1;
    uint64_t most_instructions = 20'000'000;
};

// The parameters as they lie in memory; those of kernel_text have 8 bytes each.
template <class... T>
std::vector<std::byte> packed(T... values) {
    std::vector<std::byte> bytes;
    [[maybe_unused]] const auto add = [&](const void* value, size_t size) {
        const size_t offset = (bytes.size() + size - 1) / size * size;
        bytes.resize(offset + size);
        std::memcpy(bytes.data() + offset, value, size);
    };
    (add(&values, sizeof values), ...);
    return bytes;
}

class Kernel {
public:
    explicit Kernel(std::string text, const std::string& name = "kernel") : program_(load_program(std::move(text), 0)) {
        code_ = &program_->functions[size_t(program_->function_index.at(name))];
    }

    template <class... T>
    std::unique_ptr<Launch> launch(Grid grid, T... parameters) {
        auto made = std::make_unique<Launch>();
        Launch& launch = *made;
        launch.program = program_.get();
        launch.kernel = code_;
        launch.grid[0] = grid.blocks;
        launch.threads[0] = grid.threads;
        launch.dynamic_shared = grid.shared;
        launch.seed = grid.seed;
        launch.most_instructions = grid.most_instructions;
        launch.parameters = packed(parameters...);
        launch.parameters.resize(code_->parameter_bytes);
        launch.number = AddressSpace::instance().next_launch();
        return made;
    }

    template <class... T>
    std::optional<Report> run(Grid grid, T... parameters) {
        const std::unique_ptr<Launch> made = launch(grid, parameters...);
        std::optional<Report> report = run_launch(*made);
        executed = made->executed;
        return report;
    }

    uint64_t executed = 0;
    Program& program() { return *program_; }

private:
    std::unique_ptr<Program> program_;
    const CodeFunction* code_;
};

// The launch has no fault.
#define EXPECT_RUNS(...)                                   \
    do {                                                   \
        const std::optional<Report> report_ = __VA_ARGS__; \
        EXPECT_FALSE(report_) << report_->text;            \
    } while (0)

}  // namespace weft::emulator
