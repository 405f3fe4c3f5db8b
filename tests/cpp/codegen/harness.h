// Compiles IR text at a lane count and runs it in this process: codegen, a plain LLVM pipeline and LLJIT, nothing of
// the jit and runtime rooms.
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "binary/cpu_abi.h"
#include "codegen/codegen.h"

namespace weft::test {

codegen::TargetInfo host();

struct FaultReport {
    int kind = 0;
    std::int64_t thread = 0, index = 0, size = 0;
    int axis = 0, site = 0;
};

class Compiled {
public:
    Compiled(const std::string& text, codegen::Options options, const codegen::TargetInfo& target = host());
    const KernelEntry& entry() const { return entry_; }
    const std::string& llvm_text() const { return llvm_text_; }

    // Runs threads [begin, end) of a grid.
    template <typename... Arguments>
    void run_part(std::vector<std::int64_t> dim, std::int64_t begin, std::int64_t end, const Arguments&... arguments) {
        std::vector<std::byte> block(layout_.size_bytes + 1);
        std::size_t number = 0;
        (std::memcpy(block.data() + layout_.offsets[number++], &arguments, sizeof arguments), ...);
        launch(block.data(), dim, begin, end);
    }
    template <typename... Arguments>
    void run(std::int64_t count, const Arguments&... arguments) {
        run_part({count}, 0, count, arguments...);
    }

    void run_on_arrays(std::int64_t count, const std::vector<ArrayView>& arrays) {
        launch(arrays.data(), {count}, 0, count);
    }

    // The texts of weft_print_words and the arguments of weft_fault since the start of the process.
    static std::vector<std::string>& printed();
    static std::vector<FaultReport>& faults();

private:
    void launch(const void* block, const std::vector<std::int64_t>& dim, std::int64_t begin, std::int64_t end);

    std::unique_ptr<llvm::orc::LLJIT> jit_;
    KernelEntry entry_;
    ArgumentLayout layout_;
    KernelEntryPoint function_ = nullptr;
    std::string llvm_text_;
};

// A packed array of `shape`; T is the element in memory.
template <typename T>
ArrayView view(std::vector<T>& data, std::vector<std::int64_t> shape) {
    ArrayView result;
    result.data = data.data();
    std::int64_t stride = sizeof(T);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        result.shape[axis] = shape[axis];
        result.strides[axis] = stride;
        stride *= shape[axis];
    }
    return result;
}
template <typename T>
ArrayView view(std::vector<T>& data) {
    return view(data, {static_cast<std::int64_t>(data.size())});
}

}  // namespace weft::test
