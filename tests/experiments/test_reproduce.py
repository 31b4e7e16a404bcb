"""The paper's experiments: tables survive interruption, numbers mean what they say, the whole set runs."""

import resource
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import log_ndtr

import gpcert as gc
from gpcert.cli import main
from gpcert_paper.reproduce import EXPERIMENTS, registry, reproduce
from gpcert_paper.reproduce.dynamic_hmc import _Target, dynamic_sample
from gpcert_paper.reproduce.hmc import Chains, _draws, _Walls, sample
from gpcert_paper.reproduce.job import Job, Table
from gpcert_paper.reproduce.page import Claim, Findings, write_page
from gpcert_paper.reproduce.quality import _distance
from gpcert_paper.reproduce.registry import _experiment
from helpers.cli_files import Running
from helpers.exact import small_model


def table(path, run="quick"):
    return Table(path / "t.csv", ("name", "point"), ("value",), ("status",), f"a {run} run")


def test_a_second_run_finds_the_rows_of_the_first(tmp_path):
    first = table(tmp_path)
    first.add("a, with a comma", 3, 0.1, "done")
    first.add("b", 4, 1e-300, "done")
    again = table(tmp_path)
    assert again.rows == first.rows
    assert again.missing([("a, with a comma", 3), ("b", 4), ("b", 5)]) == [("b", 5)]
    assert again.column("value", name="b") == [1e-300]


def test_rows_of_another_kind_of_run_are_neither_used_nor_replaced(tmp_path):
    table(tmp_path, "full")  # no rows: nothing to lose
    table(tmp_path, "quick").add("a", 1, 0.5, "done")
    with pytest.raises(
        ValueError, match=r"t\.csv must be of a full run, got a quick run: choose another fol"
    ):
        table(tmp_path, "full")
    with pytest.raises(ValueError, match=r"must be of a quick run, got a quick run with other columns"):
        Table(tmp_path / "t.csv", ("name", "point"), ("other",), ("status",), "a quick run")
    assert [row["value"] for row in table(tmp_path, "quick").rows] == [0.5]


def test_a_damaged_store_of_rows_is_told(tmp_path):
    table(tmp_path).add("a", 1, 0.5, "done")
    (tmp_path / "rows.db").write_bytes(b"\0" * 5000)
    for beside in tmp_path.glob("rows.db-*"):
        beside.unlink()
    with pytest.raises(gc.StoreError, match=r"rows\.db must be a gpcert store, got"):
        table(tmp_path)


def test_rows_are_written_as_csv_exactly(tmp_path):
    rows = table(tmp_path)
    rows.add("a, with a comma", 1, np.float64(0.1), "done")
    rows.add("b", 2, float("nan"), "done")
    table(tmp_path).save()
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "name,point,value,status",
        '"a, with a comma",1,0.1,done',
        "b,2,nan,done",
    ]


def test_an_interrupted_experiment_goes_on_where_it_stopped(tmp_path):
    def stop(done, total, what):
        if done == 2:
            raise KeyboardInterrupt

    def run(progress):
        job = Job(tmp_path, tmp_path, True, progress)
        results = job.table("t", ("point",), ("square",))
        for (point,) in job.steps(results.missing([(i,) for i in range(4)]), "squares"):
            results.add(point, point**2)
        return results

    with pytest.raises(KeyboardInterrupt):
        run(stop)
    asked = []
    results = run(lambda done, total, what: asked.append(total))
    assert asked[0] == 2  # two of four were left
    assert results.column("square") == [0, 1, 4, 9]


def test_a_row_that_cannot_be_written_is_told(tmp_path):
    rows = table(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(gc.StoreError, match=r"rows\.db could not .*the row not written is a,1,0.5,done"):
            rows.add("a", 1, 0.5, "done")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path, capsys):
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", "/proc/out"):
        assert main(["reproduce", "outline", "--quick", "--out", str(out)]) == 2
        assert f"gpcert: out must be a folder that can be written, got {out}" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_an_experiment_that_goes_on_later(tmp_path, number):
    run = Running(tmp_path, "reproduce", "safety-spam", "--quick", "--out", "out")
    run.until("[1-9][0-9]*/")
    run.to_group(number)
    status, _, told = run.end()
    assert status == 128 + number
    assert "gpcert: interrupted; the same command goes on where this one stopped" in told
    assert "Traceback" not in told
    assert list(tmp_path.glob("out/safety-spam/rows.db"))
    assert not list(tmp_path.glob("out/**/.*"))  # nothing half written


def test_a_full_disk_leaves_the_old_page(tmp_path):
    """A limit on file sizes stands for it; the first page was whole."""
    findings = Findings("title", [Claim("s", "1", "1", True)], [], ["note"])
    path = write_page(tmp_path, findings, [])
    before = path.read_text()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"index\.html"):
            write_page(tmp_path, Findings("other", findings.claims, [], ["note"]), [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == before


def test_pages_escape_what_they_show(tmp_path):
    (tmp_path / "f.png").write_bytes(b"a picture")
    claim = Claim("<b>bold</b>", "1 < 2", "a & b", False, '"quoted"')
    path = write_page(tmp_path, Findings("<title>", [claim], [("f", "<caption>")], ["<note>"]), ["t.csv"])
    text = path.read_text()
    assert "<b>" not in text
    assert "<note>" not in text
    assert "&lt;b&gt;" in text
    assert "<caption>" not in text
    assert "disagrees" in (tmp_path / "claims.csv").read_text()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_name_is_a_function(name):
    assert callable(_experiment(name))


def test_unknown_names_get_one_sentence(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"name must be all or one of outline, .*, got 'figure 9'"):
        reproduce("figure 9", tmp_path)
    assert main(["reproduce", "figure 9", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("gpcert: name must be all or one of")


@pytest.mark.parametrize(("name", "package"), [("runtime", "skimage"), ("all", "arviz_stats")])
def test_missing_packages_are_missed_at_once(tmp_path, monkeypatch, capsys, name, package):
    monkeypatch.setattr(registry, "find_spec", lambda wanted: None if wanted == package else wanted)
    assert main(["reproduce", name, "--out", str(tmp_path / "new")]) == 2
    expected = f"gpcert: these experiments need {package}: pip install 'gpcert-paper[reproduce]'\n"
    assert capsys.readouterr().err == expected
    assert not (tmp_path / "new").exists()


def test_the_density_sampled_is_the_posterior():
    """Gradient by differences; at the approximation's mean the conditional mean is the predicted one."""
    post = small_model(8, 2, seed=2)
    y = np.where(np.arange(8) % 2, 1.0, -1.0)
    target = _Target(post, y)
    rng = np.random.default_rng(0)
    v = rng.standard_normal(target.size)
    slope = [(target.value(v + e) - target.value(v - e)) / 2e-6 for e in 1e-6 * np.eye(target.size)]
    assert target.gradient(v)[0] == pytest.approx(np.array(slope), rel=1e-5, abs=1e-6)
    X = rng.standard_normal((5, 2))
    A, variance = target.conditional(X)
    mean, S = post.latent(X)
    assert A @ target.latent(np.zeros(target.size)) == pytest.approx(mean, abs=1e-8)
    covariance = A @ target._B @ target._B.T @ A.T
    assert variance + np.diagonal(covariance) == pytest.approx(S, abs=1e-8)

    # Up to a constant the density is N(f; 0, K) prod Phi(y f).
    def log_density(v):
        f = target._T @ target.latent(v)
        K = post.kernel(post.centres)
        return -0.5 * f @ np.linalg.solve(K, f) + log_ndtr(y * f).sum()

    w = rng.standard_normal(target.size)
    assert target.value(w) - target.value(v) == pytest.approx(log_density(v) - log_density(w), rel=1e-6)


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.6, 0.999])
def test_the_flow_leaves_a_gaussian_on_an_orthant_as_it_is(correlation):
    """Means and second moments of a bivariate normal on the positive quadrant, in closed form."""
    walls = _Walls(np.array([[1.0, correlation], [correlation, 1.0]]))
    rng, g, draws = np.random.default_rng(3), np.array([0.5, 3.0]), np.empty((20_000, 2))
    for i in range(len(draws)):
        g = draws[i] = walls.flow(g, rng)
    assert (draws > 0).all()
    mass = 0.25 + np.arcsin(correlation) / (2 * np.pi)
    mean = (1 + correlation) / (2 * np.sqrt(2 * np.pi) * mass)
    square = 1 + correlation * np.sqrt(1 - correlation**2) / (2 * np.pi * mass)
    assert draws.mean(axis=0) == pytest.approx([mean, mean], rel=0.03)
    assert (draws**2).mean(axis=0) == pytest.approx([square, square], rel=0.06)


@pytest.mark.parametrize("scale", [0.3, 30.0])
def test_draws_have_the_posteriors_moments(scale):
    """Against the prior weighed by the likelihood; five labels, one of them against its neighbours."""
    rng = np.random.default_rng(4)
    X = np.array([[0.0], [0.4], [0.9], [1.5], [2.5]])
    y = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    post = gc.GPClassifier(gc.RBF(1.0, scale), max_evals=0).fit(X, y).posterior_
    test = np.array([[0.2], [1.2], [4.0]])
    means, variance = _draws(post, y, test, 4, 100, 5000)
    everything = np.vstack([X, test])
    root = np.linalg.cholesky(post.kernel(everything) + 1e-9 * np.eye(8))
    f = rng.standard_normal((400_000, 8)) @ root.T
    weights = np.exp(log_ndtr(y * f[:, :5]).sum(axis=1))
    weights /= weights.sum()
    expected = weights @ f[:, 5:]
    sd = np.sqrt(weights @ (f[:, 5:] - expected) ** 2)
    assert np.abs(means.mean(axis=(0, 1)) - expected).max() < 0.04 * sd.max()
    assert np.hypot(means.std(axis=(0, 1)), np.sqrt(variance)) == pytest.approx(sd, rel=0.04)


@pytest.mark.full
def test_two_samplers_agree():
    data = gc.datasets.load("synthetic2d")
    X, y = data.X_train[:80], np.where(data.y_train[:80] == data.y_train.max(), 1.0, -1.0)
    post = gc.GPClassifier(gc.RBF(1.0, 20.0), max_evals=0).fit(X, y).posterior_
    first, second = (f(post, y, data.X_test[:10], 4, 200, 1000) for f in (sample, dynamic_sample))
    assert max(first.rhat, second.rhat) < 1.02
    assert min(first.ess, second.ess) > 400
    spreads = [np.hypot(c.means.std(axis=(0, 1)), np.sqrt(c.variance)) for c in (first, second)]
    shift = np.abs(first.means.mean(axis=(0, 1)) - second.means.mean(axis=(0, 1)))
    assert (shift < 0.15 * spreads[0]).all()
    assert spreads[1] == pytest.approx(spreads[0], rel=0.1)


def test_the_distance_is_in_standard_deviations():
    rng = np.random.default_rng(1)
    draws = 3.0 + 2.0 * rng.standard_normal((4, 5000, 1))
    chains = Chains(draws, np.array([1e-12]), 1.0, 1.0)
    assert _distance(chains, 0, 3.0, 2.0)[0] == pytest.approx(0.0, abs=0.05)
    assert _distance(chains, 0, 5.0, 2.0)[:2] == pytest.approx((1.0, 2.0), abs=0.05)
    assert _distance(chains, 0, 3.0, 4.0)[0] == pytest.approx(1.0, abs=0.05)  # W2 of N(0, 1) and N(0, 4) is 1


@pytest.mark.full
def test_the_whole_set_runs_in_quick_and_a_second_run_adds_nothing(tmp_path):
    command = [sys.executable, "-m", "gpcert", "reproduce", "all", "--quick", "--out", str(tmp_path)]
    subprocess.run(command, check=True, timeout=900)
    tables = {p: p.read_bytes() for p in tmp_path.glob("*/*.csv")}
    for name in EXPERIMENTS:
        folder = tmp_path / name
        assert (folder / "index.html").exists()
        assert (folder / "claims.csv").exists()
        pictures = {p.stem for p in folder.glob("*.png")}
        assert pictures
        assert pictures == {p.stem for p in folder.glob("*.svg")}
    subprocess.run(command, check=True, timeout=300)
    assert {p: p.read_bytes() for p in tmp_path.glob("*/*.csv")} == tables
