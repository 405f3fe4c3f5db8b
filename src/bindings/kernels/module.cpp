// warp._weft: the list of everything that Python sees. Types come first: the later ones use their classes.
#include <nanobind/nanobind.h>

#include "bindings/arrays/array.h"
#include "bindings/kernels/kernel.h"
#include "bindings/python/errors.h"
#include "bindings/python/settings.h"
#include "bindings/python/signatures.h"
#include "bindings/python/stream.h"
#include "bindings/spatial/spatial.h"
#include "bindings/structs/structs.h"
#include "bindings/values/builtin.h"
#include "bindings/values/types.h"
#include "frontend/frontend.h"

NB_MODULE(_weft, m) {
    nanobind::set_leak_warnings(false);
    weft::bindings::bind_errors(m);
    weft::bindings::bind_types(m);
    weft::bindings::bind_devices(m);
    weft::bindings::bind_memory(m);
    weft::bindings::bind_streams(m);
    weft::bindings::bind_arrays(m);
    weft::bindings::bind_array_primitives(m);
    weft::bindings::bind_ipc(m);
    weft::bindings::bind_structs(m);
    weft::frontend::bind_frontend(m);
    weft::bindings::bind_builtins(m);
    weft::bindings::bind_kernels(m);
    weft::bindings::bind_bundles(m);
    weft::bindings::bind_hash_grid(m);
    weft::bindings::bind_mesh(m);
    weft::bindings::bind_volume(m);
    weft::bindings::bind_settings(m);
    weft::bindings::describe_signatures(m);
}
