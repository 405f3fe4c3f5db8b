"""The preparation of client programs for their import: names of the API that Weft does not have yet.

A name that is missing while a client is imported gets a stand-in, so that the rest of the module can be used. After the
import names are missing again: a kernel that calls one of these functions fails to compile, and says so.
"""

import contextlib
import importlib
from pathlib import Path

import warp as wp

HUMANOID = "test_data/humanoid/humanoid.xml"  # in mujoco-warp's wheel
ROOM = {"nconmax": 40, "njmax": 160}  # contacts and constraints that a world has room for


@contextlib.contextmanager
def stand_ins(missing: set):
    """While this runs, `wp.name` for an unknown name is a struct with an address, and `missing` collects the name."""
    find = wp.__getattr__

    def find_or_make(name):
        try:
            return find(name)
        except AttributeError:
            if name.startswith("_"):
                raise
            missing.add(name)
            made = wp.struct(type(name, (), {"__annotations__": {"id": wp.uint64}}))
            setattr(wp, name, made)
            return made

    wp.__getattr__ = find_or_make
    try:
        yield
    finally:
        wp.__getattr__ = find


def module_names(root) -> list:
    """The names of a package's modules, those in folders without `__init__.py` too."""
    names = set()
    for folder in root.__path__:
        for file in Path(folder).rglob("*.py"):
            parts = file.relative_to(folder).with_suffix("").parts
            names.add(".".join((root.__name__, *parts)).removesuffix(".__init__"))
    return sorted(names)


def import_all(package: str, problems: dict) -> list:
    """The modules of a package but those of its tests; `problems` gets those that cannot be imported, and why."""
    try:
        root = importlib.import_module(package)
    except Exception as error:
        problems[package] = f"{type(error).__name__}: {error}".splitlines()[0]
        return []
    modules = []
    for name in module_names(root):
        parts = name.split(".")
        if any(part in ("tests", "test", "examples", "viewer") or part.endswith("_test") for part in parts):
            continue
        try:
            modules.append(importlib.import_module(name))
        except (Exception, SystemExit) as error:
            problems[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return modules


def start(text: str) -> tuple:
    """A model, from its text or its file in mujoco-warp, and data: moving, and in its first key if it has one."""
    import mujoco
    import mujoco_warp

    if text.startswith("<"):
        model = mujoco.MjModel.from_xml_string(text)
    else:
        model = mujoco.MjModel.from_xml_path(str(Path(mujoco_warp.__file__).parent / text))
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qvel[:] = 0.1
    data.ctrl[:] = 0.1
    return model, data
