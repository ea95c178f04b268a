"""The scripted expert of each LIBERO-Long task, as an iterator of actions.

>>> expert = make_expert(5, Scene(env.model, env.data), rng=np.random.default_rng(0), jitter=1.0)
>>> for action in expert:
...     _, _, terminated, truncated, _ = env.step(action)
...     if terminated or truncated:
...         break
"""

from collections.abc import Callable, Iterator

import numpy as np

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.expert.basket import fill_basket
from wmrl_envs.libero.expert.caddy import shelve_book
from wmrl_envs.libero.expert.drawer import stow_bowl
from wmrl_envs.libero.expert.microwave import heat_mug
from wmrl_envs.libero.expert.motion import Action, Arm, Motion, Reach
from wmrl_envs.libero.expert.plates import serve_mug_and_pudding, set_two_plates
from wmrl_envs.libero.expert.scene import Scene
from wmrl_envs.libero.expert.stove import heat_two_pots, turn_on_and_heat

WAYPOINT_STD_M = 0.012
"""Standard deviation of the way-point noise at jitter 1."""

ACTION_STD = 0.15
"""Stationary standard deviation of the noise on each displacement at jitter 1."""

TURN_SHARE = 0.3
"""Noise on rotations, relative to that on displacements."""

STILL_SHARE = 0.2
"""Share of the noise that remains when the hand is meant to be still; like a person's, it grows
with the speed, so that free motion is diverse and contact stays precise."""

MEMORY = 0.8
"""Correlation of the action noise from one step to the next."""

HOLD_STEPS = 10
"""Still steps after the plan's end, in which things come to rest."""


EXPERTS: dict[str, Callable[[Arm], Motion]] = {
    "LIVING_ROOM_SCENE2_put_both_the_alphabet_soup_and_the_tomato_sauce_in_the_basket": (
        lambda arm: fill_basket(arm, ("alphabet_soup_1", "tomato_sauce_1"), (-0.03, 0.04))
    ),
    "LIVING_ROOM_SCENE2_put_both_the_cream_cheese_box_and_the_butter_in_the_basket": (
        lambda arm: fill_basket(arm, ("cream_cheese_1", "butter_1"), (-0.03, 0.03))
    ),
    "KITCHEN_SCENE3_turn_on_the_stove_and_put_the_moka_pot_on_it": turn_on_and_heat,
    "KITCHEN_SCENE4_put_the_black_bowl_in_the_bottom_drawer_of_the_cabinet_and_close_it": stow_bowl,
    "LIVING_ROOM_SCENE5_put_the_white_mug_on_the_left_plate_and_put_the_yellow_and_white_mug_on_the_right_plate": (
        set_two_plates
    ),
    "STUDY_SCENE1_pick_up_the_book_and_place_it_in_the_back_compartment_of_the_caddy": shelve_book,
    "LIVING_ROOM_SCENE6_put_the_white_mug_on_the_plate_and_put_the_chocolate_pudding_to_the_right_of_the_plate": (
        serve_mug_and_pudding
    ),
    "LIVING_ROOM_SCENE1_put_both_the_alphabet_soup_and_the_cream_cheese_box_in_the_basket": (
        lambda arm: fill_basket(arm, ("alphabet_soup_1", "cream_cheese_1"), (-0.03, 0.03))
    ),
    "KITCHEN_SCENE8_put_both_moka_pots_on_the_stove": heat_two_pots,
    "KITCHEN_SCENE6_put_the_yellow_and_white_mug_in_the_microwave_and_close_it": heat_mug,
}


class Expert(Iterator[Action]):
    """Actions of a scripted expert; each is computed from the scene as it is when asked for.

    Attributes:
        intended: The last action ``(7,)`` before noise was added: the better label for cloning,
            since it is what the expert wanted to do from the state that noise had led to.
    """

    def __init__(self, plan: Motion, *, rng: np.random.Generator, action_std: float) -> None:
        """Wrap a plan.

        Args:
            plan: Motion that yields noise-free actions.
            rng: Source of the action noise.
            action_std: Stationary standard deviation of the noise on displacements; 0 for none.
        """
        self.intended: Action = np.zeros(7)
        self._plan = plan
        self._rng = rng
        self._scale = action_std * np.array([1.0, 1.0, 1.0, TURN_SHARE, TURN_SHARE, TURN_SHARE])
        self._noise = np.zeros(6)

    def __next__(self) -> Action:
        """Return the action ``(7,)`` for the present state, in [-1, 1]."""
        self.intended = next(self._plan)
        fresh = self._rng.normal(0.0, 1.0, 6) * self._scale
        self._noise = MEMORY * self._noise + (1.0 - MEMORY**2) ** 0.5 * fresh
        effort = min(1.0, STILL_SHARE + float(np.abs(self.intended[:3]).max()))
        action = self.intended.copy()
        action[:6] += effort * self._noise
        return np.clip(action, -1.0, 1.0)


def make_expert(
    task: int | str, scene: Scene, *, rng: np.random.Generator, jitter: float = 0.0
) -> Expert:
    """Return the expert of a LIBERO-Long task, to be iterated from the episode's first step.

    Args:
        task: Number in ``libero_10``, or the task's name (that of its BDDL file).
        scene: Live view of the environment, just reset.
        rng: Source of all noise; unused at jitter 0.
        jitter: Scale of the noise: 0 is deterministic, 1 gives way-points off by
            :data:`WAYPOINT_STD_M` and smooth action noise of :data:`ACTION_STD`.

    Raises:
        InvalidInputError: If the task has no expert or the jitter is negative.
    """
    if not jitter >= 0.0:
        raise InvalidInputError(f"jitter must be 0 or more, got {jitter}; 1 is the usual amount")
    name = expert_name(task)
    arm = Arm(scene, rng=rng, waypoint_std_m=jitter * WAYPOINT_STD_M)
    return Expert(_settled(arm, EXPERTS[name]), rng=rng, action_std=jitter * ACTION_STD)


def expert_name(task: int | str) -> str:
    """Return the full name of a LIBERO-Long task given by number or name.

    Raises:
        InvalidInputError: If there is no such expert.
    """
    names = list(EXPERTS)
    if isinstance(task, int) and 0 <= task < len(names):
        return names[task]
    if task in EXPERTS:
        return str(task)
    listing = ", ".join(f"{number}: {name}" for number, name in enumerate(names))
    raise InvalidInputError(
        f"task must be a libero_10 task with an expert, got {task!r}; choose one of {listing}"
    )


def _settled(arm: Arm, plan: Callable[[Arm], Motion]) -> Motion:
    yield from plan(arm)
    here = arm.position
    for _ in range(HOLD_STEPS):
        yield arm.action_towards(here, Reach(gain=1.0))
