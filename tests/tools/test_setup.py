import subprocess
import sys

import pytest


@pytest.fixture
def setup_tool(tool, monkeypatch, tmp_path):
    """tools/setup.py on a Debian with nothing installed, with a record of the commands that it would run."""
    module = tool("setup")
    module.commands = []
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(module, "is_installed", lambda package: False)
    monkeypatch.setattr(module, "python_packages", lambda: {})
    monkeypatch.setattr(module, "run", lambda *command, **options: module.commands.append(command))
    return module


def test_missing_packages_are_installed_after_an_update_of_the_lists(setup_tool, monkeypatch):
    monkeypatch.setattr(setup_tool, "apt_command", lambda: ["sudo", "-n", "apt-get"])
    setup_tool.install_system_packages(has_tests=True)
    update, install = setup_tool.commands
    assert update[:4] == ("sudo", "-n", "apt-get", "update")
    tests = {"libgtest-dev", "openmpi-bin", "libopenmpi-dev"}
    assert {"install", *setup_tool.REQUIRED_PACKAGES, *tests, *setup_tool.HELPFUL_PACKAGES} <= set(install)


def test_without_the_right_to_install_everything_missing_is_listed_at_once(setup_tool, monkeypatch):
    monkeypatch.setattr(setup_tool, "apt_command", lambda: None)
    with pytest.raises(setup_tool.SetupError) as error:
        setup_tool.install_system_packages(has_tests=True)
    assert all(package in str(error.value) for package in setup_tool.REQUIRED_PACKAGES)
    assert "apt-get install llvm-22-dev" in str(error.value)
    assert setup_tool.commands == []


def test_a_machine_that_has_everything_is_left_alone(setup_tool, monkeypatch):
    monkeypatch.setattr(setup_tool, "is_installed", lambda package: True)
    monkeypatch.setattr(setup_tool, "apt_command", lambda: ["apt-get"])
    setup_tool.install_system_packages(has_tests=True)
    assert setup_tool.commands == []


def test_a_demo_needs_no_packages_of_the_tests(setup_tool, monkeypatch):
    monkeypatch.setattr(setup_tool, "apt_command", lambda: ["apt-get"])
    setup_tool.install_system_packages(has_tests=False)
    _, install = setup_tool.commands
    assert "llvm-22-dev" in install and "libgtest-dev" not in install


@pytest.mark.parametrize(
    ("tests", "quick", "purposes"),
    [("OFF", "ON", ["demo"]), ("OFF", "OFF", ["demo", "interop"]), ("ON", "OFF", ["demo", "interop", "tests"])],
)
def test_a_build_folder_is_configured_again_for_what_it_lacks(
    setup_tool, monkeypatch, tmp_path, tests, quick, purposes
):
    monkeypatch.setattr(setup_tool, "BUILD", tmp_path)
    assert not setup_tool.is_configured("demo")
    (tmp_path / "build.ninja").write_text("")
    (tmp_path / "CMakeCache.txt").write_text(f"WEFT_BUILD_TESTS:BOOL={tests}\nWEFT_QUICK:BOOL={quick}\n")
    assert [purpose for purpose in ("demo", "interop", "tests") if setup_tool.is_configured(purpose)] == purposes


def test_a_demo_needs_a_part_of_the_python_packages(tool):
    setup = tool("setup")
    command = [sys.executable, "-c", setup.REQUIREMENTS_SCRIPT, setup.ROOT / "pyproject.toml"]
    full, demo = (
        subprocess.run([*command, purpose], capture_output=True, text=True, check=True).stdout.splitlines()
        for purpose in ("tests", "demo")
    )
    assert set(demo) < set(full)
    for name in ("numpy", "nanobind", "cmake", "pillow"):
        assert any(line.startswith(name) for line in demo)
    assert any(line.startswith("pytest") for line in set(full) - set(demo))


def test_helpful_packages_alone_are_no_reason_to_fail(setup_tool, monkeypatch):
    monkeypatch.setattr(
        setup_tool, "is_installed", lambda package: package in setup_tool.REQUIRED_PACKAGES | setup_tool.TEST_PACKAGES
    )
    monkeypatch.setattr(setup_tool, "apt_command", lambda: None)
    setup_tool.install_system_packages(has_tests=True)
    assert setup_tool.commands == []


def test_an_old_python_is_refused_with_a_way_out(setup_tool, monkeypatch):
    monkeypatch.setattr(setup_tool.sys, "version_info", (3, 9, 2))
    with pytest.raises(setup_tool.SetupError, match=r"3\.10 or newer.*3\.9\.2(.|\n)*make setup PYTHON="):
        setup_tool.check_python()


def test_the_environment_knows_weft_as_an_installed_distribution(setup_tool, monkeypatch, tmp_path):
    import importlib.metadata

    site = tmp_path / ".venv/lib/python3.12/site-packages"
    site.mkdir(parents=True)
    monkeypatch.setattr(setup_tool, "VENV", tmp_path / ".venv")
    setup_tool.make_importable()
    (found,) = importlib.metadata.distributions(name="weft-lang", path=[str(site)])
    assert found.version.count(".") == 2
    assert (site / "weft_lang.pth").read_text() == f"{setup_tool.BUILD / 'py'}\n"
