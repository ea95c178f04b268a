"""Small vision-language-action policy: one network for all tasks, trainable on a CPU.

Notation:
    o      observation: two camera images, proprioception, the instruction's text
    z      features: the vision encoder's summary of the images under the instruction
    a_h    action h of a chunk, (Δx, Δy, Δz, Δroll, Δpitch, Δyaw, gripper)
    w      plan latent; w_open is added to the motion while the gripper is open, w_closed while closed
    σ      standard deviation of the motion noise a step, 0 for a deterministic policy

The vision encoder is separable (:meth:`SmallVLA.encode_images`), so that a world model can work on
its features. The plan's four numbers for each state of the gripper are added to (Δx, Δy, Δz, Δyaw):
a bias of how things are reached, and one of how they are carried and put down.
"""

import math
import re
import zlib
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (torch's own convention)
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray
from torch import Tensor, nn

from wmrl_embodied.policies.contract import ActionChunk, Observation, PlanMemory
from wmrl_envs.errors import InvalidInputError

ACTION_DIMS = 7
MOTION_DIMS = 6
PLAN_AXES = (0, 1, 2, 5)
"""Action components that a plan shifts: Δx, Δy, Δz and Δyaw."""

PLAN_DIMS = 2 * len(PLAN_AXES)
"""Length of w: one number an axis while the gripper is open, one while it is closed."""

PROPRIO_DIMS = 12
"""Position (3), the first two columns of the rotation matrix (6), gripper joints (2), last command."""

_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallVLAConfig:
    """Architecture of the small policy."""

    image_size: int = 64
    """Side of the square images the network sees, in pixels; larger ones are averaged down."""

    chunk: int = 8
    """Control steps predicted at once."""

    features: int = 64
    """Length of z."""

    width: int = 256
    """Hidden width of the action head."""

    text_buckets: int = 512
    """Size of the hashed vocabulary."""

    text_features: int = 32
    """Length of the instruction's embedding."""

    max_words: int = 32
    """Longest instruction, in words."""

    plan_scale: float = 0.065
    """Prior standard deviation of a plan number, in action units (1 is 5 cm a step)."""

    yaw_scale: float = 0.4
    """Width of the yaw numbers relative to the others."""

    noise_std: float = 0.0
    """σ of the motion noise a step, in action units; 0 leaves exploration to the plan."""

    def __post_init__(self) -> None:
        """Reject architectures that cannot be built."""
        if self.image_size % 16 or self.image_size < 32:
            raise InvalidInputError(
                f"image_size must be a multiple of 16 of at least 32, got {self.image_size}"
            )
        if min(self.chunk, self.features) < 1:
            raise InvalidInputError(
                "chunk and features must be at least 1, got "
                f"chunk={self.chunk}, features={self.features}"
            )
        if self.noise_std < 0.0 or self.plan_scale <= 0.0:
            raise InvalidInputError(
                "noise_std must be at least 0 and plan_scale above 0, got "
                f"noise_std={self.noise_std}, plan_scale={self.plan_scale}"
            )


class CameraEncoder(nn.Module):
    """Convolutions with text-conditioned channels, read out by position and by content."""

    def __init__(self, image_size: int, text_features: int, out_features: int) -> None:
        super().__init__()
        channels = 32
        self.conv1 = nn.Conv2d(3, 24, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(24, channels, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv4 = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.film = nn.Linear(text_features, 4 * channels)
        self.temperature = nn.Parameter(torch.ones(1))
        grid = image_size // 4
        self.project = nn.Linear(channels * (grid // 2) ** 2 + 2 * channels, out_features)
        axis = torch.linspace(-1.0, 1.0, grid)
        self.register_buffer("axis", axis, persistent=False)

    def forward(
        self,
        image: Float[Tensor, "batch 3 height width"],
        text: Float[Tensor, "batch text_features"],
    ) -> Float[Tensor, "batch out_features"]:
        """Return one vector an image."""
        gain2, bias2, gain3, bias3 = self.film(text)[:, :, None, None].chunk(4, dim=1)
        hidden = F.relu(self.conv2(F.relu(self.conv1(image))) * (1.0 + gain2) + bias2)
        hidden = self.conv3(hidden) * (1.0 + gain3) + bias3
        attention = (hidden.flatten(2) * self.temperature).softmax(-1).view_as(hidden)
        keypoints = torch.cat(
            [(attention.sum(2) * self.axis).sum(-1), (attention.sum(3) * self.axis).sum(-1)], dim=1
        )
        content = F.relu(self.conv4(F.relu(hidden))).flatten(1)
        # Content has many more entries than keypoints; scaled so that neither drowns the other.
        return self.project(torch.cat([0.3 * content, keypoints], dim=1))


class SmallVLA(nn.Module):
    """p(chunk | o, w): Gaussian motion around a mean plus the plan's offsets, Bernoulli gripper."""

    proprio_mean: Tensor
    proprio_std: Tensor

    def __init__(self, config: SmallVLAConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.text_buckets, config.text_features, padding_idx=0)
        self.text = nn.GRU(config.text_features, config.text_features, batch_first=True)
        camera = (config.image_size, config.text_features, 48)
        self.agentview, self.wrist = CameraEncoder(*camera), CameraEncoder(*camera)
        self.to_features = nn.Sequential(
            nn.ReLU(),
            nn.Linear(96, config.features),
            nn.LayerNorm(config.features, elementwise_affine=False),
        )
        self.head = nn.Sequential(
            nn.Linear(config.features + config.text_features + PROPRIO_DIMS, config.width),
            nn.ReLU(),
            nn.Linear(config.width, config.width),
            nn.ReLU(),
            nn.Linear(config.width, config.chunk * ACTION_DIMS),
        )
        self.register_buffer("proprio_mean", torch.zeros(PROPRIO_DIMS))
        self.register_buffer("proprio_std", torch.ones(PROPRIO_DIMS))

    @property
    def chunk(self) -> int:
        """Control steps an action chunk lasts."""
        return self.config.chunk

    @property
    def plan_dims(self) -> int:
        """Length of w."""
        return PLAN_DIMS

    def encode_text(
        self, words: Int[Tensor, "batch words"]
    ) -> Float[Tensor, "batch text_features"]:
        """Return the instruction's embedding: the recurrent state after its last word."""
        states, _ = self.text(self.words(words))
        last = (words != 0).sum(1).clamp_min(1) - 1
        return states[torch.arange(len(words), device=words.device), last]

    def encode_images(
        self,
        images: UInt8[Tensor, "batch camera height width 3"],
        text: Float[Tensor, "batch text_features"],
    ) -> Float[Tensor, "batch features"]:
        """Return z of image pairs (agent view, wrist) under an instruction."""
        pixels = _to_network_size(images, self.config.image_size)
        both = [self.agentview(pixels[:, 0], text), self.wrist(pixels[:, 1], text)]
        return self.to_features(torch.cat(both, dim=1))

    def chunk_mean(
        self,
        features: Float[Tensor, "batch features"],
        text: Float[Tensor, "batch text_features"],
        proprio: Float[Tensor, "batch proprio"],
    ) -> Float[Tensor, "batch chunk action"]:
        """Return the mean motion and the gripper's logit (positive closes) of the next chunk."""
        standard = (proprio - self.proprio_mean) / self.proprio_std
        flat = self.head(torch.cat([features, text, standard], dim=1))
        return flat.view(-1, self.config.chunk, ACTION_DIMS)

    def encode(self, observation: Observation) -> Float[Tensor, " features"]:
        """Return z of one observation of ``WMRL-LIBERO``."""
        with torch.no_grad():
            text = self.encode_text(tokenize([observation["task"]], self.config))
            return self.encode_images(image_pair(observation)[None], text)[0]

    @torch.no_grad()
    def act(
        self,
        observation: Observation,
        plan: Float[Tensor, " dims"],
        memory: PlanMemory,
        *,
        generator: torch.Generator | None = None,
    ) -> ActionChunk:
        """Return the next chunk: the mean without ``generator``, a draw with it.

        Args:
            observation: One observation of ``WMRL-LIBERO`` in the VLA image convention.
            plan: w, in units of the prior.
            memory: What the previous chunk returned; ``PlanMemory()`` at the start.
            generator: Source of the noise a step; None acts by the mean and the likelier gripper.
        """
        text = self.encode_text(tokenize([observation["task"]], self.config))
        features = self.encode_images(image_pair(observation)[None], text)
        proprio = torch.from_numpy(proprioception(observation["state"], memory.gripper))[None]
        mean = self.chunk_mean(features, text, proprio)[0]
        sampled = _draw(mean, self.config.noise_std, generator)
        logp = 0.0
        if generator is not None:
            logp = float(chunk_log_prob(sampled[None], mean[None], self.config.noise_std)[0])
        offsets, after = plan_offsets(plan.numpy(), sampled[:, -1].numpy(), memory, self.config)
        actions = np.clip(sampled.numpy() + offsets, -1.0, 1.0).astype(np.float32)
        return ActionChunk(
            actions=actions, sampled=sampled, chunk_logp=logp, features=features[0], memory=after
        )


def tokenize(instructions: list[str], config: SmallVLAConfig) -> Int[Tensor, "batch words"]:
    """Return hashed word numbers, padded with 0; the hash is the same on every machine.

    Raises:
        InvalidInputError: If an instruction is empty or longer than ``config.max_words``.
    """
    rows = []
    for instruction in instructions:
        words = re.findall(r"[a-z0-9]+", instruction.lower())
        if not 1 <= len(words) <= config.max_words:
            raise InvalidInputError(
                f"instruction must have 1 to {config.max_words} words, got {len(words)}: "
                f"{instruction[:80]!r}"
            )
        buckets = config.text_buckets - 1
        rows.append([1 + zlib.crc32(word.encode()) % buckets for word in words])
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def image_pair(observation: Observation) -> UInt8[Tensor, "camera height width 3"]:
    """Stack the agent view and the wrist view of one observation."""
    images = observation["images"]
    return torch.from_numpy(np.stack([images["agentview"], images["wrist"]]))


def proprioception(state: NDArray[np.floating], gripper: float) -> NDArray[np.float32]:
    """Return the policy's 12 numbers from the environment's 8 and the last gripper command.

    The orientation becomes two columns of the rotation matrix: an axis-angle jumps where the angle
    passes π, which is where a gripper that points down lives.

    Args:
        state: Position (3, m), axis-angle (3, rad), gripper joints (2, m).
        gripper: Last commanded gripper action, −1 open or +1 closed.
    """
    axis_angle = np.asarray(state[3:6], dtype=np.float64)
    angle = float(np.linalg.norm(axis_angle))
    x, y, z = axis_angle / max(angle, 1e-12)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # Rodrigues: R = I + sin θ K + (1 − cos θ) K²
    rotation = np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * (cross @ cross)
    parts = [state[:3], rotation[:, 0], rotation[:, 1], state[6:8], [gripper]]
    return np.concatenate(parts).astype(np.float32)


def plan_offsets(
    plan: NDArray[np.floating],
    gripper: NDArray[np.floating],
    memory: PlanMemory,
    config: SmallVLAConfig,
) -> tuple[NDArray[np.float32], PlanMemory]:
    """Return what a plan adds to each action of a chunk, and the memory after it.

    Args:
        plan: w, shape (dims,), in units of the prior.
        gripper: The chunk's gripper commands, shape (chunk,), −1 or +1.
        memory: Memory before the chunk.
        config: Scales.
    """
    # An action is shifted by the command before it: the switch itself still belongs to the old one.
    before = np.concatenate([[memory.gripper], gripper[:-1]])
    is_closed = (before > 0.0).astype(int)
    scales = config.plan_scale * np.array([1.0, 1.0, 1.0, config.yaw_scale])
    offsets = np.zeros((len(gripper), ACTION_DIMS), dtype=np.float32)
    offsets[:, list(PLAN_AXES)] = plan.reshape(2, len(PLAN_AXES))[is_closed] * scales
    return offsets, PlanMemory(gripper=float(gripper[-1]))


def chunk_log_prob(
    sampled: Float[Tensor, "batch chunk action"],
    mean: Float[Tensor, "batch chunk action"],
    noise_std: float,
) -> Float[Tensor, " batch"]:
    """Return the exact log-probability of sampled chunks: Gaussian motion, Bernoulli gripper.

    Args:
        sampled: Motion as drawn, before clipping; gripper −1 or +1.
        mean: Mean motion and gripper logit.
        noise_std: σ of the motion, above 0.
    """
    noise = (sampled[..., :MOTION_DIMS] - mean[..., :MOTION_DIMS]) / noise_std
    motion = -0.5 * (noise.square() + _LOG_2PI).sum((1, 2))
    motion = motion - math.log(noise_std) * noise[0].numel()
    gripper = F.logsigmoid(sampled[..., -1] * mean[..., -1]).sum(1)
    return motion + gripper


def _draw(
    mean: Float[Tensor, "chunk action"], noise_std: float, generator: torch.Generator | None
) -> Float[Tensor, "chunk action"]:
    motion, logit = mean[:, :MOTION_DIMS], mean[:, -1:]
    if generator is None:
        return torch.cat([motion, torch.where(logit > 0.0, 1.0, -1.0)], dim=1)
    if noise_std <= 0.0:
        raise InvalidInputError(
            "noise_std must be above 0 to draw actions, got 0; pass no generator"
        )
    motion = motion + noise_std * torch.randn(motion.shape, generator=generator)
    closes = torch.rand(logit.shape, generator=generator) < logit.sigmoid()
    return torch.cat([motion, torch.where(closes, 1.0, -1.0)], dim=1)


def _to_network_size(
    images: UInt8[Tensor, "batch camera height width 3"], size: int
) -> Float[Tensor, "batch camera 3 size size"]:
    height = images.shape[2]
    if images.shape[3] != height or height % size:
        raise InvalidInputError(
            f"images must be square with a side that is a multiple of {size}, got "
            f"{tuple(images.shape[2:4])}; set the environment's image_size"
        )
    pixels = images.permute(0, 1, 4, 2, 3).float()
    if height != size:
        flat = F.avg_pool2d(pixels.flatten(0, 1), height // size)
        pixels = flat.view(*pixels.shape[:2], 3, size, size)
    return pixels / 255.0 - 0.45
