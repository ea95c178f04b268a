"""The default estimator is fast with a right world model and safe with a wrong one."""

import pytest

from wmrl_embodied.simulate.suite import SimulateConfig, SuiteResult, run_suite

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def result() -> SuiteResult:
    return run_suite(
        SimulateConfig(
            presets=("paper", "auto"),
            seeds=6,
            first_seed=500,
            biases=("none", "misordered", "exploitable", "useless", "adversarial"),
            noises=(0.1,),
            scores=("binary",),
        )
    )


def test_auto_is_never_significantly_below_real_execution(result: SuiteResult) -> None:
    assert result.summary()["presets"]["auto"]["worse_than_real"] == 0


def test_auto_is_several_times_cheaper_with_a_right_world_model(result: SuiteResult) -> None:
    speedup = result.summary()["presets"]["auto"]["speedup"]
    assert speedup is not None
    assert speedup > 3.0


def test_the_published_rule_falls_below_real_execution_when_order_is_wrong(
    result: SuiteResult,
) -> None:
    paper = result.summary()["presets"]["paper"]
    worse, worst = paper["worse_than_real"], paper["worst"]
    assert worse is not None
    assert worst is not None
    assert worse >= 2
    assert worst < 0.6
