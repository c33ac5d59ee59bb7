# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that the bench builds: options, keys, and a build of a source tree whose Makefile writes an image.

The tools of a build are stand-ins on PATH; only make is real.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastenough.cli.bench import command
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.kernel_build import build_key, missing_packages
from fastenough.virtual.kernel_config import all_options, dropped_options, fragment_text, read_options
from fastenough.virtual.kernel_source import KernelSource, find_source
from fastenough.virtual.module import IMAGE_RECORD, SOURCES, build_module, has_headers
from tests.support.json_documents import require_valid
from tests.support.kernel_trees import MAKEFILE, TOOLS, install_tools

PACKAGES = {"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu", "xz": "xz-utils"}
"""Debian's packages that are not named like the tool."""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree whose release is 6.99, with its tools on PATH, and a cache of its own."""
    tree = tmp_path / "linux"
    tree.mkdir()
    (tree / "Makefile").write_text(MAKEFILE)
    (tree / "Kconfig").touch()
    install_tools(tmp_path, monkeypatch)
    return tree


def build(source: Path | str, *words: str) -> Result:
    return CliRunner().invoke(command, ["kernel", "build", "--source", str(source), *words])


def refusal(source: Path | str, *words: str) -> str:
    """The message of a build that is refused as wrong usage."""
    error = build(source, *words).exception
    assert isinstance(error, BadInput), error
    return str(error)


def fragment(folder: Path, *lines: str) -> Path:
    path = folder / "user.config"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def makes(tree: Path) -> list[str]:
    """The variables of each compilation."""
    (made,) = (tree.parent / "cache" / "virtual" / "builds").glob("*/made")
    return made.read_text().splitlines()


def test_a_kernel_is_built_with_the_compiler_of_its_guests_and_is_found_by_its_name(tree: Path) -> None:
    done = build(tree, "--kernel", "mine", "--json", "--fragment", str(fragment(tree.parent, "CONFIG_HZ=100")))
    assert done.exit_code == 0, done.output
    result = require_valid("bench kernel build", done.stdout)
    assert (result["kernel"], result["arch"], result["source"], result["built"]) == ("mine", "arm64", str(tree), True)
    kernel = find_kernel("mine")
    assert (kernel.arch, kernel.release) == ("arm64", result["release"])
    assert kernel.release.startswith("6.99-")
    assert makes(tree) == ["arm64 aarch64-linux-gnu- aarch64-linux-gnu-gcc bench"]
    assert read_options(kernel.headers / ".config")["HZ"] == "100"


def test_the_files_of_a_source_tree_may_change_and_make_decides_what_to_compile(tree: Path) -> None:
    assert [build(tree).exit_code, build(tree).exit_code] == [0, 0]
    assert len(makes(tree)) == 2


def test_each_build_of_a_directory_is_a_kernel_of_its_own(tree: Path) -> None:
    for name, content in (("before", "1"), ("after", "2")):
        (tree / "content").write_text(content)
        (tree / "module").write_text(content)
        assert build(tree, "--kernel", name).exit_code == 0
    kernels = [find_kernel(name) for name in ("before", "after")]
    assert [kernel.image.read_bytes()[-1:] for kernel in kernels] == [b"1", b"2"]
    assert [kernel.module("test") for kernel in kernels] == [b"1", b"2"]
    assert [has_headers(kernel) for kernel in kernels] == [False, True], "the headers are those of the last build"
    assert [build_module(kernel).read_bytes() for kernel in kernels] == [
        kernel.image.read_bytes() for kernel in kernels
    ]
    with pytest.raises(NotApplicable, match="before"):
        build_module(kernels[0], SOURCES / "rtdm")
    (tree / "broken.c").touch()
    assert build(tree).exit_code != 0
    assert not has_headers(kernels[1]), "an incomplete build may have changed them"


def test_a_module_is_that_of_the_image_whose_name_it_is_built_for(tree: Path) -> None:
    """A name stays, and the release as well; the structures of the kernel may have changed."""
    for content in ("1", "2"):
        (tree / "content").write_text(content)
        assert build(tree).exit_code == 0
        assert build_module(find_kernel("own")).read_bytes()[-1:] == content.encode()


def test_a_module_is_not_stored_if_a_build_changed_the_headers_meanwhile(tree: Path) -> None:
    build(tree)
    kernel = find_kernel("own")
    with (kernel.headers / "Makefile").open("a") as makefile:
        makefile.write(f"\t@: >{IMAGE_RECORD}\n")
    for _ in range(2):
        with pytest.raises(NotApplicable, match="own"):
            build_module(kernel, variables=("OTHER=1",))


def test_a_kernel_whose_modules_do_not_build_is_registered_with_the_reason(tree: Path) -> None:
    (tree / "Makefile").write_text(MAKEFILE.replace("@cat $(O)/arch", "@cat $(O)/no-such-folder"))
    done = build(tree)
    assert done.exit_code == 0
    assert "no-such-folder" in done.stderr and find_kernel("own").image.is_file()


def test_a_module_that_changes_alone_is_another_kernel(tree: Path) -> None:
    for content in ("1", "2"):
        (tree / "module").write_text(content)
        assert build(tree, "--kernel", f"own-{content}").exit_code == 0
    assert [find_kernel(f"own-{content}").module("test") for content in "12"] == [b"1", b"2"]


def test_a_copy_that_no_kernel_has_used_for_a_day_is_removed(tree: Path) -> None:
    """A replaced kernel is used for a day, and a copy without a name may be about to get one."""
    built = tree.parent / "cache" / "virtual" / "built"
    (built / "probe-arm64-0123456789abcdef").mkdir(parents=True)
    for content in "123":
        (tree / "content").write_text(content)
        assert build(tree, "--kernel", "kept" if content == "1" else "own").exit_code == 0
    replaced = [find_kernel(name).image.resolve().parent for name in ("kept", "own")]
    unnamed, unfinished = built / f"{'a' * 12}-{'b' * 12}", built / f".{'a' * 12}-{'c' * 12}"
    for folder in (unnamed, unfinished, *built.iterdir()):
        folder.mkdir(exist_ok=True)
        os.utime(folder, (1, 1))
    fresh = built / f"{'a' * 12}-{'d' * 12}"
    fresh.mkdir()
    (tree / "content").write_text("4")
    assert build(tree, "--kernel", "own").exit_code == 0
    left = set(built.iterdir())
    assert {*replaced, fresh, built / "probe-arm64-0123456789abcdef"} <= left
    assert len(left) == 6 and not {unnamed, unfinished} & left


def test_a_copy_of_an_unchanged_source_stays_until_it_has_its_name(tree: Path) -> None:
    assert build(tree).exit_code == 0
    (copy,) = (tree.parent / "cache" / "virtual" / "built").iterdir()
    os.utime(copy, (1, 1))
    assert build(tree, "--kernel", "mine").exit_code == 0
    assert copy.stat().st_mtime > 1 and find_kernel("mine").image.is_file()


def test_a_package_is_built_once(tree: Path) -> None:
    cached = tree.parent / "cache" / "virtual" / "sources" / "linux-source-6.99_6.99.1-1"
    shutil.copytree(tree, cached)
    results = [json.loads(build("linux-source-6.99", "--json").stdout) for _ in range(2)]
    assert [result["built"] for result in results] == [True, False]
    assert results[0]["source"] == cached.name
    find_kernel("own").image.resolve().write_bytes(b"incomplete")
    assert json.loads(build("linux-source-6.99", "--json").stdout)["built"]


@pytest.mark.parametrize("lines", [["CONFIG_DROPPED=y"], ["CONFIG_DROPPED=m", "CONFIG_OTHER=y"]])
def test_options_that_are_not_in_effect_are_named(tree: Path, lines: Sequence[str]) -> None:
    message = refusal(tree, "--fragment", str(fragment(tree.parent, *lines)))
    assert lines[0] in message and "CONFIG_OTHER" not in message
    assert not list((tree.parent / "cache").rglob("made"))


def test_errors_of_the_compiler_are_errors_of_the_build_and_the_next_build_continues(tree: Path) -> None:
    (tree / "broken.c").touch()
    error = build(tree).exception
    assert type(error) is FastenoughError and "broken.c:7:1: error: no such thing" in str(error)
    (tree / "broken.c").unlink()
    assert build(tree).exit_code == 0


@pytest.mark.parametrize("tool", TOOLS)
def test_missing_packages_are_named(tree: Path, tool: str) -> None:
    (tree.parent / "tools" / tool).unlink()
    package = PACKAGES.get(tool, tool)
    assert missing_packages("arm64") == [package]
    assert f"apt-get install {package}" in refusal(tree)


@pytest.mark.parametrize("source", ["missing", "linux-source-six", "."])
def test_other_sources_are_refused(tree: Path, source: str) -> None:
    with pytest.raises(BadInput):
        find_source(str(tree.parent / source))


@pytest.mark.parametrize("name", ["li nux", "linux:6"])
def test_paths_that_make_would_split_are_refused(tree: Path, name: str) -> None:
    with pytest.raises(BadInput, match="spaces or colons"):
        find_source(str(tree.rename(tree.with_name(name))))


def test_a_link_to_a_source_is_the_source(tree: Path) -> None:
    link = tree.with_name("link")
    link.symlink_to(tree)
    assert find_source(str(link)) == find_source(str(tree))


def test_a_configured_source_tree_is_refused(tree: Path) -> None:
    (tree / ".config").touch()
    assert "mrproper" in refusal(tree)


def test_without_apt_a_package_is_not_available(tree: Path) -> None:
    with pytest.raises(NotApplicable):
        find_source("linux-source-6.99")


@pytest.mark.parametrize("name", ["stock", "as-booted", "No"])
def test_names_of_debian_kernels_are_refused_before_the_build(tree: Path, name: str) -> None:
    assert name in refusal(tree, "--kernel", name)
    assert not (tree.parent / "cache").exists()


def test_lines_of_fragments(tmp_path: Path) -> None:
    path = fragment(tmp_path, "# a comment", "", "CONFIG_A=y", "# CONFIG_B is not set", 'CONFIG_C="a b"', "CONFIG_A=m")
    options = {"A": "m", "B": "n", "C": '"a b"'}
    assert read_options(path) == options
    path.write_text(fragment_text(options))
    assert read_options(path) == options


@pytest.mark.parametrize("line", ["A=y", "CONFIG_A", "CONFIG_A=", "config_a=y"])
def test_a_line_that_is_no_option_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadInput, match="line 2"):
        read_options(fragment(tmp_path, "CONFIG_B=y", line))


def test_fragments_add_options_and_change_no_required_one(tmp_path: Path) -> None:
    first = fragment(tmp_path, "CONFIG_HZ=100", "CONFIG_SMP=y").rename(tmp_path / "first.config")
    options = all_options("amd64", True, [first, fragment(tmp_path, "CONFIG_HZ=250")])
    assert (options["HZ"], options["PREEMPT_RT"], options["VIRTIO_PCI"]) == ("250", "y", "y")
    assert "PREEMPT_RT" not in all_options("arm64", False, [])
    with pytest.raises(BadInput, match="CONFIG_SMP"):
        all_options("arm64", False, [fragment(tmp_path, "# CONFIG_SMP is not set")])


def test_an_option_that_is_absent_is_not_set() -> None:
    assert dropped_options({"A": "y", "B": "n", "C": "n", "D": "m"}, {"A": "y", "C": "y", "D": "y"}) == [
        "# CONFIG_C is not set",
        "CONFIG_D=m",
    ]


def test_the_key_depends_on_version_architecture_and_options_but_not_on_their_order() -> None:
    source = KernelSource(Path("/sources/any"), "linux-source-6.99_1")
    key = build_key(source, "arm64", {"A": "y", "B": "n"})
    assert key == build_key(source, "arm64", {"B": "n", "A": "y"})
    others = {
        build_key(KernelSource(source.tree, "linux-source-6.99_2"), "arm64", {"A": "y", "B": "n"}),
        build_key(KernelSource(source.tree, None), "arm64", {"A": "y", "B": "n"}),
        build_key(source, "amd64", {"A": "y", "B": "n"}),
        build_key(source, "arm64", {"A": "y", "B": "y"}),
    }
    assert len(others | {key}) == 5


def test_a_missing_source_is_reported_before_missing_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "--source /nonexistent" in refusal("/nonexistent")
