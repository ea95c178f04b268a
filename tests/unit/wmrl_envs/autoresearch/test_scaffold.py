"""Checks of ``wmrl_envs.autoresearch.scaffold``."""

import pytest

from wmrl_envs.autoresearch.pipelines import templates
from wmrl_envs.autoresearch.scaffold import check, clean, prompt, render
from wmrl_envs.autoresearch.tasks import load_task, task_names


@pytest.mark.parametrize("name", task_names())
def test_every_template_passes_the_checks(name: str) -> None:
    task = load_task(name, need_leaderboard=False)
    expressions = templates(task)
    assert 60 <= len(set(expressions)) <= 100
    assert [check(expression, task) for expression in expressions] == [None] * len(expressions)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("Ridge(alpha=", "valid Python"),
        ("", "valid Python"),
        ("RidgeClassifier()", "must be a regressor"),
        ("make_pipeline(StandardScaler(), SVC())", "must be a regressor"),
        ("Ridge(alfa=1)", "parameters it has, got 'alfa'"),
        ("NoSuchRegressor()", "one of scikit-learn's"),
        ("__import__('os').system('id')", "only call estimators|one of scikit-learn's"),
        ("(lambda: Ridge())()", "only call estimators|one of scikit-learn's"),
        ("Ridge().set_params", "only call estimators"),
        ("[Ridge() for _ in range(9)]", "only call estimators"),
        ("Ridge", "must be a call"),
        ("Ridge(" + "1," * 600 + ")", "at most 600 characters"),
    ],
)
def test_what_cannot_work_is_found_before_it_runs(expression: str, reason: str) -> None:
    problem = check(expression, load_task("penguins", need_leaderboard=False))
    assert problem is not None
    assert any(part in problem for part in reason.split("|")), problem


def test_an_answer_is_cut_to_its_expression() -> None:
    assert clean("```python\n\nmodel = Ridge(alpha=1)\nmodel.fit(X, y)\n```") == "Ridge(alpha=1)"
    assert clean(" Ridge()") == "Ridge()"


def test_the_prompt_ends_where_the_expression_begins() -> None:
    assert prompt(load_task("penguins", need_leaderboard=False)).endswith("\nmodel =")


def test_a_rendered_program_is_valid_python_for_every_task() -> None:
    for name in task_names():
        task = load_task(name, need_leaderboard=False)
        compile(render(templates(task)[0], task), "main.py", "exec")
