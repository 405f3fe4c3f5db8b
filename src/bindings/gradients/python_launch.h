// Launches on a tape, as Python sees them: the kernel and the values, and the tape's facts about the launch.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <vector>

#include "bindings/gradients/entries.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "program/tape/recorded_launch.h"

namespace weft::bindings {

class PyRecordedLaunch final : public program::RecordedLaunch, public Visited {
public:
    struct LaunchDescription {
        nb::object kernel;
        runtime::Device& device;
        const std::byte* block;
        std::span<const std::int64_t> dims;
        std::span<PyObject* const> values;
        const std::vector<runtime::Array>& holders;  // of memory that the block shows
    };
    explicit PyRecordedLaunch(LaunchDescription given);
    ~PyRecordedLaunch() override;
    PyRecordedLaunch(const PyRecordedLaunch&) = delete;
    PyRecordedLaunch& operator=(const PyRecordedLaunch&) = delete;

    // The launch's values. A vector, a matrix or a struct may be changed after the launch, so it is a copy of the value
    // at the launch; numbers are as the kernel took them.
    nb::list values() const;
    const nb::object& kernel_object() const { return kernel_object_; }
    std::vector<nb::object> structs() const;  // structs with arrays, as they were given

    std::vector<Use> uses() const override;
    bool may_stop_gradients() const override;
    void backward(const Backward& backward) override;
    int traverse(visitproc visit, void* arg) const override;

private:
    std::vector<runtime::BufferPtr> show_nested(std::byte* before, std::byte* after) const override;
    Group arrays_of_object(std::uint64_t id) override;
    // Members that few launches need.
    struct Rest {
        std::vector<std::pair<std::size_t, nb::object>> values;  // by parameter: memory that is no Python array
        std::vector<nb::object> structs;
        std::vector<nb::object> nested;
        std::vector<runtime::Array> holders;
        std::vector<std::unique_ptr<program::Variable>> foreign;  // arrays over `values`, for uses()
    };
    Rest& rest() {
        if (!rest_) rest_ = std::make_unique<Rest>();
        return *rest_;
    }
    void find_nested(std::span<PyObject* const> values);
    nb::object struct_value(std::size_t parameter, const std::byte* bytes) const;

    nb::object kernel_object_;
    std::unique_ptr<Rest> rest_;
};

void bind_recorded_launch(nb::module_& m);

}  // namespace weft::bindings
