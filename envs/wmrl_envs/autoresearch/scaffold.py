"""Scaffold: the action format in which an agent writes one scikit-learn expression.

The rest of the program is ours: read the data, encode it, fit, predict, write the submission.
Cheap exact checks (it parses, it only calls estimators by name, the arguments are names of that
estimator's parameters, the estimator's type fits the task) come before any execution.
"""

import ast
import importlib
import inspect
from collections.abc import Callable

from wmrl_envs.autoresearch.tasks import Task

CLASSIFIERS = {
    "LogisticRegression": "linear_model", "RidgeClassifier": "linear_model",
    "SGDClassifier": "linear_model", "Perceptron": "linear_model",
    "PassiveAggressiveClassifier": "linear_model", "KNeighborsClassifier": "neighbors",
    "NearestCentroid": "neighbors", "SVC": "svm", "LinearSVC": "svm", "NuSVC": "svm",
    "DecisionTreeClassifier": "tree", "ExtraTreeClassifier": "tree",
    "RandomForestClassifier": "ensemble", "ExtraTreesClassifier": "ensemble",
    "GradientBoostingClassifier": "ensemble", "HistGradientBoostingClassifier": "ensemble",
    "AdaBoostClassifier": "ensemble", "BaggingClassifier": "ensemble",
    "VotingClassifier": "ensemble", "StackingClassifier": "ensemble", "GaussianNB": "naive_bayes",
    "BernoulliNB": "naive_bayes", "LinearDiscriminantAnalysis": "discriminant_analysis",
    "QuadraticDiscriminantAnalysis": "discriminant_analysis", "MLPClassifier": "neural_network",
    "GaussianProcessClassifier": "gaussian_process", "DummyClassifier": "dummy",
}  # fmt: skip
"""Estimators for classes, and the module of ``sklearn`` each is in."""

REGRESSORS = {
    "LinearRegression": "linear_model", "Ridge": "linear_model", "Lasso": "linear_model",
    "ElasticNet": "linear_model", "BayesianRidge": "linear_model", "ARDRegression": "linear_model",
    "HuberRegressor": "linear_model", "TheilSenRegressor": "linear_model",
    "QuantileRegressor": "linear_model", "PoissonRegressor": "linear_model",
    "GammaRegressor": "linear_model", "TweedieRegressor": "linear_model",
    "SGDRegressor": "linear_model", "KNeighborsRegressor": "neighbors", "SVR": "svm",
    "LinearSVR": "svm", "NuSVR": "svm", "DecisionTreeRegressor": "tree",
    "ExtraTreeRegressor": "tree", "RandomForestRegressor": "ensemble",
    "ExtraTreesRegressor": "ensemble", "GradientBoostingRegressor": "ensemble",
    "HistGradientBoostingRegressor": "ensemble", "AdaBoostRegressor": "ensemble",
    "BaggingRegressor": "ensemble", "VotingRegressor": "ensemble",
    "StackingRegressor": "ensemble", "MLPRegressor": "neural_network",
    "GaussianProcessRegressor": "gaussian_process", "KernelRidge": "kernel_ridge",
    "DummyRegressor": "dummy",
}  # fmt: skip
"""Estimators for numbers, and the module of ``sklearn`` each is in."""

HELPERS = {
    "make_pipeline": "pipeline", "StandardScaler": "preprocessing", "MinMaxScaler": "preprocessing",
    "RobustScaler": "preprocessing", "QuantileTransformer": "preprocessing",
    "PowerTransformer": "preprocessing", "PolynomialFeatures": "preprocessing",
    "KBinsDiscretizer": "preprocessing", "SplineTransformer": "preprocessing",
    "PCA": "decomposition", "TruncatedSVD": "decomposition", "SelectKBest": "feature_selection",
    "SelectPercentile": "feature_selection", "VarianceThreshold": "feature_selection",
    "Nystroem": "kernel_approximation", "RBFSampler": "kernel_approximation",
    "TransformedTargetRegressor": "compose", "CalibratedClassifierCV": "calibration",
}  # fmt: skip
"""What estimators may be combined with."""

PROMPT = (
    "import pandas as pd\nfrom sklearn import *\n\ntrain = pd.read_csv('input/train.csv')\n"
    "# One scikit-learn {role} for: {title}\nmodel ="
)
"""What an agent continues; no space after the sign, which would change how the answer is split
into tokens."""

_MODULES = {**CLASSIFIERS, **REGRESSORS, **HELPERS}
_FINAL_WRAPPERS = {"TransformedTargetRegressor", "CalibratedClassifierCV"}
_PLAIN = (ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword, ast.List,
          ast.Tuple, ast.UnaryOp, ast.USub)  # fmt: skip
_LONGEST = 600


def wants_classifier(task: Task) -> bool:
    """Return whether the task's model must be a classifier."""
    return task.kind == "classification"


def prompt(task: Task) -> str:
    """Return the text whose continuation is the expression."""
    role = "classifier" if wants_classifier(task) else "regressor"
    return PROMPT.format(role=role, title=task.title)


def clean(answer: str) -> str:
    """Return the expression in an agent's answer: its first line with text, without ``model =``."""
    lines = [
        line.strip() for line in answer.replace("```python", "").replace("```", "").splitlines()
    ]
    first = next((line for line in lines if line), "")
    return first.removeprefix("model").strip().removeprefix("=").strip()


def check(expression: str, task: Task) -> str | None:
    """Return why the expression cannot be run for the task, None if nothing speaks against it."""
    if len(expression) > _LONGEST:
        return f"expression must have at most {_LONGEST} characters, got {len(expression)}"
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"expression must be valid Python: {error}"
    for node in ast.walk(tree):
        if not isinstance(node, _PLAIN):
            return f"expression must only call estimators, got {type(node).__name__}"
        if isinstance(node, ast.Call):
            problem = _call_problem(node)
            if problem:
                return problem
    return _type_problem(tree.body, classifier=wants_classifier(task))


def _call_problem(call: ast.Call) -> str | None:
    if not isinstance(call.func, ast.Name) or call.func.id not in _MODULES:
        return f"estimator must be one of scikit-learn's, got {ast.unparse(call.func)!r}"
    name = call.func.id
    known = inspect.signature(_load(name)).parameters
    unknown = [word.arg for word in call.keywords if word.arg not in known]
    if unknown and name != "make_pipeline":
        return f"{name} must be given parameters it has, got {unknown[0]!r}"
    return None


def _type_problem(node: ast.expr, *, classifier: bool) -> str | None:
    wanted = CLASSIFIERS if classifier else REGRESSORS
    role = "classifier" if classifier else "regressor"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return f"expression must be a call that makes a {role}, got {ast.unparse(node)!r}"
    name = node.func.id
    if name == "make_pipeline" and node.args:
        return _type_problem(node.args[-1], classifier=classifier)
    if name in wanted or (name in _FINAL_WRAPPERS and name.endswith("CV") == classifier):
        return None
    return f"model must be a {role} for this task, got {name}"


def _load(name: str) -> Callable[..., object]:
    return vars(importlib.import_module(f"sklearn.{_MODULES[name]}"))[name]


def render(expression: str, task: Task) -> str:
    """Return the program that fits the expression and writes its submission.

    Raises nothing: whatever is wrong with the expression shows when the program runs, on its first
    line. :func:`check` finds most of it without running.
    """
    imports = _imports(expression)
    predict = _SCORES if task.metric.needs_scores else _VALUES
    bounds = f"predictions = np.clip(predictions, {task.metric.lowest!r}, None)\n"
    clip = bounds if task.metric.numeric and task.metric.lowest == 0.0 else ""
    head = f"model = ({expression})\n"
    return f"{imports}\n{head}{_PROGRAM.format(target=task.target)}{predict}{clip}{_WRITE}"


def _imports(expression: str) -> str:
    try:
        used = {
            node.id
            for node in ast.walk(ast.parse(expression, mode="eval"))
            if isinstance(node, ast.Name)
        }
    except SyntaxError:
        used = set()
    lines = [
        f"from sklearn.{_MODULES[name]} import {name}" for name in sorted(used & set(_MODULES))
    ]
    return "; ".join(lines)


_PROGRAM = """
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline as _pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler as _Scaler

TARGET = {target!r}
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
features = [name for name in test.columns if name != "id"]
numbers = [name for name in features if pd.api.types.is_numeric_dtype(train[name])]
words = [name for name in features if name not in numbers]
encode = ColumnTransformer([
    ("numbers", _pipeline(SimpleImputer(strategy="median"), _Scaler()), numbers),
    ("words", OneHotEncoder(handle_unknown="ignore", min_frequency=5, sparse_output=False), words),
], sparse_threshold=0.0)
fitted = _pipeline(encode, model).fit(train[features], train[TARGET])
"""
_SCORES = """
if hasattr(fitted, "predict_proba"):
    predictions = fitted.predict_proba(test[features])[:, 1]
else:
    predictions = fitted.decision_function(test[features])
"""
_VALUES = """
predictions = fitted.predict(test[features])
"""
_WRITE = """
pd.DataFrame({"id": test["id"], TARGET: predictions}).to_csv("submission.csv", index=False)
print("fitted on", len(train), "rows; predicted", len(test))
"""
