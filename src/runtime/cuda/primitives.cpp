#include "runtime/cuda/primitives.h"

#include <optional>

#include "runtime/bytes.h"

namespace weft::runtime {

namespace {

// An array for the host to write: a copy, which goes back.
class Written {
public:
    explicit Written(const Array& target) : target_(target), here_(clone(target, host_device())) {}

    const Array& array() const { return here_; }
    void finish() { transfer(target_, here_); }

private:
    const Array& target_;
    Array here_;
};

}  // namespace

std::vector<Total> CudaPrimitives::sum(const Array& array, int axis) { return cpu_.sum(on_host(array), axis); }

std::vector<Total> CudaPrimitives::inner(const Array& a, const Array& b, int axis) {
    return cpu_.inner(on_host(a), on_host(b), axis);
}

void CudaPrimitives::write_totals(const std::vector<Total>& totals, Scalar of, const Array& to) {
    Written written(to);
    cpu_.write_totals(totals, of, written.array());
    written.finish();
}

void CudaPrimitives::scan(const Array& from, const Array& to, bool inclusive) {
    Written written(to);
    cpu_.scan(on_host(from), written.array(), inclusive);
    written.finish();
}

void CudaPrimitives::sort_pairs(const Array& keys, const Array& values, std::int64_t count) {
    Written sorted(keys), moved(values);
    cpu_.sort_pairs(sorted.array(), moved.array(), count);
    sorted.finish();
    moved.finish();
}

void CudaPrimitives::sort_segments(const Array& keys, const Array& values, const std::vector<Segment>& segments) {
    Written sorted(keys), moved(values);
    cpu_.sort_segments(sorted.array(), moved.array(), segments);
    sorted.finish();
    moved.finish();
}

std::int64_t CudaPrimitives::encode_runs(const Array& values, std::int64_t count, const Array& run_values,
                                         const Array& run_lengths) {
    Written found(run_values), lengths(run_lengths);
    const std::int64_t runs = cpu_.encode_runs(on_host(values), count, found.array(), lengths.array());
    found.finish();
    lengths.finish();
    return runs;
}

void CudaPrimitives::matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta) {
    Written product(d);
    std::optional<Array> added;
    if (c) added = on_host(*c);
    cpu_.matmul(on_host(a), on_host(b), added ? &*added : nullptr, product.array(), alpha, beta);
    product.finish();
}

// All bytes from the first element to the last one: an element that shows several times is one on the host, too.
void CudaPrimitives::add(const Array& into, const Array& what) {
    if (into.size() == 0) return;
    const auto [low, high] = into.extent();
    const std::int64_t bytes = high - low;
    const std::unique_ptr<std::byte[]> here(new std::byte[static_cast<std::size_t>(bytes)]);
    read_bytes(*into.device, here.get(), low, bytes);
    Array same = into;
    same.buffer = nullptr;
    same.device = &host_device();
    same.view.data = moved(into.view.data, low, here.get());
    same.view.grad = nullptr;
    cpu_.add(same, on_host(what));
    write_bytes(*into.device, const_cast<std::byte*>(low), here.get(), bytes);
}

}  // namespace weft::runtime
