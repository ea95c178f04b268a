"""Supervised fine-tuning: cloning demonstrations into the small vision-language-action policy.

Notation:
    sample   one stored observation of a demonstration and the chunk of actions that followed it
    L        mean |motion error| over the chunk + ``gripper_weight`` · binary cross-entropy

Steps past the end of a demonstration carry no loss. Images are shifted by a few pixels and their
brightness is scaled; proprioception gets noise, without which a cloned policy learns to read its
own trajectory off the arm and ignores the camera.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (torch's own convention)
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from wmrl_embodied.policies.small_vla import (
    ACTION_DIMS,
    MOTION_DIMS,
    SmallVLA,
    SmallVLAConfig,
    proprioception,
    tokenize,
)
from wmrl_embodied.seeding import seed_of, torch_generator
from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.dataset import Demonstration


@dataclass(frozen=True, kw_only=True, slots=True)
class SftConfig:
    """One supervised run."""

    policy: SmallVLAConfig = field(default_factory=SmallVLAConfig)
    """Architecture."""

    steps: int = 4000
    """Optimiser steps."""

    batch: int = 96
    """Samples a step."""

    learning_rate: float = 2e-3
    """Peak of the one-cycle schedule."""

    weight_decay: float = 1e-3
    """Decoupled weight decay."""

    gripper_weight: float = 0.1
    """Weight of the gripper's cross-entropy against the motion's absolute error."""

    proprio_noise: float = 0.03
    """Standard deviation of noise on standardised proprioception."""

    shift_pixels: int = 2
    """Largest shift of an image, in network pixels."""

    brightness: float = 0.1
    """Standard deviation of the brightness factor around 1."""

    seed: int = 0
    """Root seed."""

    def __post_init__(self) -> None:
        """Reject runs that could learn nothing."""
        if min(self.steps, self.batch) < 1 or self.learning_rate <= 0.0:
            raise InvalidInputError(
                "steps and batch must be at least 1 and learning_rate above 0, got "
                f"steps={self.steps}, batch={self.batch}, learning_rate={self.learning_rate}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """Demonstrations as tensors, one row a stored observation."""

    images: UInt8[Tensor, "samples camera height width 3"]
    proprio: Float[Tensor, "samples proprio"]
    words: Int[Tensor, "samples words"]
    chunks: Float[Tensor, "samples chunk action"]
    is_inside: Bool[Tensor, "samples chunk"]
    """False for steps past the end of the demonstration."""


def samples_from(demonstrations: Sequence[Demonstration], config: SmallVLAConfig) -> Samples:
    """Return the training samples of demonstrations, images averaged down to the network's size.

    Raises:
        InvalidInputError: If there is no demonstration.
    """
    if not demonstrations:
        raise InvalidInputError(
            "demonstrations must hold at least one episode, got none; run `wmrl collect` first"
        )
    images, proprio, chunks, inside, texts = [], [], [], [], []
    for demo in demonstrations:
        actions = demo.intended.astype(np.float32)
        padded = np.concatenate([actions, np.zeros((config.chunk, ACTION_DIMS), np.float32)])
        images.append(_shrink(demo.images, config.image_size))
        for step in demo.image_steps:
            gripper = actions[step - 1, -1] if step > 0 else -1.0
            proprio.append(proprioception(demo.state[step], float(np.sign(gripper))))
            chunks.append(padded[step : step + config.chunk])
            inside.append(step + np.arange(config.chunk) < len(actions))
        texts += [demo.language] * len(demo.image_steps)
    return Samples(
        images=torch.cat(images),
        proprio=torch.from_numpy(np.stack(proprio)),
        words=tokenize(texts, config),
        chunks=torch.from_numpy(np.stack(chunks)),
        is_inside=torch.from_numpy(np.stack(inside)),
    )


def fit(
    samples: Samples,
    config: SftConfig,
    *,
    on_step: Callable[[int, dict[str, float]], None] | None = None,
) -> SmallVLA:
    """Return a policy trained on ``samples``.

    Args:
        samples: What :func:`samples_from` returned.
        config: The run.
        on_step: Called with the step and its metrics (``loss``, ``motion_error``,
            ``gripper_error``, ``seconds``).
    """
    torch.manual_seed(seed_of(config.seed, "weights") % 2**31)
    policy = SmallVLA(config.policy)
    policy.proprio_mean.copy_(samples.proprio.mean(0))
    policy.proprio_std.copy_(samples.proprio.std(0).clamp_min(1e-2))
    optimizer = torch.optim.AdamW(
        policy.parameters(), config.learning_rate, weight_decay=config.weight_decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.learning_rate, config.steps)
    generator, began = torch_generator(config.seed, "batches"), time.perf_counter()
    for step in range(config.steps):
        rows = torch.randint(len(samples.proprio), (config.batch,), generator=generator)
        metrics = _losses(policy, _augment(samples, rows, config, generator), config)
        optimizer.zero_grad()
        metrics["loss"].backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if on_step is not None:
            shown = {name: float(value.detach()) for name, value in metrics.items()}
            on_step(step, {**shown, "seconds": time.perf_counter() - began})
    return policy.eval().requires_grad_(False)


def _losses(policy: SmallVLA, batch: Samples, config: SftConfig) -> dict[str, Tensor]:
    text = policy.encode_text(batch.words)
    predicted = policy.chunk_mean(policy.encode_images(batch.images, text), text, batch.proprio)
    weight = batch.is_inside.float() / batch.is_inside.sum()
    error = (predicted - batch.chunks)[..., :MOTION_DIMS].abs().mean(-1)
    motion = (error * weight).sum()
    closes = (batch.chunks[..., -1] > 0.0).float()
    cross_entropy = F.binary_cross_entropy_with_logits(predicted[..., -1], closes, reduction="none")
    gripper = (cross_entropy * weight).sum()
    loss = motion + config.gripper_weight * gripper
    return {"loss": loss, "motion_error": motion, "gripper_error": gripper}


def _augment(
    samples: Samples, rows: Int[Tensor, " batch"], config: SftConfig, generator: torch.Generator
) -> Samples:
    images = samples.images[rows]
    count, reach = len(rows), config.shift_pixels
    shift = torch.randint(-reach, reach + 1, (count, 2, 2), generator=generator)
    size = torch.arange(images.shape[2])
    limit = images.shape[2] - 1
    y = (size + shift[..., :1]).clamp(0, limit)
    x = (size + shift[..., 1:]).clamp(0, limit)
    batch, camera = torch.arange(count)[:, None, None, None], torch.arange(2)[:, None, None]
    images = images[batch, camera, y[..., :, None], x[..., None, :]].float()
    factor = 1.0 + config.brightness * torch.randn(count, 1, 1, 1, 1, generator=generator)
    noise = config.proprio_noise * torch.randn(samples.proprio[rows].shape, generator=generator)
    return Samples(
        images=(images * factor).clamp(0, 255).to(torch.uint8),
        proprio=samples.proprio[rows] + noise * samples.proprio.std(0),
        words=samples.words[rows],
        chunks=samples.chunks[rows],
        is_inside=samples.is_inside[rows],
    )


def _shrink(images: np.ndarray, size: int) -> UInt8[Tensor, "steps camera size size 3"]:
    pixels = torch.from_numpy(images)
    factor = pixels.shape[2] // size
    if factor <= 1:
        return pixels
    # 2 × 2 (or larger) averages in blocks of steps, so that floats of a whole set never exist.
    parts = []
    for block in pixels.split(64):
        flat = block.flatten(0, 1).permute(0, 3, 1, 2).float()
        small = F.avg_pool2d(flat, factor).round().to(torch.uint8).permute(0, 2, 3, 1)
        parts.append(small.reshape(len(block), -1, size, size, 3))
    return torch.cat(parts)
