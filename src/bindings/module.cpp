// warp._weft: the list of everything that Python sees. Types come first: the later ones use their classes.
#include <nanobind/nanobind.h>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/array_structure.h"
#include "bindings/devices/device.h"
#include "bindings/devices/stream.h"
#include "bindings/foreign/foreign.h"
#include "bindings/gradients/active_tape.h"
#include "bindings/gradients/entries.h"
#include "bindings/gradients/python_launch.h"
#include "bindings/gradients/recording.h"
#include "bindings/gradients/tape.h"
#include "bindings/interop/jax_array.h"
#include "bindings/interop/kernel_parameters.h"
#include "bindings/interop/tensors.h"
#include "bindings/interop/torch_operator.h"
#include "bindings/interop/xla_call.h"
#include "bindings/interop/xla_function.h"
#include "bindings/kernels/graphs.h"
#include "bindings/kernels/kernel.h"
#include "bindings/kernels/launch_command.h"
#include "bindings/kernels/settings.h"
#include "bindings/python/errors.h"
#include "bindings/python/signatures.h"
#include "bindings/spatial/spatial.h"
#include "bindings/structs/structs.h"
#include "bindings/values/builtin.h"
#include "bindings/values/patterns.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "frontend/frontend.h"

NB_MODULE(_weft, m) {
    using namespace weft::bindings;
    nanobind::set_leak_warnings(false);
    bind_errors(m);

    bind_types(m);
    bind_values(m);
    bind_patterns(m);

    bind_devices(m);
    bind_memory(m);
    bind_streams(m);

    bind_arrays(m);
    bind_array_functions(m);
    bind_array_primitives(m);
    bind_array_structure(m);
    bind_ipc(m);
    bind_dlpack(m);
    bind_structs(m);

    weft::frontend::bind_frontend(m);
    bind_builtins(m);
    bind_kernels(m);
    bind_launch(m);
    bind_launch_command(m);
    bind_graphs(m);
    bind_bundles(m);
    bind_settings(m);

    bind_hash_grid(m);
    bind_mesh(m);
    bind_volume(m);
    bind_texture(m);

    bind_entries(m);
    bind_recorded_launch(m);
    bind_tape(m);
    bind_active_tape(m);
    bind_adjoint(m);
    bind_recording(m);

    bind_tensors(m);
    bind_jax_arrays(m);
    bind_kernel_parameters(m);
    bind_torch_operator(m);
    bind_xla_calls(m);
    bind_xla_functions(m);

    describe_signatures(m);
}
