"""Mistakes about questions and models, each with its sentence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csr_array
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import gpcert as gc
from helpers.mistakes_tables import Mistakes, P, T, X, Y, ball, clf, plain, post, regr, three, x

ANY = (
    "post must be a Posterior, a fitted GPClassifier, pipeline or search, "
    "or a model of GPy, GPyTorch or GPflow, got "
)
STEP = "pipeline steps before the classifier must be affine feature by feature"


def pipeline(*steps: Any) -> Any:
    return make_pipeline(*steps, gc.GPClassifier(max_evals=0)).fit(T, Y)


RNG = "rng must be a whole number in [0, 2^63), a numpy Generator or None, got "
TURNED = "X must be points and y their labels, in this order, got shapes (30,) and (30, 3)"
SPARSE = "must be a dense array, got a sparse matrix: its toarray() is one"
OWN = "kernel must be one of gpcert, got "
MATERN = ConstantKernel(3.0) * Matern([1.0, 2.0, 3.0], nu=1.5)
SAFE = gc.certify(post, [ball])
PICKED = "answers are picked by a position, a slice, positions or a mask of length 1, got "
VERDICT = "an answer is neither true nor false, got Verdict: ask for .safe"
VERDICTS = "status must be compared with 'safe', 'unsafe', 'unknown', got "
MISTAKES: Mistakes = [
    (VERDICT, lambda: bool(gc.certify(post, ball))),
    (VERDICT, lambda: all(gc.certify(post, [ball, ball]))),
    (VERDICT, lambda: any(gc.certify(post, [ball]))),
    ("an answer is neither true nor false, got Attack: ask for .success", lambda: not gc.attack(post, ball)),
    (
        "an answer is neither true nor false, got ProbabilityRange",
        lambda: bool(gc.probability_range(post, ball)),
    ),
    (VERDICTS + "'Safe' (did you mean 'safe'?)", lambda: gc.certify(post, ball).status == "Safe"),
    (VERDICTS + "'proved'", lambda: gc.certify(post, ball).status != "proved"),
    (VERDICTS + "'converged'", lambda: gc.certify(post, ball).status in ("converged", "safe")),
    (
        "status must be compared with 'converged', 'time limit', 'node limit', 'radius limit', "
        "'memory limit', 'numerical limit', 'interrupted', got 'safe'",
        lambda: gc.probability_range(post, ball).status == "safe",
    ),
    ("region must be a Box or a Ball, got Series: x stands before region", lambda: gc.certify(post, ball, x)),
    (
        ANY + "Ball",
        lambda: gc.certify(ball, post),
    ),
    ("region must be a Box, a Ball or a sequence of them, got Series", lambda: gc.certify(post, x)),
    ("x must lie in the region, got a point outside", lambda: gc.certify(post, x + 1, ball)),
    ("x must hold one point per region, 1, got 2", lambda: gc.certify(post, T[:2], [ball])),
    (
        "x must have the model's columns, got none named 'dose'",
        lambda: gc.certify(post, x[["age", "bmi"]], ball),
    ),
    (
        "x must have the model's columns, got none named 'age' (did you mean 'Age'?)",
        lambda: gc.certify(post, x.rename({"age": "Age"}), ball),
    ),
    (
        "region must have the model's columns, got none named 'age' (did you mean 'Age'?)",
        lambda: gc.certify(post, gc.Ball(x.rename({"age": "Age"}), 0.1)),
    ),
    ("region must have 3 features, got 2", lambda: gc.certify(post, gc.Ball([1.0, 2.0], 0.1))),
    ("region must be a Box, a Ball or a sequence of them, got 0.1", lambda: gc.certify(post, 0.1)),
    ("region must be a Box or a Ball, got Series", lambda: gc.certify(post, [x, x])),
    ("threshold must be < 1, got 1.5", lambda: gc.certify(post, ball, threshold=1.5)),
    ("threshold must be > 0, got 'half'", lambda: gc.certify(post, ball, threshold="half")),
    ("threshold must be 0.5 with several classes, got 0.7", lambda: gc.certify(three, ball, threshold=0.7)),
    (
        "certify has no option 'tolerence' (did you mean 'tolerance'?)",
        lambda: gc.certify(post, ball, tolerence=0.1),
    ),
    ("tolerance must be > 0, got 0", lambda: gc.certify(post, ball, tolerance=0)),
    ("max_seconds must be >= 0, got -1", lambda: gc.certify(post, ball, max_seconds=-1)),
    ("n_jobs must be a whole number, not 0, got 0", lambda: gc.certify(post, ball, n_jobs=0)),
    ("progress must be True or a function, got 'yes'", lambda: gc.certify(post, ball, progress="yes")),
    ("certify needs 'x', got none", lambda: gc.certify(post)),
    ("certify needs 'post', got none", lambda: gc.certify()),
    (
        "post must have a likelihood for probabilities, got a regression posterior",
        lambda: gc.certify(regr, ball),
    ),
    (
        "label must be one of 'ill', 'well', got 'il' (did you mean 'ill'?)",
        lambda: gc.probability_range(post, ball, label="il"),
    ),
    (
        "label must be one of 'ill', 'well', got 'healthy'",
        lambda: gc.probability_range(post, ball, label="healthy"),
    ),
    ("label must be one of 'ill', 'well', got 2", lambda: gc.probability_range(post, ball, label=2)),
    ("label must be one of 'ill', 'well', got 1.0", lambda: gc.probability_range(post, ball, label=1.0)),
    ("label must be one of 'ill', 'well', got True", lambda: gc.probability_range(post, ball, label=True)),
    ("label must be one of 1, 2, 3, got 4", lambda: gc.probability_range(three, ball, label=4)),
    ("label must be one of 1, 2, 3, got True", lambda: gc.probability_range(three, ball, label=True)),
    ("label must be one of 1, 2, 3, got none", lambda: gc.probability_range(three, ball)),
    ("label must be one of 1, 2, 3, got none", lambda: gc.robustness(three, ball)),
    ("label must be one of 1, 2, 3, got none", lambda: gc.explain(three, T, 0.1)),
    (
        "label must be one of 'ill', 'well', got 'sick'",
        lambda: gc.testing.assert_certified(post, T, Y, 0.1, label="sick"),
    ),
    ("method must be 'auto' or 'paper', got 'papr'", lambda: gc.probability_range(post, ball, method="papr")),
    ("region must be a Box, a Ball or a sequence of them, got Series", lambda: gc.probability_range(post, x)),
    (
        "region must be a Box, a Ball or a sequence of them, got DataFrame",
        lambda: gc.probability_range(post, T),
    ),
    (
        "region must be a Box, a Ball or a sequence of them, got None",
        lambda: gc.probability_range(post, None),
    ),
    (
        "probability_range: too many positional arguments",
        lambda: gc.probability_range(post, ball, 1, "auto", 0.1),
    ),
    (
        "label must be 'well', for which the only latent speaks, got 'ill'",
        lambda: gc.latent_range(post, ball, label="ill"),
    ),
    ("label must be None for one latent, got 0", lambda: gc.latent_range(regr, ball, label=0)),
    ("label must be one of 1, 2, 3, got none", lambda: gc.latent_range(three, ball)),
    ("x must lie in the region, got a point outside", lambda: gc.robustness(post, ball, x=x + 5)),
    ("method must be 'pgd' or 'gpfgs' or 'gpjm', got 'fgsm'", lambda: gc.attack(post, ball, method="fgsm")),
    ("starts must be a whole number >= 1, got 0", lambda: gc.attack(post, ball, starts=0)),
    (TURNED, lambda: gc.GPClassifier().fit(Y, T)),
    (TURNED, lambda: clf.score(Y, T)),
    (TURNED, lambda: gc.evaluate(post, Y, T, [0.1])),
    (TURNED, lambda: gc.testing.assert_certified(post, Y, T, 0.1)),
    (f"X {SPARSE}", lambda: gc.GPClassifier().fit(csr_array(X), Y)),
    (f"X {SPARSE}", lambda: plain.probability(coo_matrix(X))),
    (f"X {SPARSE}", lambda: gc.evaluate(plain, csr_array(X), Y, [0.1])),
    (f"x {SPARSE}", lambda: gc.certified_radius(plain, csr_array(X))),
    (f"X {SPARSE}", lambda: gc.balls(csr_array(X), 0.1)),
    (f"X {SPARSE}", lambda: gc.testing.assert_certified(plain, csr_array(X), Y, 0.1)),
    (
        OWN + "RBF(length_scale=2): write gc.RBF(lengthscale=2.0, variance=1.0)",
        lambda: gc.GPClassifier(kernel=RBF(2.0)).fit(T, Y),
    ),
    (
        OWN + "1.73**2 * Matern(length_scale=[1, 2, 3], nu=1.5): "
        "write gc.Matern32(lengthscale=[1.0, 2.0, 3.0], variance=3.0)",
        lambda: gc.GPClassifier(kernel=MATERN).fit(T, Y),
    ),
    (OWN + "DotProduct(sigma_0=1)", lambda: gc.GPClassifier(kernel=DotProduct()).fit(T, Y)),
    (OWN + "<class 'gpcert.kernels.stationary.RBF'>", lambda: gc.GPClassifier(kernel=gc.RBF).fit(T, Y)),
    (
        "a kernel must be combined with kernels of gpcert, got 2.0: variance= is a factor",
        lambda: 2.0 * gc.RBF(1.0),
    ),
    (
        "a kernel must be combined with kernels of gpcert, got RBF(length_scale=1): variance= is a factor",
        lambda: gc.Matern32(1.0) + RBF(1.0),
    ),
    ("path must be a path, got Posterior", lambda: gc.save("model.safetensors", post)),
    ("path must be a path, got NoneType", lambda: gc.load(None)),
    ("path must be a path, got Answers", lambda: gc.load_answers(gc.certify(post, [ball]))),
    (
        "keep must say True or False, got <VerdictStatus.SAFE: 'safe'>",
        lambda: SAFE.filter(lambda v: v.status),
    ),
    (PICKED + "True", lambda: SAFE[True]),
    (PICKED + "1.0", lambda: SAFE[1.0]),
    ("title must be a text, got 3", lambda: gc.report(SAFE, "page.html", title=3)),
    ("radii must be a number, got True", lambda: gc.certify_table(post, T, radii=True)),
    ("at_least must be in [0, 1], got True", lambda: gc.testing.assert_certified(clf, T, Y, 0.1, True)),
    ("at_least must be in [0, 1], got 90", lambda: gc.testing.assert_certified(clf, T, Y, 0.1, 90)),
    (
        "y must hold labels of the model's kind, texts or numbers, got the other",
        lambda: clf.score(T, (Y == "ill") * 1),
    ),
    ("sample_weight must have length 30, got 2", lambda: clf.score(T, Y, sample_weight=[1, 2])),
    ("progress must be a function, got True", lambda: gc.GPClassifier(progress=True).fit(T, Y)),
    (
        "feature_names must be a sequence of names, got 'abc'",
        lambda: gc.Posterior(X, np.ones(30), np.eye(30), kernel=gc.RBF(), feature_names="abc"),
    ),
    (
        "centres must have the model's columns, got none named 'sex'",
        lambda: gc.Posterior(
            T, np.ones(30), np.eye(30), kernel=gc.RBF(), feature_names=["age", "bmi", "sex"]
        ),
    ),
    (RNG + "-1", lambda: gc.attack(post, ball, rng=-1)),
    (RNG + "'0'", lambda: gc.attack(post, ball, rng="0")),
    (RNG + "True", lambda: gc.attack(post, ball, rng=True)),
    ("attack has no option 'seed'", lambda: gc.attack(post, ball, seed=0)),
    (
        "label must be one class, or one for each of 2 regions, got 1",
        lambda: gc.attack(post, [ball, ball], label=["ill"]),
    ),
    (
        "max_radius must be finite where no finite radius covers the domain, got inf",
        lambda: gc.certified_radius(post, x, max_radius=math.inf),
    ),
    ("rtol must be > 0, got 0", lambda: gc.certified_radius(post, x, rtol=0)),
    (
        "x must have the model's columns, got none named 'age' (did you mean 'Age'?)",
        lambda: gc.certified_radius(post, T.rename(columns={"age": "Age"})),
    ),
    (
        "features must name features of the model, got 'hight'",
        lambda: gc.certified_radius(post, x, features=["hight"]),
    ),
    (
        "scale must be numbers or 'std', got 'sdt' (did you mean 'std'?)",
        lambda: gc.certified_radius(post, x, scale="sdt"),
    ),
    ("x must have 3 features, got 0", lambda: gc.certified_radius(post, [])),
    ("y must hold one label per point, 30, got shape (3,)", lambda: gc.evaluate(post, T, Y[:3], [0.1])),
    (
        "each label of y must be one of 'ill', 'well', got 'sick'",
        lambda: gc.evaluate(post, T, ["sick"] * 30, [0.1]),
    ),
    ("radii must increase, got [0.2, 0.1]", lambda: gc.evaluate(post, T, Y, [0.2, 0.1])),
    ("radii must hold at least one radius, got none", lambda: gc.evaluate(post, T, Y, [])),
    ("radii must be one-dimensional, got shape (1, 1)", lambda: gc.evaluate(post, T, Y, [[0.1]])),
    ("radii must be numbers, got '0.1'", lambda: gc.evaluate(post, T, Y, "0.1")),
    (
        "X must have the model's columns, got none named 'dose'",
        lambda: gc.evaluate(post, T[["bmi", "age"]], Y, [0.1]),
    ),
    ("evaluate needs 'radii', got none", lambda: gc.evaluate(post, T, Y)),
    (
        "X must have the model's columns, got none named 'dose' (did you mean 'does'?)",
        lambda: gc.explain(post, T.rename(columns={"dose": "does"}), 0.1),
    ),
    ("radius must be >= 0, got -0.1", lambda: gc.explain(post, T, -0.1)),
    (
        "label must be one of 'ill', 'well', got 'well-being'",
        lambda: gc.explain(post, T, 0.1, label="well-being"),
    ),
    ("table must have named columns, got ndarray: see gc.balls", lambda: gc.certify_table(post, X)),
    (
        "target must name a column of the table, got 'sate' (did you mean 'state'?)",
        lambda: gc.certify_table(post, T.assign(state=Y), target="sate"),
    ),
    (
        "each label of target must be one of 'ill', 'well', got 'dead'",
        lambda: gc.certify_table(post, T.assign(state="dead"), target="state"),
    ),
    (
        "table must have the model's columns, got none named 'dose'",
        lambda: gc.certify_table(post, T[["age", "bmi"]]),
    ),
    ("answers must be one batch of answers, or several, got Ball", lambda: gc.report(ball, "page.html")),
    ("answers must be one batch of answers, or several, got none", lambda: gc.report([], "page.html")),
    (
        "path must end in .json, .csv, .parquet or .xlsx, got 'answers.txt'",
        lambda: gc.certify(post, gc.balls(T[:2], 0.1)).save("answers.txt"),
    ),
    (
        "path must end in .html or .htm, got 'page.pdf'",
        lambda: gc.certify(post, gc.balls(T[:2], 0.1)).report("page.pdf"),
    ),
    ("path must end in .safetensors, got 'model.pkl'", lambda: gc.save(post, "model.pkl")),
    ("path must end in .json, got 'answers.csv'", lambda: gc.save_answers("answers.csv", [])),
    (
        "answers must be ranges, verdicts, radii, attacks or explanations of one row, of one kind, "
        "got LatentRange",
        lambda: gc.report(gc.latent_range(post, gc.balls(T[:1], 0.1)), "page.html"),
    ),
    (
        ANY + "'model.safetensors': gc.load reads a file",
        lambda: gc.certify("model.safetensors", ball),
    ),
    (
        ANY + "GPClassifier: an object, not its class",
        lambda: gc.certify(gc.GPClassifier, ball),
    ),
    ("post must be fitted, got a GPClassifier before fit", lambda: gc.certify(gc.GPClassifier(), ball)),
    (
        ANY + "int",
        lambda: gc.certify(42, ball),
    ),
    (
        "model must be a GaussianProcessClassifier or a Pipeline that ends in one, got LogisticRegression",
        lambda: gc.certify(LogisticRegression().fit(X, Y), ball),
    ),
    (
        "model must be fitted, got a GaussianProcessClassifier before fit",
        lambda: gc.certify(GaussianProcessClassifier(), ball),
    ),
    (
        "model must be fitted, got a GPClassifier before fit",
        lambda: gc.certify(make_pipeline(StandardScaler(), gc.GPClassifier()), ball),
    ),
    (
        STEP
        + ", got PCA: a box of inputs is not a box of components; convert pipeline[-1] to certify in the "
        "components",
        lambda: gc.certify(pipeline(PCA()), ball),
    ),
    (
        STEP + " (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler), got PolynomialFeatures",
        lambda: gc.certify(pipeline(PolynomialFeatures()), ball),
    ),
    (
        STEP + ", got a ColumnTransformer that drops columns ('remainder')",
        lambda: gc.certify(pipeline(ColumnTransformer([("a", StandardScaler(), ["age"])])), ball),
    ),
    (
        STEP + " (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler), got OneHotEncoder",
        lambda: gc.certify(
            pipeline(
                ColumnTransformer(
                    [("a", OneHotEncoder(), ["age"])], remainder="passthrough", sparse_threshold=0
                )
            ),
            ball,
        ),
    ),
    (
        STEP + ", got SimpleImputer with missing_values, add_indicator or columns that were empty",
        lambda: gc.certify(pipeline(SimpleImputer(missing_values=-1)), ball),
    ),
    (
        "model must be a GaussianProcessClassifier or a Pipeline that ends in one, got LogisticRegression",
        lambda: gc.certify(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), ball),
    ),
    (
        "kernel must be a sum or product of ConstantKernel, RBF, Matern, RationalQuadratic and "
        "WhiteKernel, got DotProduct",
        lambda: gc.certify(GaussianProcessClassifier(DotProduct()).fit(X, Y), ball),
    ),
    (
        "post must be fitted, with refit=True, got a GridSearchCV that is not",
        lambda: gc.certify(GridSearchCV(gc.GPClassifier(), {}), ball),
    ),
    (
        "weights must have shape (30,), or (30, C) with C >= 2, as centres, got (29,)",
        lambda: gc.Posterior(X, np.ones(29), np.eye(30), kernel=gc.RBF()),
    ),
    (
        "classes must be 2 labels, got shape (1,)",
        lambda: gc.Posterior(X, np.ones(30), np.eye(30), kernel=gc.RBF(), classes=["a"]),
    ),
    (
        "feature_names must have length 3, got 2",
        lambda: gc.Posterior(X, np.ones(30), np.eye(30), kernel=gc.RBF(), feature_names=["a", "b"]),
    ),
    ("lengthscale must be > 0, got -1.0", lambda: gc.RBF(lengthscale=-1.0)),
    ("lengthscale must be numbers, got 'long'", lambda: gc.RBF(lengthscale="long")),
    ("nowhere.safetensors must be a model file, got no such file", lambda: gc.load("nowhere.safetensors")),
    ("nowhere.json must be a file of answers, got no such file", lambda: gc.load_answers("nowhere.json")),
    ("posterior must be a Posterior, got GPClassifier", lambda: gc.save(clf, "model.safetensors")),
    (
        "name must be one of synthetic2d, spam, mnist38, mnist358, got 'mnist' (did you mean 'mnist38'?)",
        lambda: gc.datasets.load("mnist"),
    ),
    (
        "model must be a GaussianProcessClassifier or a Pipeline that ends in one, got Posterior",
        lambda: gc.from_sklearn(clf.posterior_),
    ),
    (
        ANY + "NoneType",
        lambda: gc.posterior_of(None),
    ),
    (
        ANY + "GridSearchCV: an object, not its class",
        lambda: gc.posterior_of(GridSearchCV),
    ),
    ("answers must be answers, got Ball", lambda: gc.Answers([ball])),
    ("answers must be answers, got Ball", lambda: gc.save_answers("a.json", [ball])),
    ("answers must be answers, got str", lambda: gc.save_answers([ball], "a.json")),
    ("answers must be answers, got int", lambda: gc.save_answers([ball], 3)),
    (
        "certify: multiple values for argument 'x'",
        lambda: gc.certify(plain, gc.Ball(X[0], 0.1), x=[1.0, 2.0, 3.0], region=ball),
    ),
    (
        "X must have the model's columns, got none named 'age'",
        lambda: gc.evaluate(post, P.drop("age"), Y, [0.1]),
    ),
    ("certify has no option 'radius'", lambda: gc.certify(post, ball, radius=0.1)),
    (
        "label must be one class, or one for each of 1 regions, got 2",
        lambda: gc.probability_range(post, ball, label=[0, 1]),
    ),
    ("radius must be >= 0, got -0.1", lambda: gc.balls(T, -0.1)),
    ("radius must be numbers, got '0.1' at index 0", lambda: gc.balls(T, [0.1] * 29 + ["wide"])),
    (
        "features must name features of the model, got 'bmmi' (did you mean 'bmi'?)",
        lambda: gc.balls(T, 0.1, features=["bmmi"]),
    ),
    ("radii must be >= 0, got -0.1", lambda: gc.certify_table(post, T, radii=[0.1, -0.1])),
    ("norm must be 0, >= 1 or inf, got '2'", lambda: gc.certify_table(post, T, norm="2")),
    ("norm must be 0, >= 1 or inf, got 'l2'", lambda: gc.certified_radius(post, x, norm="l2")),
    ("norm must be 0, >= 1 or inf, got 'Inf'", lambda: gc.evaluate(post, T, Y, 0.1, "Inf")),
    ("norm must be 0, >= 1 or inf, got '2'", lambda: gc.certified_score(0.1, norm="2")),
    ("scale must be > 0, got 0.0", lambda: gc.explain(post, T, 0.1, scale=dict.fromkeys(T, 0))),
    (
        "scale must be numbers or 'std', got 'sd' (did you mean 'std'?)",
        lambda: gc.explain(post, T, 1, scale="sd"),
    ),
    ("id must name a column of the table, got 'ids'", lambda: gc.certify_table(post, T, id="ids")),
    (
        "features must be distinct, got ['age', 'age']",
        lambda: gc.explain(post, T, 0.1, features=["age", "age"]),
    ),
    (
        "post must have a likelihood for probabilities, got a regression posterior",
        lambda: gc.evaluate(regr, X, Y, [0.1]),
    ),
]
