"""time_step.py WORLDS: how long a step of mujoco-warp's humanoid takes, as a program calls it; prints a line of JSON.

Any implementation of the API can run it. The same steps are taken again and again, from the same state; of each the
least time counts, so that others who use the processor do not. Then once more with a clock around each launch: what is
left is what python takes.
"""

import json
import sys
import time

import common
import warp as wp

STEPS, ROUNDS = 20, 12


def measure(run, mujoco_warp, model, data, worlds: int) -> list:
    """What `run` gives for each step, the least of all rounds."""
    ours = mujoco_warp.put_model(model)
    least = [(float("inf"),)] * STEPS
    for _ in range(ROUNDS):
        theirs = mujoco_warp.put_data(model, data, nworld=worlds, **common.ROOM)
        for number in range(STEPS):
            least[number] = min(least[number], run(lambda: mujoco_warp.step(ours, theirs)))  # noqa: B023
    return least


def plain(step) -> tuple:
    start = time.perf_counter()
    step()
    wp.synchronize()
    return (time.perf_counter() - start,)


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
        (total,) = plain(step)
    finally:
        for name, launch in launches.items():
            setattr(wp, name, launch)
    return total - inside, count


def main() -> None:
    worlds = int(sys.argv[1])
    mujoco, mujoco_warp = common.import_mujoco()
    model, data = common.start(mujoco, mujoco_warp, common.HUMANOID)
    mujoco.mj_forward(model, data)
    steps = measure(plain, mujoco_warp, model, data, worlds)
    outside = measure(with_clock, mujoco_warp, model, data, worlds)
    found = {"step": sum(s for (s,) in steps), "outside": sum(s for s, _ in outside)}
    found["launches"] = sum(n for _, n in outside)
    print(json.dumps({"worlds": worlds, **{name: total / STEPS for name, total in found.items()}}), flush=True)


main()
