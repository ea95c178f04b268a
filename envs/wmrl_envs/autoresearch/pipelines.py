"""Template pipelines: the scikit-learn expressions that make up every leaderboard.

They span what a beginner and a good practitioner would try, so that a position on the board says
something; an agent's warm start may be trained on them too.
"""

from wmrl_envs.autoresearch.tasks import Task

_C = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_NEIGHBOURS = (1, 3, 5, 9, 15, 25, 45)
_DEPTHS = (1, 2, 3, 4, 6, 9, 14)
_LEAVES = (1, 2, 4, 8, 16, 40)
_RATES = (0.02, 0.05, 0.1, 0.2)
_ALPHAS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)


def templates(task: Task) -> tuple[str, ...]:
    """Return the template expressions for the task's kind, 60 to 100 of them."""
    return classification() if task.kind == "classification" else regression(task.metric.name)


def classification() -> tuple[str, ...]:
    """Return classifiers."""
    return (
        "DummyClassifier()",
        "GaussianNB()",
        "BernoulliNB()",
        "LinearDiscriminantAnalysis()",
        "QuadraticDiscriminantAnalysis(reg_param=0.1)",
        *(f"LogisticRegression(C={c}, max_iter=1000)" for c in _C),
        *(f"make_pipeline(PCA(0.9), LogisticRegression(C={c}, max_iter=1000))" for c in (0.1, 1.0)),
        *(f"KNeighborsClassifier(n_neighbors={k})" for k in _NEIGHBOURS),
        *(f"KNeighborsClassifier(n_neighbors={k}, weights='distance')" for k in (5, 15)),
        *(f"DecisionTreeClassifier(max_depth={d}, random_state=0)" for d in _DEPTHS),
        *(f"RandomForestClassifier(min_samples_leaf={n}, random_state=0)" for n in _LEAVES),
        *(f"RandomForestClassifier(max_depth={d}, random_state=0)" for d in _DEPTHS[:5]),
        *(f"ExtraTreesClassifier(min_samples_leaf={n}, random_state=0)" for n in _LEAVES),
        *(f"HistGradientBoostingClassifier(learning_rate={r}, max_iter=60)" for r in _RATES),
        *(f"GradientBoostingClassifier(learning_rate={r}, n_estimators=50)" for r in _RATES),
        *(f"AdaBoostClassifier(n_estimators={n})" for n in (10, 50)),
        *(f"SVC(C={c})" for c in _C[1:]),
        *(f"SVC(C={c}, kernel='linear')" for c in (0.1, 1.0)),
        *(f"make_pipeline(PolynomialFeatures(2), LogisticRegression(C={c}, max_iter=300))" for c in (0.01, 0.1)),
        *(f"MLPClassifier(hidden_layer_sizes=({n},), max_iter=200, random_state=0)" for n in (8, 64)),
        *(f"make_pipeline(SelectKBest(k={k}), LogisticRegression())" for k in (1, 3)),
    )  # fmt: skip


def regression(metric: str) -> tuple[str, ...]:
    """Return regressors, with models of counts where the metric asks for them."""
    counts = metric == "poisson_deviance"
    return (
        "DummyRegressor()",
        "DummyRegressor(strategy='median')",
        "LinearRegression()",
        "BayesianRidge()",
        "HuberRegressor(max_iter=500)",
        *(f"Ridge(alpha={a})" for a in _ALPHAS[2:]),
        *(f"Lasso(alpha={a})" for a in _ALPHAS[:4]),
        *(f"ElasticNet(alpha={a})" for a in _ALPHAS[:3]),
        *(f"PoissonRegressor(alpha={a}, max_iter=500)" for a in _ALPHAS[:5] if counts),
        *(f"KNeighborsRegressor(n_neighbors={k})" for k in _NEIGHBOURS),
        *(f"KNeighborsRegressor(n_neighbors={k}, weights='distance')" for k in (5, 15)),
        *(f"DecisionTreeRegressor(max_depth={d}, random_state=0)" for d in _DEPTHS),
        *(f"RandomForestRegressor(min_samples_leaf={n}, random_state=0)" for n in _LEAVES),
        *(f"RandomForestRegressor(max_depth={d}, random_state=0)" for d in _DEPTHS[:4]),
        *(f"ExtraTreesRegressor(min_samples_leaf={n}, random_state=0)" for n in _LEAVES),
        *(f"HistGradientBoostingRegressor(learning_rate={r}, max_iter=60)" for r in _RATES),
        *(f"HistGradientBoostingRegressor(loss='absolute_error', learning_rate={r}, max_iter=60)" for r in (0.05, 0.1)),
        *(f"HistGradientBoostingRegressor(loss='poisson', learning_rate={r}, max_iter=60)" for r in _RATES if counts),
        *(f"GradientBoostingRegressor(learning_rate={r}, n_estimators=50)" for r in _RATES),
        *(f"AdaBoostRegressor(n_estimators={n}, random_state=0)" for n in (10, 50)),
        *(f"SVR(C={c})" for c in _C[2:]),
        *(f"SVR(C={c}, kernel='linear')" for c in (0.1, 1.0) if not counts),
        *(f"make_pipeline(PolynomialFeatures(2), Ridge(alpha={a}))" for a in (1.0, 10.0, 100.0)),
        *(f"MLPRegressor(hidden_layer_sizes=({n},), max_iter=200, random_state=0)" for n in (8, 64)),
        *(f"make_pipeline(SelectKBest(k={k}), LinearRegression())" for k in (1, 3)),
        *(f"KernelRidge(alpha={a}, kernel='rbf')" for a in (0.1, 1.0)),
    )  # fmt: skip
