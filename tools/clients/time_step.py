"""time_step.py WORLDS: how long a step of mujoco-warp's humanoid takes, as a program calls it; prints a line of JSON.

Any implementation of the API can run it. The same steps are taken again and again, from the same state. Of each step
the least time counts, of the clock and of the processors, so that other load counts little. Then the steps run once
more with a clock around each launch: the rest of the time is Python's.
"""

import json
import sys
import time

import common
import mujoco
import mujoco_warp
import numpy as np
import warp as wp

STEPS, ROUNDS = 20, 12


def measure(run, model, data, worlds: int) -> list:
    """The numbers that `run` gives for each step, each the least of all rounds."""
    ours = mujoco_warp.put_model(model)
    rounds = []
    for _ in range(ROUNDS):
        theirs = mujoco_warp.put_data(model, data, nworld=worlds, **common.ROOM)
        rounds.append([run(lambda: mujoco_warp.step(ours, theirs)) for _ in range(STEPS)])  # noqa: B023
    return np.min(rounds, axis=0)


def plain(step) -> tuple:
    start, used = time.perf_counter(), time.process_time()
    step()
    wp.synchronize()
    return time.perf_counter() - start, time.process_time() - used


def with_clock(step) -> tuple:
    """The time outside of launches, and how many there are."""
    inside, count = 0.0, 0
    launches = {name: getattr(wp, name) for name in ("launch", "launch_tiled")}

    def timed(launch):
        def run(*arguments, **named):
            nonlocal inside, count
            start = time.perf_counter()
            launch(*arguments, **named)
            inside += time.perf_counter() - start
            count += 1

        return run

    try:
        for name, launch in launches.items():
            setattr(wp, name, timed(launch))
        total, _ = plain(step)
    finally:
        for name, launch in launches.items():
            setattr(wp, name, launch)
    return total - inside, count


def main() -> None:
    worlds = int(sys.argv[1])
    model, data = common.start(common.HUMANOID)
    mujoco.mj_forward(model, data)
    step, processors = measure(plain, model, data, worlds).mean(axis=0)
    outside, launches = measure(with_clock, model, data, worlds).mean(axis=0)
    found = {"step": step, "processors": processors, "outside": outside, "launches": launches}
    print(json.dumps({"worlds": worlds, **found}), flush=True)


main()
