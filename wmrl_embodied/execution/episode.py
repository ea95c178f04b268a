"""Episode: one real rollout of an action policy in ``WMRL-LIBERO``, in a worker process.

A worker keeps its environments and its policy between jobs; a job names the policy's file, so that
a new version of the weights is loaded when it is first asked for.
"""

import functools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from wmrl_embodied.policies.checkpoint import load_policy
from wmrl_embodied.policies.contract import ActionPolicy, Observation, PlanMemory
from wmrl_embodied.seeding import torch_generator

if TYPE_CHECKING:
    from wmrl_envs.libero.env import LiberoEnv

MAX_ENVIRONMENTS = 3
"""Simulators a worker keeps open; each holds 0.3 to 2 GB."""

IMAGE_SIZE = 128
"""Side of the rendered images, in pixels: LIBERO's own demonstrations have this size."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeJob:
    """One episode to run."""

    policy: Path
    """Checkpoint of the action policy."""

    suite: str
    task: int
    init_state: int

    plan: tuple[float, ...]
    """Plan latent in units of its prior; zeros act by the policy's mean."""

    noise_seed: int | None = None
    """Seed of the policy's noise a step; None acts by the mean."""

    horizon: int | None = None
    """Control steps; None is the suite's own."""

    film: bool = False
    """Keep the agent view of every chunk."""

    only_start: bool = False
    """Return after the first observation: its features, no score."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """What one episode showed."""

    success: bool
    steps: int
    """Control steps until success or the horizon."""

    features: NDArray[np.float32]
    """z at the start of each chunk, shape (chunks, features)."""

    proprio: NDArray[np.float32]
    """The environment's ``state`` at the start of each chunk, shape (chunks, 8)."""

    chunk_logp: NDArray[np.float32]
    """Log-probability of the noise of each chunk, shape (chunks,)."""

    cpu_seconds: float
    """CPU time of this process for this episode, a simulator's start included."""

    frames: NDArray[np.uint8] | None = None
    """Agent view of each chunk, upright, shape (chunks, height, width, 3)."""


def run_job(job: EpisodeJob) -> Episode:
    """Run one episode in this worker; the function a pool calls."""
    began = time.process_time()
    torch.set_num_threads(1)
    policy = _policy(job.policy, job.policy.stat().st_mtime_ns)
    env = _environment(job.suite, job.task, policy.chunk, job.horizon)
    observation, _ = env.reset(options={"init_state": job.init_state})
    generator = None if job.noise_seed is None else torch_generator(job.noise_seed, "noise")
    plan = torch.tensor(job.plan, dtype=torch.float32)
    return roll(
        env, policy, plan, observation, generator=generator, film=job.film, began=began,
        max_chunks=0 if job.only_start else None,
    )  # fmt: skip


def roll(
    env: "LiberoEnv",
    policy: ActionPolicy,
    plan: torch.Tensor,
    observation: Observation,
    *,
    generator: torch.Generator | None = None,
    film: bool = False,
    began: float | None = None,
    max_chunks: int | None = None,
) -> Episode:
    """Return the episode that ``policy`` drives from ``observation`` to success or the horizon.

    Args:
        env: Environment whose last observation is ``observation``, chunked like the policy.
        policy: The action policy.
        plan: w, shape (dims,), in units of the prior.
        observation: First observation.
        generator: Source of noise a step; None acts by the mean.
        film: Keep the agent view.
        began: ``time.process_time()`` from which the cost counts; now by default.
        max_chunks: Chunks after which to stop; None goes on to the end of the episode.
    """
    began = time.process_time() if began is None else began
    memory, success, ended, steps = PlanMemory(), False, max_chunks == 0, 0
    features, proprio, logps, frames = [policy.encode(observation)], [observation["state"]], [], []
    while not ended:
        if film:
            frames.append(_upright(observation))
        chunk = policy.act(observation, plan, memory, generator=generator)
        memory = chunk.memory
        logps.append(chunk.chunk_logp)
        if logps[1:]:
            features.append(chunk.features)
            proprio.append(observation["state"])
        observation, _, success, truncated, info = env.step(chunk.actions)
        steps += info["steps"]
        ended = success or truncated or len(logps) == max_chunks
    return Episode(
        success=bool(success),
        steps=steps,
        features=torch.stack(features).numpy(),
        proprio=np.stack(proprio).astype(np.float32),
        chunk_logp=np.array(logps, dtype=np.float32),
        cpu_seconds=time.process_time() - began,
        frames=np.stack([*frames, _upright(observation)]) if film else None,
    )


def _upright(observation: Observation) -> NDArray[np.uint8]:
    # The VLA convention turns the raw image by 180°, which mirrors reality: flip left and right.
    return observation["images"]["agentview"][:, ::-1]


@functools.lru_cache(maxsize=2)
def _policy(path: Path, _version: int) -> ActionPolicy:
    # ``_version`` is the file's modification time: a rewritten checkpoint is another policy.
    return load_policy(path)


_environments: dict[tuple[str, int, int, int | None], "LiberoEnv"] = {}


def _environment(suite: str, task: int, chunk: int, horizon: int | None) -> "LiberoEnv":
    key = (suite, task, chunk, horizon)
    if key not in _environments:
        os.environ.setdefault("LP_NUM_THREADS", "1")
        from wmrl_envs.libero.env import LiberoEnv

        while len(_environments) >= MAX_ENVIRONMENTS:
            _environments.pop(next(iter(_environments))).close()
        _environments[key] = LiberoEnv(
            suite=suite,
            task=task,
            image_size=IMAGE_SIZE,
            chunk=chunk,
            horizon=horizon,
            multisample=False,
        )
    _environments[key] = _environments.pop(key)
    return _environments[key]
