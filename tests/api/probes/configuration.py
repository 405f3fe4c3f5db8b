"""API-1.19, section 7: configuration."""

import numpy as np
import warp as wp
from probing import differs


def unknown_option():
    wp.config.my_flag = 1
    return wp.config.my_flag


def defaults():
    names = (
        "enable_cpu_blocks deterministic_max_records deterministic_debug default_grid_stride load_module_max_workers "
        "enable_vector_component_overwrites legacy_scalar_return_types enable_graph_capture_module_load_by_default "
        "enable_mempools_at_init enable_tiles_in_stack_memory enable_mathdx_gemm enable_mathdx_solver "
        "enable_mathdx_fft track_memory compile_time_trace line_directives use_precompiled_headers verbose_warnings "
        "cuda_output ptx_target_arch cuda_arch_suffix llvm_cuda"
    ).split()
    return {name: getattr(wp.config, name, "absent") for name in names}


def older_defaults():
    names = (
        "mode print_launches cache_kernels verify_fp verify_cuda lineinfo max_unroll enable_backward "
        "verify_autograd_array_access optimization_level"
    ).split()
    return {name: getattr(wp.config, name, "absent") for name in names}


def level_of_the_log():
    return wp.config.log_level


def access_modes():
    return wp.config.launch_array_access_mode.name, [mode.name for mode in wp.config.LaunchArrayAccessMode]


def deterministic_modes():
    return wp.config.deterministic.name, [mode.name for mode in wp.DeterministicMode]


def compiler_flags():
    return type(wp.config.cpu_compiler_flags)


def any_value_is_taken():
    wp.config.print_launches = 1
    wp.config.cpu_compiler_flags = "-O2"
    return wp.config.print_launches, wp.config.cpu_compiler_flags


@differs("raises ValueError")
def misspelled_value_of_the_mode():
    wp.config.mode = "fast"
    return wp.config.mode


def deterministic_mode_of_a_wrong_kind():
    wp.config.deterministic = "always"


def deterministic_mode_by_number():
    wp.config.deterministic = 1
    return wp.config.deterministic.name


def enums_are_ints():
    return wp.DeterministicMode.GPU_TO_GPU == 2, wp.config.LaunchArrayAccessMode.STRICT == 2


def options_of_its_own_can_go():
    wp.config.my_flag = 1
    del wp.config.my_flag
    return hasattr(wp.config, "my_flag")


def deterministic_sums_are_equal():
    @wp.kernel(module="unique")
    def add(x: wp.array(dtype=float), total: wp.array(dtype=float)):
        wp.atomic_add(total, 0, x[wp.tid()])

    wp.config.deterministic = wp.DeterministicMode.RUN_TO_RUN
    x = wp.array(np.random.default_rng(1).random(100_000) - 0.5, dtype=float)
    sums = set()
    for _ in range(5):
        total = wp.zeros(1, dtype=float)
        wp.launch(add, dim=len(x), inputs=[x, total])
        sums.add(float(total.numpy()[0]))
    return len(sums)
