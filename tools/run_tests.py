"""All Python tests, in parts that run beside each other: as many at a time as there are processors, four at most.

    python tools/run_tests.py --report FILE        writes the result of each test, as `pytest --report FILE` does
    python tools/run_tests.py --keep-ptx FOLDER    leaves the kernels of the emulated CUDA device in a fresh folder
    python tools/run_tests.py --only PART          the parts whose names begin so
    python tools/run_tests.py --long               the tests of minutes on the emulated device, too
    python tools/run_tests.py --at-a-time N        so many parts beside each other, on any machine;
                                                   WEFT_TESTS_AT_A_TIME says it to `make test`
    python tools/run_tests.py --other-numbers      launches on the emulated device are done with other numbers, too
                                                   (tests/support/other_numbers)

A test uses one processor nearly all of its time. The parts of the CPU are all of tests/ in folders, so that a new file
belongs to one without being named here. The others are suites that run once more, with another default device. A test
that is skipped in one part and passes in another has passed: tests that need a CUDA device run on the emulated one.
Every file runs there or is listed in NOT_ON_CUDA with the reason (tests/tools/test_run_tests.py).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_AT_A_TIME = 4

# Tests of arrays, launches and gradients, which run on every device.
ON_ALL_DEVICES = {
    "python": "second_device array_create array_data array_shapes array_use launch commands arithmetic indexed structs"
    " struct_lifetime struct_methods products utils kernel_arrays references overlap optim graphs graph_programs"
    " reductions",
    "gradients": "tape tape_use atomics scattered kernels nested tangents hessians autograd verify starts"
    " atomic_results operations custom augmented second_derivatives checkpoints adjoint_launch stopped_gradients",
}
# The language and its builtins, and features of CUDA alone.
LANGUAGE = {
    "python": "cuda cuda_arrays cuda_thread_coarsening cuda_failures cuda_image_cache cuda_machine_code cuda_memory"
    " cuda_primitives cuda_texts ptx cuda_events cuda_threads cuda_contexts cuda_bad_input"
    " deterministic large_vectors large_matrices large_parameters indexing control_flow generics large_kernels"
    " functions bfloat float8"
    " kernels vectors types values raise statements sequences rotations operators partial_paths tid augmented"
    " class_patterns expressions_of_python kernel_objects negative_indices none_arrays number_range"
    " array_layout array_keywords pickling huge_arrays"
    " names_and_constructors slice_steps noinline_functions partial_groups options scattered serial"
    " option_effects changed_globals robustness minima_of_generators graph_coloring cuda_graphs modules type_questions"
    " captured_copies cuda_ipc inspection formats names"
    " address_of allocators code_transformers cuda_options memory_tracker"
    " gathered_vectors launch_fusion data_classes language_forms",
    "errors": "error_classes faults programs pointers mistakes_at_launches",
    "builtins": "table typed atomics fast_math libraries_of_gpus bfloat16 geometry noise utility decompositions random"
    " host_calls",
    "documents": "rotations documents programs gradients",
    "interop": "cuda_streams cuda_order",
    "examples": "examples",
}
MORE_GRADIENTS = {
    "gradients": "generated programs patterns conventions matrices neighbours builtins known_zeros chosen_arrays"
    " refusals special_inputs supplied tape_graph tape_threads devices_agree random_tapes random_reach copies",
}
PROGRAMS = {"examples": "cloth descent isosurface rigid", "geometry": "marching_cubes triangles"}
# Two parts of about the same length.
ON_CUDA = {"arrays, gradients and programs": [ON_ALL_DEVICES, MORE_GRADIENTS, PROGRAMS], "language": [LANGUAGE]}
# These take minutes there: only with --long. Tests beside them take the same kernels and their gradients.
LONG_ON_CUDA = [
    "tests/examples/test_descent.py::test_balls_and_light_are_recovered_from_their_picture",
    "tests/examples/test_descent.py::test_descent_finds_a_splash_whose_waves_make_the_picture",
    "tests/examples/test_descent.py::test_the_throw_hits_the_ring",
]
# Why the other files do not run there.
NOT_ON_CUDA = {
    "geometry comes to GPUs later": {
        "examples": "dam_break mountain_lake puzzle_ball sculpt",
        "geometry": "devices grid_order hash_grid judge_grids judge_meshes judge_volumes mesh moving_meshes"
        " neighbour_loops precisions query_groups query_invariants query_sides tapes volume volume_objects"
        " volume_precisions",
    },
    "other frameworks are built for the CPU here; their GPUs come later": {
        "interop": "all_libraries bad_tensors benchmarks conventions direct distributed dlpack dlpack_module"
        " dlpack_programs exports jax_arrays jax_callable jax_devices jax_kernel jax_transformations memory"
        " moved_memory numba_cupy numpy paddle tensor_programs torch torch_op",
        "documents": "old_jax tensor_documents",
    },
    "needs a GPU, and other frameworks for it: `make gpu-check`": {"interop": "gpu_frameworks"},
    "has bounds for the CPU's roundings; GPUs have other ones": {"gradients": "special_table"},
    "is about the CPU's lanes": {"builtins": "lanes", "python": "lane_choice"},
    "is about functions in C++, which are the CPU's": {"python": "native"},
    "is about a process without a GPU: its default device, what it logs and answers": {
        "api": "probes",
        "python": "check_mode conflict device interrupts logging main profilers progress start",
    },
    "runs no kernel: names, syntax trees, errors of the compiler": {
        "builtins": "listing mutants",
        "python": "frontend packages signatures",
    },
    "takes the emulated device by itself, whatever the default device is": {
        "embed": "embed library_wheel",
        "python": "devlib_ptx",
    },
    "is about tools of the repository": {
        "tools": "check_docs check_layers check_prose check_skips check_status clang continuous_integration draw_guide"
        " draw_ways"
        " gpu_benchmarks gpu_check interop_page language_page metadata_wheel mutate mutations names_of_programs"
        " other_numbers private_library ptx_tools reference release run_tests setup stubs test_clients tile_stand_ins"
        " wheel_targets",
    },
}
# Not with other numbers: tests that count launches, order them or make them fail, and programs whose numbers keep
# threads apart, as the colours of a graph do.
NUMBERS_MATTER = re.compile(r"test_(cuda_|captured_copies|graphs|graph_programs|tape_threads)|/examples/")


def files(*suites):
    return [f"tests/{folder}/test_{name}.py" for suite in suites for folder in suite for name in suite[folder].split()]


def files_on_cuda():
    return [file for suites in ON_CUDA.values() for file in files(*suites)]


def folders():
    """The folders of tests/ that have tests of their own, the long ones first."""
    longest = ["builtins", "interop", "python", "gradients", "geometry"]
    every = sorted({path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/*/**/test_*.py")})
    return longest + [name for name in every if name not in longest]


def parts(keep_ptx=None, other_numbers=False, long=False):
    """(name, arguments of pytest, settings of the environment, whether it belongs to the report)"""
    no_gpu = {"WARP_CUDA_DRIVER": "none"}  # that of the machine would be the default device
    yield "second device", ["--device", "cpu:protected", *files(ON_ALL_DEVICES)], no_gpu, False
    settings = {"WARP_CUDA_DRIVER": "emulated", **({"WEFT_KEEP_PTX": str(keep_ptx)} if keep_ptx else {})}
    options = ["--device", "cuda:0", *(["--other-numbers"] if other_numbers else [])]
    left_out = [] if long else [f"--deselect={test}" for test in LONG_ON_CUDA]
    for (name, suites), arch in zip(ON_CUDA.items(), (90, 75), strict=True):
        on_arch = {**settings, "WEFT_EMULATED_ARCH": os.environ.get("WEFT_EMULATED_ARCH", str(arch))}
        chosen = [file for file in files(*suites) if not (other_numbers and NUMBERS_MATTER.search(file))]
        unwanted = [option for option in left_out if option.split("=")[1].split("::")[0] in chosen]
        yield f"emulated CUDA: {name}", [*options, *unwanted, *chosen], on_arch, True
    for folder in folders():
        yield folder, [f"tests/{folder}"], no_gpu, True


# From the outcome that says least about a test to the one that says most.
OUTCOMES = ["skipped", "passed", "xfailed", "not run", "failed"]


def merged(reports):
    """One report of those of the parts."""
    tests = {}
    for report in reports:
        for name, test in report.items():
            known = tests.setdefault(name, test)
            if OUTCOMES.index(test["outcome"]) > OUTCOMES.index(known["outcome"]):
                tests[name] = test
    in_order = sorted(tests, key=lambda name: name.split("::")[0])
    return {name: tests[name] for name in in_order}


def run(part, reports):
    name, arguments, settings, is_reported = part
    command = [sys.executable, "-m", "pytest", "-q", "--durations=3", *arguments]
    if is_reported:
        command += ["--report", reports / f"{name}.json"]
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(f"-- {name}: {time.monotonic() - start:.0f} s\n{done.stdout}", end="", flush=True)
    return done.returncode == 0


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, not {number}")
    return number


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", type=Path, help="where what each test showed is written")
    parser.add_argument("--keep-ptx", type=Path, help="where the texts of kernels for CUDA devices are left")
    parser.add_argument("--only", help="how the names of the parts begin")
    parser.add_argument("--long", action="store_true", help="run the tests of minutes on the emulated device, too")
    parser.add_argument("--other-numbers", action="store_true", help="compare launches on the emulated device")
    forced = os.environ.get("WEFT_TESTS_AT_A_TIME")
    parser.add_argument("--at-a-time", type=positive, default=forced, help="how many parts run beside each other")
    options = parser.parse_args()
    if options.keep_ptx:
        shutil.rmtree(options.keep_ptx, ignore_errors=True)
        options.keep_ptx.mkdir(parents=True)
        options.keep_ptx = options.keep_ptx.resolve()
    every = list(parts(options.keep_ptx, options.other_numbers, options.long))
    if options.only:
        names = [part[0] for part in every]
        every = [part for part in every if part[0].startswith(options.only)]
        if not every:
            parser.error(f"there is no part '{options.only}'; expected {', '.join(names)}")
    with tempfile.TemporaryDirectory() as temporary:
        reports = Path(temporary)
        by_itself = min(MOST_AT_A_TIME, len(os.sched_getaffinity(0)))
        with ThreadPoolExecutor(options.at_a_time or by_itself) as pool:
            passed = list(pool.map(lambda part: run(part, reports), every))
        if options.report:
            found = [json.loads(file.read_text()) for file in sorted(reports.glob("*.json"))]
            options.report.write_text(json.dumps(merged(found), indent=1))
    failed = [part[0] for part, is_fine in zip(every, passed, strict=True) if not is_fine]
    if failed:
        print(f"parts that failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
