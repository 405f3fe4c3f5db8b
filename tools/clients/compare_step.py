"""compare_step.py: mujoco-warp and mujoco side by side on small models; a line of JSON for each.

First the stages of a step one by one, each on what the stage before left, then step() itself, as far as each goes.
"""

import json

import common
import numpy as np

STEPS = 20

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
}


# What each stage computes, of the fields that both have in the same form.
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
    found, expected = found.numpy()[0].ravel(), np.ravel(expected)
    return float(np.abs(found - expected).max()) if expected.size else 0.0


def compare(mujoco, mujoco_warp, text: str) -> dict:
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1
    ours = (mujoco_warp.put_model(model), mujoco_warp.put_data(model, data))
    start = data.qpos.copy()
    mujoco.mj_forward(model, data)
    stages = {}
    for stage, fields in STAGES.items():
        try:
            getattr(mujoco_warp, stage)(*ours)
            errors = [difference(getattr(ours[1], field), getattr(data, field)) for field in fields]
            stages[stage] = f"{max(errors):.1e}" if errors else "runs"
        except Exception as error:
            stages[stage] = f"stops: {type(error).__name__}: {error}".splitlines()[0]
    try:
        ours = (ours[0], mujoco_warp.put_data(model, data))
        for _ in range(STEPS):
            mujoco.mj_step(model, data)
            mujoco_warp.step(*ours)
    except Exception as error:
        return {"stages": stages, "reason": f"{type(error).__name__}: {error}".splitlines()[0]}
    moved = float(np.abs(data.qpos - start).max())
    return {"stages": stages, "error": difference(ours[1].qpos, data.qpos), "moved": moved}


def main() -> None:
    with common.stand_ins(set()):
        import mujoco
        import mujoco_warp
    for name, text in MODELS.items():
        try:
            result = compare(mujoco, mujoco_warp, text)
        except Exception as error:
            result = {"stages": {}, "reason": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps({"model": name, **result}), flush=True)


main()
