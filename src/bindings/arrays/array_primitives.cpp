// The C++ half of warp.utils: sums, scans, sorts and runs of whole arrays. python/warp/utils.py, the only caller,
// checks the arguments, throws their errors and has the documentation.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/writes.h"
#include "bindings/values/types.h"
#include "runtime/cublas.h"
#include "runtime/primitives.h"
#include "runtime/recording.h"

namespace weft::bindings {
namespace {

using runtime::Array;

PyArray& array_of(nb::handle object) { return array_argument(object.ptr(), "warp.utils", "array"); }

// Does the work now, or in a capture when the graph runs. `addresses`: memory that it uses besides `to`.
template <typename Work>
void perform(const char* name, std::int64_t size_bytes, const Array& to, Work work,
             std::initializer_list<const void*> addresses) {
    runtime::Recording* const recording = runtime::current_recording(*to.device);
    if (recording == nullptr) return without_gil(size_bytes, work);
    recording->memory().add(std::array<const void*, 1>{to.view.data});
    recording->add(name, std::move(work), addresses);
}

// Python ints and floats in the width of the addition.
nb::list as_list(const std::vector<runtime::Total>& totals, Scalar of) {
    nb::list values;
    for (const runtime::Total& total : totals) {
        if (info(of).is_float()) {
            values.append(total.real);
        } else if (info(of).is_signed()) {
            values.append(total.whole);
        } else {
            values.append(static_cast<std::uint64_t>(total.whole));
        }
    }
    return values;
}

// `sum()` returns totals to the host, `sum_into(to)` writes them to `out` on the device; without `out` the result is a
// list.
template <typename Sum, typename SumInto>
nb::object reduced(const char* name, const Array& values, nb::handle out, const Sum& sum, SumInto sum_into,
                   std::initializer_list<const void*> reads) {
    if (out.is_none()) {
        runtime::refuse_recording(*values.device, name, "give an array for the result, out=...");
        std::vector<runtime::Total> totals;
        without_gil(values.size_bytes(), [&] { totals = sum(); });
        return as_list(totals, values.dtype.scalar());
    }
    PyArray& to = array_of(out);
    perform(
        name, values.size_bytes(), to.array, [sum_into = std::move(sum_into), to = to.array] { sum_into(to); }, reads);
    count_write(to);
    return nb::borrow(out);
}

}  // namespace

void bind_array_primitives(nb::module_& m) {
    nb::module_ primitives = m.def_submodule("primitives");
    primitives.def(
        "sum",
        [](nb::handle array, int axis, nb::handle out) {
            const Array& values = array_of(array).array;
            return reduced(
                "array_sum()", values, out, [&] { return values.device->primitives().sum(values, axis); },
                [values, axis](const Array& to) { values.device->primitives().sum_into(values, axis, to); },
                {values.view.data});
        },
        nb::arg("array"), nb::arg("axis"), nb::arg("out").none());
    primitives.def(
        "inner",
        [](nb::handle a, nb::handle b, int axis, nb::handle out) {
            const Array &left = array_of(a).array, &right = array_of(b).array;
            return reduced(
                "array_inner()", left, out, [&] { return left.device->primitives().inner(left, right, axis); },
                [left, right, axis](const Array& to) { left.device->primitives().inner_into(left, right, axis, to); },
                {left.view.data, right.view.data});
        },
        nb::arg("a"), nb::arg("b"), nb::arg("axis"), nb::arg("out").none());
    primitives.def("scan", [](nb::handle from, nb::handle to, bool inclusive) {
        PyArray& target = array_of(to);
        const Array& source = array_of(from).array;
        perform("scan", source.size_bytes(), target.array,
                [source, to = target.array, inclusive] { source.device->primitives().scan(source, to, inclusive); },
                {source.view.data});
        count_write(target);
    });
    primitives.def("sort_pairs",
                   [](nb::handle keys, nb::handle values, std::int64_t count, int begin_bit, int end_bit) {
                       PyArray &key_array = array_of(keys), &value_array = array_of(values);
                       perform("sort", count * key_array.array.dtype.size_bytes(), key_array.array,
                               [keys = key_array.array, values = value_array.array, count, begin_bit, end_bit] {
                                   keys.device->primitives().sort_pairs(keys, values, count, begin_bit, end_bit);
                               },
                               {value_array.array.view.data});
                       count_write(key_array);
                       count_write(value_array);
                   });
    primitives.def("sort_segments", [](nb::handle keys, nb::handle values, nb::handle begins, nb::handle ends,
                                       std::int64_t count) {
        PyArray &key_array = array_of(keys), &value_array = array_of(values);
        perform("sort segments", key_array.array.size_bytes(), key_array.array,
                [keys = key_array.array, values = value_array.array, begins = array_of(begins).array,
                 ends = array_of(ends).array,
                 count] { keys.device->primitives().sort_segments(keys, values, begins, ends, count); },
                {value_array.array.view.data, array_of(begins).array.view.data, array_of(ends).array.view.data});
        count_write(key_array);
        count_write(value_array);
    });
    primitives.def(
        "encode_runs",
        [](nb::handle values, std::int64_t count, nb::handle run_values, nb::handle run_lengths,
           nb::handle run_count) -> std::optional<std::int64_t> {
            PyArray &found = array_of(run_values), &lengths = array_of(run_lengths);
            const Array& source = array_of(values).array;
            if (!runtime::current_recording(*source.device)) {
                std::int64_t runs = 0;
                without_gil(source.size_bytes(), [&] {
                    runs = source.device->primitives().encode_runs(source, count, found.array, lengths.array);
                });
                count_write(found);
                count_write(lengths);
                return runs;
            }
            if (run_count.is_none())
                runtime::refuse_recording(*source.device, "runlength_encode()",
                                          "give an array for the number of runs, run_count=...");
            PyArray& to = array_of(run_count);
            perform("encode runs", 0, found.array,
                    [source, count, found = found.array, lengths = lengths.array, to = to.array] {
                        source.device->primitives().encode_and_count_runs(source, count, found, lengths, to);
                    },
                    {source.view.data, lengths.array.view.data, to.array.view.data});
            for (PyArray* const written : {&found, &lengths, &to}) count_write(*written);
            return std::nullopt;
        },
        nb::arg("values"), nb::arg("count"), nb::arg("run_values"), nb::arg("run_lengths"),
        nb::arg("run_count").none());
    primitives.def(
        "matmul",
        [](nb::handle a, nb::handle b, nb::handle c, nb::handle d, double alpha, double beta, int precision) {
            PyArray& to = array_of(d);
            const Array &left = array_of(a).array, &right = array_of(b).array;
            const Array* added = c.is_none() ? nullptr : &array_of(c).array;
            const auto multiply = [left, right, to = to.array, alpha, beta, precision,
                                   added = added ? std::optional(*added) : std::nullopt] {
                to.device->primitives().matmul(left, right, added ? &*added : nullptr, to, alpha, beta,
                                               static_cast<runtime::MatmulPrecision>(precision));
            };
            // The operations decide whether to release the GIL; they outnumber the bytes.
            perform("matmul", to.array.size() * left.view.shape[left.ndim - 1], to.array, multiply,
                    {left.view.data, right.view.data, added ? added->view.data : nullptr});
            count_write(to);
        },
        nb::arg("a"), nb::arg("b"), nb::arg("c").none(), nb::arg("d"), nb::arg("alpha"), nb::arg("beta"),
        nb::arg("precision") = 0);
    primitives.def("set_cublas_folders", &runtime::set_cublas_folders, nb::arg("folders"));
    // A view of the same elements with another shape: axes of one element, and missing ones in front, are repeated.
    primitives.def("broadcast", [](nb::handle array, const std::vector<std::int64_t>& shape) {
        return nb::steal(make_view(array_of(array), [&](const Array& from) {
            Array view = from;
            view.ndim = static_cast<int>(shape.size());
            for (int i = 0; i < view.ndim; ++i) {
                int axis = i - (view.ndim - from.ndim);
                bool repeated = axis < 0 || (from.view.shape[axis] == 1 && shape[static_cast<std::size_t>(i)] != 1);
                view.view.shape[i] = shape[static_cast<std::size_t>(i)];
                view.view.strides[i] = repeated ? 0 : from.view.strides[axis];
            }
            return view;
        }));
    });
    primitives.def("overlap",
                   [](nb::handle a, nb::handle b) { return runtime::overlap(array_of(a).array, array_of(b).array); });
}

}  // namespace weft::bindings
