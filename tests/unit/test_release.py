"""The files of a release agree with each other."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import yaml

import shape_of_learning
from checkouts import check_out

REPOSITORY = Path(__file__).parents[2]


def test_all_files_name_one_version():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    readme = (REPOSITORY / "README.md").read_text()
    assert citation["version"] == shape_of_learning.__version__
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == shape_of_learning.__version__
    assert set(re.findall(r"v(\d+\.\d+\.\d+)", readme)) <= {shape_of_learning.__version__}


def test_the_blocks_of_the_clean_room_are_on_its_pages(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "tests/clean_room")
    run = import_module("run")
    assert {block.place.page for block in run.read_all()} == {*run.PAGES}


def test_links_of_pages_lead_to_files():
    pages = [
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("docs/**/*.md"),
        REPOSITORY / "config/README.md",
    ]
    dead = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not dead


def read_workflow(name):
    return yaml.load((REPOSITORY / ".github/workflows" / name).read_text(), Loader=yaml.BaseLoader)


def test_only_a_tag_publishes_the_built_files():
    release = read_workflow("release.yml")
    assert release["on"] == {"push": {"tags": ["v*"]}}
    assert release["permissions"] == {"contents": "read"}
    publish = release["jobs"]["publish"]
    assert (publish["needs"], publish["permissions"]) == ("build", {"id-token": "write"})
    assert any(step["uses"].startswith("pypa/gh-action-pypi-publish@") for step in publish["steps"])
    ci = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    assert "publish" not in ci


def test_the_tag_of_a_release_is_compared_with_the_version_without_any_package(tmp_path):
    (step,) = [
        s
        for s in read_workflow("release.yml")["jobs"]["build"]["steps"]
        if "GITHUB_REF_NAME" in s.get("run", "")
    ]
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "python").symlink_to(sys.executable)
    python = f"{bare}/python -S"

    def release_step_succeeds(tag):
        variables = {"PATH": os.environ["PATH"], "GITHUB_REF_NAME": tag}
        command = step["run"].replace("python -c", f"{python} -c")
        return (
            subprocess.run(["bash", "-c", command], cwd=REPOSITORY, env=variables).returncode == 0
        )

    assert release_step_succeeds(f"v{shape_of_learning.__version__}")
    assert not release_step_succeeds("v0.0.0")


def test_a_wheel_has_the_page_the_atlas_and_the_types(tmp_path):
    checkout = check_out(tmp_path / "checkout")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, checkout.folder)
    shutil.copytree(REPOSITORY / "atlas", checkout.folder / "atlas")
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [uv, "build", "--quiet", "--wheel", "--out-dir", tmp_path, checkout.folder], check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = REPOSITORY / "workflow/shape_of_learning"
    files = [*package.glob("explorer/page/*"), *package.glob("**/*.pyi"), package / "py.typed"]
    files += [*package.glob("**/*.py"), package / "atlas/atlas.json"]
    assert {str(file.relative_to(package.parent)) for file in files} <= names
    assert not [name for name in names if name.startswith(("papers/", "scripts/", "tests/"))]
