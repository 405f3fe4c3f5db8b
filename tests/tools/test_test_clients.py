"""tools/clients/test_clients.py: the page's lines about the compiler's messages. Nothing is installed here."""

import pytest


@pytest.mark.parametrize(
    ("reason", "short"),
    [
        ("a/b.py:3:4: error: the module 'warp' has no attribute 'tile_load'", "tiles"),
        ("a/b.py:3:4: error: the module 'warp' has no attribute 'bvh_query_ray'", "`wp.bvh_query_ray`"),
        ("<C++ of 'f'>:1:1: error: use of undeclared identifier 'X'", "C++ snippet: use of undeclared identifier '…'"),
        ("a.py:1:2: error: 'x' is not 'y' | z", "'…' is not '…' \\| z"),
    ],
)
def test_reasons_of_one_kind_have_one_name(tool, reason, short):
    assert tool("test_clients").short_reason(reason) == short


def test_a_kernel_that_ends_the_process_is_left_out_the_next_time(tool, monkeypatch):
    module = tool("test_clients")
    about = {"missing": [], "not_imported": {}, "not_made": {}}
    calls = []

    def lines(script, package, *skipped):
        calls.append(skipped)
        yield about
        for name in ("m:a", "m:b", "m:c"):
            if name in skipped:
                continue
            yield {"begins": name}
            if name == "m:b":
                yield {"ended": "the process ended with -11: "}
                return
            yield {"kernel": name, "seconds": 0.5, "reason": None}

    monkeypatch.setattr(module, "lines_of", lines)
    found_about, kernels = module.compile_all("mujoco_warp")
    assert calls == [(), ("m:b",)] and found_about == about
    assert {k["kernel"]: k["reason"] for k in kernels} == {
        "m:a": None,
        "m:b": "the process ended with -11: ",
        "m:c": None,
    }


def test_the_page_counts_and_sorts(tool):
    about = {"missing": ["Mesh"], "not_imported": {}, "not_made": {"m:make": "what | to call it with"}}
    kernels = [
        {"kernel": "m:a", "seconds": 0.25, "reason": None},
        {"kernel": "m:b", "seconds": 1.5, "reason": None},
        {"kernel": "m:c", "seconds": 9.0, "reason": "a.py:1:2: error: the module 'warp' has no attribute 'tile_map'"},
    ]
    page = "\n".join(tool("test_clients").package_page("mujoco_warp", about, kernels))
    assert "2 of 3 kernels compile, in 1.8 s" in page and "| tiles | 1 |" in page
    assert page.index("`m:b`") < page.index("`m:a`") and "`m:c`" not in page
    assert "`wp.Mesh`" in page and "what \\| to call it with" in page


def test_a_package_that_cannot_be_imported_says_why(tool):
    about = {"missing": [], "not_imported": {"newton": "ModuleNotFoundError: No module named 'x'"}, "not_made": {}}
    page = "\n".join(tool("test_clients").package_page("newton", about, []))
    assert "Cannot be imported: ModuleNotFoundError: No module named 'x'" in page and "kernels" not in page


def test_the_tests_of_a_package_are_counted(tool):
    results = [
        {"file": "m/a.py", "passed": 3, "failed": 0, "skipped": 1, "seconds": 30.0, "reasons": [], "ended": None},
        {
            "file": "m/b.py",
            "passed": 2,
            "failed": 2,
            "skipped": 0,
            "seconds": 60.0,
            "reasons": ["k.py:1:2: error: no 'x'", "k.py:9:2: error: no 'y'"],
            "ended": None,
        },
        {"file": "m/c.py", "passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0, "reasons": [], "ended": "it ended"},
    ]
    page = "\n".join(tool("test_clients").tests_page("mujoco_warp", results))
    assert "3 files on the CPU: 5 tests pass, 2 fail, 1 are skipped, in 1.5 minutes." in page
    assert "`m/a.py`" not in page and "| `m/b.py` | 2 | 2 |  |" in page and "| `m/c.py` | 0 | 0 | it ended |" in page
    assert "| no '…' | 2 |" in page


def test_a_step_says_how_far_it_got(tool):
    results = [
        {"model": "ball", "stages": {"crb": "1.0e-07"}, "errors": [1e-5, 2e-5], "moved": 0.25, "constraints": 4},
        {"model": "rod", "stages": {"crb": "runs"}, "errors": [1e-6, 2e-3], "moved": 0.5, "constraints": 0},
        {"model": "mist", "stages": {"crb": "runs"}, "errors": [1e-9, float("nan")], "moved": 0.5, "constraints": 0},
        {"model": "box", "stages": {"crb": "runs"}, "reason": "KeyError: 'x'"},
        {"ended": "the process ended with 1: "},
    ]
    lines, wrong = tool("test_clients").step_page(results)
    page = "\n".join(lines)
    assert "| model | crb | step() | moved | constraints |" in page
    assert "| ball | 1.0e-07 | 1.0e-05 / 2.0e-05 | 0.25 | 4 |" in page
    assert "| box | runs | stops: KeyError: 'x' |  |  |" in page
    assert wrong == [
        "the process ended with 1: ",
        "rod: step() differs from mujoco's by 1.0e-06 / 2.0e-03",
        "mist: step() differs from mujoco's by 1.0e-09 / nan",
        "box: step() stops: KeyError: 'x'",
    ]
    lines, wrong = tool("test_clients").step_page(results[4:])
    assert "ended with 1" in "\n".join(lines) and len(wrong) == 1
