"""Files that ask for time or memory out of proportion to their size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flint import arb

from gpcert_check import Checker, Reject, joint
from gpcert_check import leaves as leaves_module
from gpcert_check.balls import read_region
from gpcert_check.command import main
from gpcert_check.leaves import Slice, leaves
from gpcert_check.logit import SIGMA, mean_of
from gpcert_check.work import Work
from making import Prover, Toy, at, box, everywhere, hexed
from softmax_toys import SoftToy

WIDE = 10_000


def wide(tmp_path: Path, D: int) -> tuple[Checker, str]:
    sha = Toy(1, 1, D).write(tmp_path / "m")
    return Checker(str(tmp_path / "m")), sha


def test_splits_of_many_features_are_few() -> None:
    """Every open box keeps its ends: 200,000 nested splits of 10,000 features would take 32 GB."""
    region = read_region(box([0.0] * WIDE, [1.0] * WIDE), WIDE)
    nodes = [{"split": j, "at": (2.0**-k).hex()} for j in range(400) for k in range(1, 501)]
    with pytest.raises(Reject, match="at most 2000 nodes"):
        list(leaves(nodes, region))


def test_a_leaf_of_many_features_is_not_begun(tmp_path: Path) -> None:
    """Its form H alone would have 36 million balls, and its factor take a day."""
    D = 6_000
    checker, _ = wide(tmp_path, D)
    region = read_region(box([0.0] * D, [1.0] * D), D)
    zero = hexed([0.0] * D)
    leaf = (region.lower, region.upper, {"ref": zero, "D": zero, "y": zero})
    level = checker.subject.link.level({"t": (0.0).hex()}, checker.model.latents[0])
    with pytest.raises(Reject, match="more work than this checker"):
        Slice(checker.model.latents[0], region, 1).prove([leaf], [level], False)


def test_classes_are_limited(tmp_path: Path) -> None:
    toy, C = Toy(1, 1, 1), 1_001
    link = {"likelihood": {"name": "one_vs_rest", "link": {"name": "logit"}}}
    shapes = {"weights": ([1, C], [0.0] * C), "precision": ([C, 1, 1], [0.5] * C)}
    toy.write(tmp_path / "m", toy.description() | link, **shapes)
    with pytest.raises(Reject, match=r"an integer in \[1, 1000\], got 1001"):
        Checker(str(tmp_path / "m"))


def test_the_name_of_a_file_cannot_forge_a_line(tmp_path: Path, capsys) -> None:
    """Nor end the command: bytes that are no text are allowed in names."""
    _, sha = wide(tmp_path, 1)
    told = {"format": "gpcert-proof-1", "model": sha, "facts": [None], "regions": [box([0.0], [1.0])]}
    good = json.dumps(told | {"claims": [at(1, ">=", 0.0, [0.5])]}).encode()
    for name in (b"p\nq.json: PROVED for the model", b"p\xff.json", b"p\r\x1b[2Jq"):
        for blob, status, count in ((b"{", 1, 2), (good, 0, 3)):
            path = os.path.join(os.fsencode(tmp_path), name)
            Path(os.fsdecode(path)).write_bytes(blob)
            assert main([str(tmp_path / "m"), os.fsdecode(path)]) == status
            said = capsys.readouterr().out
            assert said.isascii()
            assert said.count("\n") == count
            assert "\x1b" not in said
            assert "\r" not in said


def test_products_with_the_precision_count_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leaf has one, n^2 terms: with 5,000 centres 100,000 leaves would take half a day."""

    def stop(work: int) -> None:
        spent.append(work)
        raise Reject("enough")

    spent: list[int] = []
    monkeypatch.setattr(leaves_module, "spend", stop)
    monkeypatch.setattr(joint, "spend", stop)
    monkeypatch.setattr(joint, "_comparisons", lambda *about: [SimpleNamespace(parts=[None, None])])
    latent: Any = SimpleNamespace(n=5_000)
    view: Any = SimpleNamespace(latent=latent, moving=[0])
    several: Any = SimpleNamespace(latents=[latent] * 2, classes=2)
    with pytest.raises(Reject):
        Slice.prove(view, [([], [], {})] * 100, [None] * 100, False)
    with pytest.raises(Reject):
        joint.prove_jointly(several, view, None, [([], [], {})] * 100)
    assert min(spent) >= 100 * 5_000**2 // 20


def test_points_slices_and_integrals_count_as_work(tmp_path: Path) -> None:
    """50,000 points of a model with 5,000 centres take many hours, as do 50,000 claims in which one of
    3,000 features moves, or a tangent of its own for each of 100,000 leaves.
    """
    n, D = 30, 40
    Toy(1, n, D).write(tmp_path / "m")
    latent, region = Checker(str(tmp_path / "m")).model.latents[0], read_region(box([0.0] * D, [1.0] * D), D)
    latent.settle(arb(0), arb(0))
    for least, ask in (
        (n * n // 20 + n * D, lambda: latent.at([0.5] * D)),
        (n * D // 5, lambda: Slice(latent, region, 1)),
        (2_000, lambda: mean_of(SIGMA, arb(0.3), arb(2))),
        (2_000, lambda: mean_of(SIGMA, arb(0.3), arb(12))),
    ):
        before = Work.spent
        ask()
        assert Work.spent >= before + least


def test_points_of_a_softmax_count_as_work(tmp_path: Path) -> None:
    """Every rival has contrasts of its own, sums of blocks, and kernels at the point."""
    for D in (2, 40):
        toy = SoftToy(1, 4, D)
        toy.write(tmp_path / "m")
        subject, before = Checker(str(tmp_path / "m")).subject, Work.spent
        subject.rho = arb(0)
        claim: Any = SimpleNamespace(quantity="margin", label=0, sense=-1, value=0.0)
        subject.decided(claim, [0.1] * D)
        assert Work.spent >= before + (3 * 4) ** 2 // 4 + 2 * 4 * D


@pytest.mark.parametrize("correlated", [True, False])
def test_slopes_of_a_softmax_count_as_work(
    correlated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leaf of a softmax takes a product with the slopes of all kernels for every pair of classes, of
    independent latents three: with 100 centres and 10,000 features, a reference in as many strings, each of
    100 leaves would take minutes.
    """
    n, D, pairs = 5, 30, 3
    toy = SoftToy(1, n, D, correlated)
    prover = Prover(toy, tmp_path / "m", toy.facts())
    subject, x, far = prover.checker.subject, [arb(0.1)] * D, [arb(0.01)] * (D - 10) + [arb(0)] * 10
    before = Work.spent
    subject.near(x, arb(0))
    point = Work.spent - before
    assert point >= n * D
    subject.near(x, arb(1), far)
    assert Work.spent - before - 2 * point >= (1 + (2 if correlated else 3) * pairs) * n * (D - 10)
    region = box([0.0] * D, [1e-6] * D)
    split = {"split": 0, "at": (5e-7).hex()}
    leaf = {"ref": hexed([0.0] * D)}
    claims = [everywhere(1, ">=", 1e-9, {"tree": tree}) for tree in ([leaf], [split, leaf, leaf])]
    spent = []
    for claim in claims:
        (tmp_path / "p").write_text(json.dumps(prover.file([region], [claim])))
        prover.checker.check(str(tmp_path / "p"))
        spent.append(Work.spent)
    assert spent[1] - spent[0] >= (1 + 2 * pairs) * n * D
    monkeypatch.setattr("gpcert_check.work.MOST_WORK", spent[1] - 1)
    with pytest.raises(Reject, match="more work than this checker"):
        prover.checker.check(str(tmp_path / "p"))


def test_names_that_the_terminal_cannot_write_end_no_command(tmp_path: Path) -> None:
    """Of a class or a file: what is proved is said all the same, and the next file is checked."""
    toy = Toy(1, 1, 1)
    names = {"classes": {"kind": "str", "labels": ["\u65e5\u672c", "\xdf"]}}
    sha = toy.write(tmp_path / "m", toy.description() | names)
    told = {"format": "gpcert-proof-1", "model": sha, "facts": [None], "regions": [box([0.0], [1.0])]}
    paths = [tmp_path / "p\u65e5.json", tmp_path / "q.json"]
    for path in paths:
        path.write_text(json.dumps(told | {"claims": [at(0, ">=", 0.0, [0.5])]}))
    command = [sys.executable, "-m", "gpcert_check", str(tmp_path / "m"), *map(str, paths)]
    for encoding in ("ascii", "cp1252", "utf-8"):
        run = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": encoding})
        assert (run.returncode, run.stderr) == (0, b"")
        said = run.stdout.decode(encoding)
        assert said.count("PROVED") == 2
        assert ("\u65e5\u672c" if encoding == "utf-8" else "\\u65e5\\u672c") in said
