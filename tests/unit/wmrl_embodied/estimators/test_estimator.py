"""The facade keeps the rules of the core, step after step."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from wmrl_embodied.estimators.anchors import Draw
from wmrl_embodied.estimators.estimator import PRESETS, Estimator, EstimatorConfig, preset
from wmrl_envs.errors import InvalidInputError

_TASKS = torch.arange(20) % 4


class _Steps:
    """A stream of steps with a world model of a given kind."""

    def __init__(self, *, kind: str = "good", seed: int = 0) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._kind = kind

    def next(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return predicted scores, real scores and score vectors."""
        real = (torch.rand(20, 8, generator=self._generator) < 0.4).float()
        noise = 0.1 * torch.randn(20, 8, generator=self._generator)
        other = torch.rand(20, 8, generator=self._generator)
        sketch = torch.randn(20, 8, 12, generator=self._generator)
        sketch[..., 0] += 2.0 * (real - 0.4)  # some parameters do make rollouts better
        predicted = {"good": real + noise, "useless": other, "reversed": 1 - real + noise}
        return predicted[self._kind].clamp(0.0, 1.0), real, sketch


def _run(estimator: Estimator, steps: _Steps, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Run steps; return the last one's advantages, real scores and draw."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        predicted, real, sketch = steps.next()
        draw = estimator.draw(
            predicted, tasks=_TASKS, sensitivity=sketch.norm(dim=-1), generator=generator
        )
        measured = torch.where(draw.execute, real, torch.nan)
        advantage, _ = estimator.advantage(predicted, measured, draw, tasks=_TASKS)
        estimator.observe(predicted, measured, draw, tasks=_TASKS, sketch=sketch)
    return advantage, real, draw.execute


def _cosine(a: Tensor, b: Tensor) -> float:
    return float(torch.cosine_similarity(a.flatten(), b.flatten(), dim=0))


def _estimator(config: EstimatorConfig) -> Estimator:
    return Estimator(config, num_tasks=4)


def test_real_is_grpo_with_centred_advantages() -> None:
    advantage, real, execute = _run(_estimator(preset("real")), _Steps(), 5)

    assert bool(execute.all())
    centred = real - real.mean(-1, keepdim=True)
    assert _cosine(advantage, centred) > 1 - 1e-6
    assert abs(advantage.square().mean() - 1.0) < 0.1  # one scale for the batch


def test_everything_executed_equals_real() -> None:
    config = replace(preset("unbiased"), anchor_fraction=1.0, unit="group")
    all_executed, _, _ = _run(_estimator(config), _Steps(), 30)
    real, _, _ = _run(_estimator(preset("real")), _Steps(), 30)

    torch.testing.assert_close(all_executed, real, atol=1e-5, rtol=0)


def test_unbiased_with_slope_zero_equals_anchors_only_bit_for_bit() -> None:
    config = replace(preset("unbiased"), unit="group", slope_max=0.0)
    unbiased, _, _ = _run(_estimator(config), _Steps(), 30)
    anchors_only, _, _ = _run(_estimator(preset("anchors_only")), _Steps(), 30)

    assert torch.equal(unbiased, anchors_only)


def test_anchors_only_gives_nothing_to_what_was_not_executed() -> None:
    advantage, _, execute = _run(_estimator(preset("anchors_only")), _Steps(), 3)

    assert float(advantage[~execute].abs().max()) == 0.0
    assert float(advantage[execute].abs().max()) > 0.0


def test_world_model_only_executes_nothing() -> None:
    _, _, execute = _run(_estimator(preset("world_model_only")), _Steps(), 3)

    assert not bool(execute.any())


@pytest.mark.parametrize("unit", ["group", "rollout"])
def test_a_useless_world_model_is_ignored(unit: str) -> None:
    config = replace(preset("unbiased"), unit=unit, anchor_fraction=0.5)
    estimator = _estimator(config)
    _run(estimator, _Steps(kind="useless"), 150)
    predicted, real, _ = _Steps(kind="useless", seed=9).next()
    generator = torch.Generator().manual_seed(2)
    draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=generator)
    measured = torch.where(draw.execute, real, torch.nan)

    advantage, shown = estimator.advantage(predicted, measured, draw, tasks=_TASKS)

    level = real.mean(-1, keepdim=True) if unit == "group" else 0.4
    grpo = torch.where(draw.execute, real - level, 0.0)
    assert _cosine(advantage, grpo) > 0.99
    assert float((advantage * shown.scale)[~draw.execute].abs().max()) < 0.05


def test_a_reversed_world_model_becomes_useful() -> None:
    advantage, real, _ = _run(_estimator(preset("fast")), _Steps(kind="reversed"), 60)

    assert _cosine(advantage, real - real.mean(-1, keepdim=True)) > 0.9


def test_a_constant_or_per_task_shift_leaves_the_update_unchanged() -> None:
    predicted, real, _ = _Steps().next()
    predicted = 0.2 + 0.5 * predicted
    shift = 0.1 * _TASKS[:, None].float()
    nothing = Draw(
        execute=torch.zeros(20, 8, dtype=torch.bool), probability=torch.full((20, 8), 0.1)
    )
    missing = torch.full((20, 8), torch.nan)
    advantages = [
        _estimator(preset("balanced")).advantage(scores, missing, nothing, tasks=_TASKS)[0]
        for scores in (predicted, predicted + 0.1, predicted + shift)
    ]

    torch.testing.assert_close(advantages[1], advantages[0], atol=1e-4, rtol=0)
    torch.testing.assert_close(advantages[2], advantages[0], atol=1e-4, rtol=0)
    assert _cosine(advantages[0], real) > 0.3


def test_a_missing_execution_is_counted_and_is_not_a_score_of_zero() -> None:
    predicted, real, _ = _Steps().next()
    execute = torch.zeros(20, 8, dtype=torch.bool)
    execute[0] = True
    draw = Draw(execute=execute, probability=torch.full((20, 8), 1 / 20))
    measured = torch.where(execute, real, torch.nan)
    lost, zero = measured.clone(), measured.clone()
    lost[0, 0], zero[0, 0] = torch.nan, 0.0
    real_one = measured.clone()
    real_one[0, 0] = 1.0

    estimator = _estimator(preset("anchors_only"))
    missing, shown = estimator.advantage(predicted, lost, draw, tasks=_TASKS)
    scored, _ = estimator.advantage(predicted, zero, draw, tasks=_TASKS)

    assert float(missing[0, 0]) == 0.0
    assert not torch.allclose(missing, scored)
    assert (float(shown.asked), float(shown.realised), float(shown.missing)) == (8.0, 7.0, 1.0)


def test_a_step_in_which_everything_is_missing_passes() -> None:
    for name in PRESETS:
        estimator = _estimator(preset(name))
        predicted, _, sketch = _Steps().next()
        generator = torch.Generator().manual_seed(0)
        draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=generator)
        missing = torch.full((20, 8), torch.nan)

        advantage, _ = estimator.advantage(predicted, missing, draw, tasks=_TASKS)
        estimator.observe(predicted, missing, draw, tasks=_TASKS, sketch=sketch)

        assert bool(advantage.isfinite().all()), name


def test_a_steps_advantages_depend_on_past_pairs_only() -> None:
    estimator = _estimator(preset("auto"))
    _run(estimator, _Steps(), 10)
    predicted, real, _ = _Steps(seed=5).next()
    generator = torch.Generator().manual_seed(3)
    draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=generator)
    measured = torch.where(draw.execute, real, torch.nan)
    opposite = torch.where(draw.execute, 1.0 - real, torch.nan)

    one, shown = estimator.advantage(predicted, measured, draw, tasks=_TASKS)
    other, seen = estimator.advantage(predicted, opposite, draw, tasks=_TASKS)

    unexecuted = ~draw.execute
    torch.testing.assert_close((one * shown.scale)[unexecuted], (other * seen.scale)[unexecuted])
    torch.testing.assert_close(shown.eta, seen.eta)


@pytest.mark.parametrize("name", PRESETS)
def test_resumes_bit_for_bit(name: str) -> None:
    estimator, steps = _estimator(preset(name)), _Steps()
    _run(estimator, steps, 12)
    copy = _estimator(preset(name))
    copy.load_state_dict(estimator.state_dict())

    one, _, _ = _run(estimator, _Steps(seed=7), 5)
    other, _, _ = _run(copy, _Steps(seed=7), 5)

    assert torch.equal(one, other)
    ours, theirs = estimator.state_dict(), copy.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_saved_state_does_not_change_with_the_estimator() -> None:
    estimator, steps = _estimator(preset("auto")), _Steps()
    _run(estimator, steps, 3)
    saved = estimator.state_dict()
    before = {key: value.clone() for key, value in saved.items()}

    _run(estimator, steps, 3)

    assert all(torch.equal(saved[key], before[key]) for key in saved)


@pytest.mark.parametrize("name", PRESETS)
def test_runs_side_by_side_do_not_mix(name: str) -> None:
    single = Estimator(preset(name), num_tasks=4)
    double = Estimator(preset(name), num_tasks=4, runs=(2,))
    good, bad = _Steps(), _Steps(kind="useless", seed=4)
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        (p, r, z), (q, s, y) = good.next(), bad.next()
        draw = single.draw(p, tasks=_TASKS, sensitivity=z.norm(dim=-1), generator=generator)
        both = Draw(
            execute=torch.stack([draw.execute, draw.execute.roll(1, 0)]),
            probability=torch.stack([draw.probability, draw.probability.roll(1, 0)]),
        )
        measured = torch.where(draw.execute, r, torch.nan)
        pair = torch.where(both.execute, torch.stack([r, s]), torch.nan)
        tasks = _TASKS.expand(2, 20)
        one, _ = single.advantage(p, measured, draw, tasks=_TASKS)
        two, _ = double.advantage(torch.stack([p, q]), pair, both, tasks=tasks)
        torch.testing.assert_close(two[0], one, atol=2e-5, rtol=1e-4)
        single.observe(p, measured, draw, tasks=_TASKS, sketch=z)
        double.observe(torch.stack([p, q]), pair, both, tasks=tasks, sketch=torch.stack([z, y]))


def test_the_audit_executes_more_at_first() -> None:
    estimator, steps = _estimator(preset("auto")), _Steps()

    shares = [float(_run(estimator, steps, 1)[2].float().mean()) for _ in range(5)]

    assert shares[:3] == pytest.approx([0.3] * 3, abs=0.01)
    assert shares[3:] == pytest.approx([0.1] * 2, abs=0.01)


def _exploit(estimator: Estimator, count: int, *, gap: float) -> list[bool]:
    generator = torch.Generator().manual_seed(0)
    asked = []
    for step in range(count):
        real = (torch.rand(20, 8, generator=generator) < 0.3).float() * 0.6
        predicted = real + (gap if step >= count // 2 else 0.0)
        draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=generator)
        measured = torch.where(draw.execute, real, torch.nan)
        _, shown = estimator.advantage(predicted, measured, draw, tasks=_TASKS)
        sketch = torch.randn(20, 8, 12, generator=generator)
        estimator.observe(predicted, measured, draw, tasks=_TASKS, sketch=sketch)
        asked.append(shown.refresh_requested)
    return asked


def test_the_alarm_raises_trust_in_real_scores_and_asks_for_a_refresh() -> None:
    estimator = _estimator(preset("balanced"))

    asked = _exploit(estimator, 60, gap=0.3)

    predicted, real, _ = _Steps(seed=1).next()
    draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=None)
    measured = torch.where(draw.execute, real, torch.nan)
    _, shown = estimator.advantage(predicted, measured, draw, tasks=_TASKS)
    assert not any(asked[:30])
    assert asked[-1]
    assert bool(shown.alarm)
    assert float(shown.eta) == 1.0


def test_no_alarm_without_exploitation() -> None:
    assert not any(_exploit(_estimator(preset("balanced")), 60, gap=0.0))


def test_metrics_are_flat_numbers() -> None:
    estimator = _estimator(preset("auto"))
    predicted, real, _ = _Steps().next()
    draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=None)
    measured = torch.where(draw.execute, real, torch.nan)

    _, shown = estimator.advantage(predicted, measured, draw, tasks=_TASKS)

    metrics = shown.metrics()
    assert all(isinstance(value, float) for value in metrics.values())
    assert metrics["estimator/eta"] == pytest.approx(0.3)  # the audit's
    assert metrics["estimator/asked"] == 48.0  # 0.3 * 160


def test_fallback_asks_for_few_groups_and_executes_them_whole() -> None:
    estimator, steps = _estimator(preset("auto_groups")), _Steps(kind="useless")
    for _ in range(60):
        _, _, execute = _run(estimator, steps, 1)
        if bool(estimator.fallback):
            break

    _, _, execute = _run(estimator, steps, 1)

    assert bool(estimator.fallback)
    assert int(execute.sum()) == 4 * 8  # a fifth of 20 groups
    assert float(estimator.learning_rate_factor) == pytest.approx(0.35)


@pytest.mark.parametrize(("groups", "few"), [(20, 4), (4, 1)])
def test_the_fallback_needs_a_fifth_of_the_groups(groups: int, few: int) -> None:
    estimator = _estimator(preset("auto_groups"))
    assert estimator.groups_needed(groups) == groups

    state = estimator.state_dict()
    state["progress.fallback"] = torch.tensor(data=True)
    estimator.load_state_dict(state)

    assert estimator.groups_needed(groups) == few


def test_fallback_updates_do_not_depend_on_whether_unused_groups_were_generated() -> None:
    estimator = _estimator(preset("auto_groups"))
    _run(estimator, _Steps(), 5)
    state = estimator.state_dict()
    state["progress.fallback"] = torch.tensor(data=True)
    estimator.load_state_dict(state)
    predicted, real, _ = _Steps(seed=3).next()
    generator = torch.Generator().manual_seed(0)
    draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=generator)
    measured = torch.where(draw.execute, real, torch.nan)
    whole, _ = estimator.advantage(predicted, measured, draw, tasks=_TASKS)

    used = draw.execute.any(-1)
    certain = Draw(execute=torch.ones(4, 8, dtype=torch.bool), probability=torch.ones(4, 8))
    few, _ = estimator.advantage(predicted[used], measured[used], certain, tasks=_TASKS[used])

    torch.testing.assert_close(few / 4, whole[used] / 20)  # the mean over the batch is the same


def test_single_rollouts_without_a_world_model_learn_their_baseline() -> None:
    config = replace(preset("anchors_only"), unit="rollout", anchor_fraction=0.5)
    estimator = _estimator(config)
    _run(estimator, _Steps(), 40)
    predicted, real, _ = _Steps(seed=3).next()
    draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=None)
    measured = torch.where(draw.execute, real, torch.nan)

    advantage, shown = estimator.advantage(predicted, measured, draw, tasks=_TASKS)

    level = (real - 0.5 * advantage * shown.scale)[draw.execute]  # c = (r - b) / 0.5
    assert abs(float(level.mean()) - 0.4) < 0.05
    assert shown.bias_after.isnan()


def test_the_published_rules_curve_and_share_are_its_own() -> None:
    estimator = _estimator(preset("paper"))
    _run(estimator, _Steps(), 30)
    predicted, real, _ = _Steps(seed=3).next()
    draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=None)
    measured = torch.where(draw.execute, real, torch.nan)

    advantage, shown = estimator.advantage(predicted, measured, draw, tasks=_TASKS)

    table, counts = estimator.calibration_curve()
    assert table.shape == (21,)
    assert float(counts.sum()) == 30 * 16
    expected = advantage[draw.execute].abs().sum() / advantage.abs().sum()
    torch.testing.assert_close(shown.real_share, expected)


def _refusal(rule: str) -> pytest.RaisesExc[InvalidInputError]:
    return pytest.raises(InvalidInputError, match=rule)


def test_refuses_scores_that_are_no_scores() -> None:
    estimator = _estimator(preset("auto"))
    scores = torch.full((20, 8), 0.5)
    for bad in (1.2, -0.1, torch.nan):
        broken = scores.clone()
        broken[3, 4] = bad
        with _refusal(r"predicted must be in \[0, 1\] and not NaN"):
            estimator.draw(broken, tasks=_TASKS, sensitivity=None, generator=None)


def test_refuses_groups_of_one() -> None:
    with _refusal("group must hold at least 2 rollouts, got 1"):
        _estimator(preset("auto")).draw(
            torch.full((20, 1), 0.5), tasks=_TASKS, sensitivity=None, generator=None
        )


def test_refuses_unknown_tasks() -> None:
    with _refusal(r"tasks must be in \[0, 3\], got 0 to 4"):
        _estimator(preset("auto")).draw(
            torch.full((5, 2), 0.5), tasks=torch.arange(5), sensitivity=None, generator=None
        )


def test_refuses_an_anchor_chosen_after_its_score_was_seen() -> None:
    estimator = _estimator(preset("auto"))
    scores = torch.full((20, 8), 0.5)
    draw = estimator.draw(scores, tasks=_TASKS, sensitivity=None, generator=None)
    everything = torch.full((20, 8), 0.5)

    with _refusal("measured must be NaN wherever draw.execute is false, got 112 scores"):
        estimator.advantage(scores, everything, draw, tasks=_TASKS)


def test_refuses_real_scores_outside_the_unit_interval() -> None:
    estimator = _estimator(preset("real"))
    scores = torch.full((20, 8), 0.5)
    draw = estimator.draw(scores, tasks=_TASKS, sensitivity=None, generator=None)

    with _refusal(r"measured must be in \[0, 1\], or NaN where missing, got 1.5 to 1.5"):
        estimator.advantage(scores, torch.full((20, 8), 1.5), draw, tasks=_TASKS)


def test_refuses_mismatched_shapes() -> None:
    estimator = _estimator(preset("auto"))
    with _refusal(r"sensitivity must have shape \(20, 8\), got \(20, 4\)"):
        estimator.draw(
            torch.full((20, 8), 0.5),
            tasks=_TASKS,
            sensitivity=torch.ones(20, 4),
            generator=None,
        )


def test_auto_needs_score_vectors() -> None:
    estimator = _estimator(preset("auto"))
    scores = torch.full((20, 8), 0.5)
    draw = estimator.draw(scores, tasks=_TASKS, sensitivity=None, generator=None)
    missing = torch.full((20, 8), torch.nan)

    with _refusal("sketch must be given with eta='auto'"):
        estimator.observe(scores, missing, draw, tasks=_TASKS, sketch=None)


def test_refuses_a_sketch_of_another_length() -> None:
    estimator = _estimator(preset("auto"))
    _run(estimator, _Steps(), 1)
    predicted, real, sketch = _Steps().next()
    draw = estimator.draw(predicted, tasks=_TASKS, sensitivity=None, generator=None)
    measured = torch.where(draw.execute, real, torch.nan)

    with _refusal("sketch must have 12 numbers a rollout as in earlier steps, got 5"):
        estimator.observe(predicted, measured, draw, tasks=_TASKS, sketch=sketch[..., :5])
