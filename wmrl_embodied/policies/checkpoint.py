"""Policy checkpoint: one safetensors file that holds weights and configuration, no pickle."""

import json
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from wmrl_embodied.files import write_atomically
from wmrl_embodied.policies.small_vla import SmallVLA, SmallVLAConfig
from wmrl_envs.errors import InvalidInputError

FORMAT = "wmrl-small-vla-1"


def save_policy(policy: SmallVLA, path: Path, *, note: dict[str, str] | None = None) -> None:
    """Write ``policy`` to ``path`` atomically.

    Args:
        policy: The policy.
        path: File to write, ending in ``.safetensors``.
        note: What made it (command, seed, data), kept in the file's header.
    """
    header = {"format": FORMAT, "config": json.dumps(asdict(policy.config)), **(note or {})}
    tensors = {name: tensor.contiguous() for name, tensor in policy.state_dict().items()}
    write_atomically(path, save(tensors, metadata=header))


def load_policy(path: Path) -> SmallVLA:
    """Return the policy stored at ``path``, in evaluation mode.

    Raises:
        InvalidInputError: If the file is missing, broken or another kind of checkpoint.
    """
    header, tensors = _read(path)
    policy = SmallVLA(SmallVLAConfig(**json.loads(header["config"])))
    policy.load_state_dict(tensors)
    return policy.eval().requires_grad_(False)


def policy_note(path: Path) -> dict[str, str]:
    """Return what made the checkpoint at ``path``: the header without format and configuration."""
    header, _ = _read(path)
    return {name: text for name, text in header.items() if name not in {"format", "config"}}


def _read(path: Path) -> tuple[dict[str, str], dict]:
    if not path.is_file():
        raise InvalidInputError(
            f"policy checkpoint must be a file, got {str(path)!r}; make one with `wmrl sft`"
        )
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise InvalidInputError(
                    f"policy checkpoint must have format {FORMAT!r}, got {header.get('format')!r} "
                    f"in {str(path)!r}; make one with `wmrl sft`"
                )
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InvalidInputError(
            f"policy checkpoint must be a whole safetensors file, got {str(path)!r} ({error}); "
            "copy it again or make one with `wmrl sft`"
        ) from error
