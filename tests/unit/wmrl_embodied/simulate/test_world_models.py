"""Each world model is wrong in its own way and no other."""

import pytest
import torch
from torch import Tensor

from wmrl_embodied.simulate import problem as bandit
from wmrl_embodied.simulate import world_models
from wmrl_embodied.simulate.world_models import BIASES, Bias, Cell

_SEEDS = [0, 1]


def _scores(
    bias: Bias, *, noise: float = 0.0, progress: float = 1.0, real: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return real and predicted scores, and expected rewards, of one cell on random actions."""
    problem = bandit.make(_SEEDS)
    cells = (Cell(bias=bias, noise=noise, binary=False),)
    models = world_models.make(problem, _SEEDS, cells)
    generator = torch.Generator().manual_seed(0)
    tasks = torch.randint(0, bandit.TASKS, (2, 50), generator=generator)
    actions = torch.randint(0, bandit.ACTIONS, (2, 1, 50, 8), generator=generator)
    rows = problem.reward[torch.arange(2)[:, None], tasks].unsqueeze(1)
    mean = rows.gather(-1, actions)
    scores = world_models.real_scores(mean, cells, generator=generator)
    if real is not None:
        scores = torch.full_like(scores, real)
    predicted = world_models.predict(
        models,
        scores,
        tasks,
        actions,
        progress=torch.full((2, 1), progress),
        generator=generator,
    )
    return scores, predicted, mean


@pytest.mark.parametrize("bias", BIASES)
def test_scores_stay_within_the_unit_interval(bias: Bias) -> None:
    _, predicted, _ = _scores(bias, noise=0.3)

    assert 0.0 <= float(predicted.min()) <= float(predicted.max()) <= 1.0


@pytest.mark.parametrize("binary", [True, False])
def test_real_scores_have_the_reward_as_their_mean(binary: bool) -> None:
    reward = torch.full((1, 1, 400, 500), 0.3)
    cells = (Cell(bias="none", noise=0.1, binary=binary),)

    real = world_models.real_scores(reward, cells, generator=torch.Generator().manual_seed(0))

    assert abs(float(real.mean()) - 0.3) < 0.005
    assert (set(real.unique().tolist()) == {0.0, 1.0}) == binary


def test_without_bias_and_noise_the_score_is_real() -> None:
    real, predicted, _ = _scores("none")

    torch.testing.assert_close(predicted, real)


def test_noise_has_the_size_of_its_cell() -> None:
    real, predicted, _ = _scores("none", noise=0.1, real=0.5)

    assert abs(float((predicted - real).std()) - 0.1) < 0.01


def test_constant_bias_is_the_same_everywhere() -> None:
    real, predicted, _ = _scores("constant", real=0.5)

    assert float((predicted - real).std()) < 1e-6
    assert float((predicted - real).mean()) > 0.1


def test_per_task_bias_is_constant_within_a_group() -> None:
    real, predicted, _ = _scores("per_task", real=0.5)

    shift = predicted - real
    assert float(shift.std(-1).max()) < 1e-6
    assert float(shift.mean(-1).std()) > 0.1


def test_monotone_bias_keeps_the_order() -> None:
    real, predicted, _ = _scores("monotone")

    order = real.flatten().argsort()
    assert float(predicted.flatten()[order].diff().min()) >= 0.0
    assert float(predicted.std()) < float(real.std())


def test_misordered_bias_differs_within_a_group() -> None:
    real, predicted, _ = _scores("misordered", real=0.5)

    assert float((predicted - real).std(-1).mean()) > 0.2


def test_drifting_bias_grows_with_the_budget_spent() -> None:
    early = _scores("drifting", progress=0.0, real=0.5)
    late = _scores("drifting", progress=1.0, real=0.5)

    torch.testing.assert_close(early[1], early[0])
    assert float((late[1] - late[0]).std()) > 0.2


def test_exploitable_scores_overrate_bad_actions_only() -> None:
    problem = bandit.make(_SEEDS)
    cells = (Cell(bias="exploitable", noise=0.1, binary=True),)

    exploit = world_models.make(problem, _SEEDS, cells).exploit

    overrated = exploit > 0
    assert overrated.sum(-1).unique().tolist() == [3]
    median = problem.reward.median(-1, keepdim=True).values.expand_as(exploit)
    assert bool((problem.reward[overrated] <= median[overrated]).all())


def test_useless_scores_say_nothing() -> None:
    real, predicted, _ = _scores("useless", noise=0.3)

    stacked = torch.stack([real.flatten(), predicted.flatten()])
    assert abs(float(torch.corrcoef(stacked)[0, 1])) < 0.1
    assert float(predicted.std()) > 0.1


def test_adversarial_scores_are_reversed() -> None:
    real, predicted, _ = _scores("adversarial")

    torch.testing.assert_close(predicted, 1.0 - real)
