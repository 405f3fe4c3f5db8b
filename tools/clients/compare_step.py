"""compare_step.py: mujoco-warp and mujoco side by side on small models and a humanoid; a line of JSON for each.

First the stages of a step one by one, each on what the stage before left, then step() itself, in one world and in
several.
"""

import json

import common
import mujoco
import mujoco_warp
import numpy as np

STEPS = 50
WORLDS = 16

MODELS = {
    "pendulum": """<mujoco><worldbody><body><joint axis="0 1 0" damping="0.1"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" contype="0" conaffinity="0"/></body></worldbody>
        </mujoco>""",
    "chain of three links": """<mujoco><worldbody><body><joint axis="0 1 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0" contype="0" conaffinity="0"/>
        <body pos="0.3 0 0"><joint axis="1 0 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0" contype="0" conaffinity="0"/>
        <body pos="0.3 0 0"><joint axis="0 0 1" stiffness="2"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0" contype="0" conaffinity="0"/>
        </body></body></body></worldbody></mujoco>""",
    "box in free fall": """<mujoco><worldbody><body pos="0 0 1"><freejoint/>
        <geom type="box" size="0.1 0.2 0.3" contype="0" conaffinity="0"/></body></worldbody></mujoco>""",
    "ball on a plane": """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.09"><freejoint/>
        <geom type="sphere" size="0.1"/></body></worldbody></mujoco>""",
    "humanoid": common.HUMANOID,
}


# The results of each stage, of the fields that both have in the same form.
STAGES = {
    "kinematics": ("xpos", "xquat", "xmat", "xipos", "geom_xpos", "geom_xmat"),
    "com_pos": ("subtree_com", "cinert", "cdof"),
    "crb": ("crb",),
    "collision": (),
    "com_vel": ("cvel", "cdof_dot"),
    "passive": ("qfrc_passive",),
    "rne": ("qfrc_bias",),
}


def difference(found, expected) -> float:
    """The largest difference in any world."""
    found = found.numpy().reshape(found.shape[0], -1)
    return float(np.abs(found - np.ravel(expected)).max()) if found.size else 0.0


def compare_stages(model, data) -> dict:
    ours = (mujoco_warp.put_model(model), mujoco_warp.put_data(model, data, **common.ROOM))
    mujoco.mj_forward(model, data)
    stages = {}
    for stage, fields in STAGES.items():
        try:
            getattr(mujoco_warp, stage)(*ours)
            errors = [difference(getattr(ours[1], field), getattr(data, field)) for field in fields]
            stages[stage] = f"{max(errors):.1e}" if errors else "runs"
        except Exception as error:
            stages[stage] = f"stops: {type(error).__name__}: {error}".splitlines()[0]
    return stages


def compare_steps(model, data) -> dict:
    start = data.qpos.copy()
    ours = mujoco_warp.put_model(model)
    one, several = (mujoco_warp.put_data(model, data, nworld=n, **common.ROOM) for n in (1, WORLDS))
    most = 0
    try:
        for _ in range(STEPS):
            mujoco.mj_step(model, data)
            mujoco_warp.step(ours, one)
            mujoco_warp.step(ours, several)
            most = max(most, data.nefc)
    except Exception as error:
        return {"reason": f"{type(error).__name__}: {error}".splitlines()[0]}
    found = [difference(world.qpos, data.qpos) for world in (one, several)]
    return {"errors": found, "moved": float(np.abs(data.qpos - start).max()), "constraints": most}


def main() -> None:
    for name, text in MODELS.items():
        try:
            model, data = common.start(text)
            result = {"stages": compare_stages(model, data)}
            result.update(compare_steps(*common.start(text)))
        except Exception as error:
            result = {"stages": {}, "reason": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps({"model": name, **result}), flush=True)


main()
