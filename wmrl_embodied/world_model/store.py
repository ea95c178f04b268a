"""Store: a world model as one safetensors file, data and configuration together, no pickle."""

import json
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from wmrl_embodied.files import write_atomically
from wmrl_embodied.world_model.plan_latent import PlanLatentConfig, PlanLatentModel
from wmrl_envs.errors import InvalidInputError

FORMAT = "wmrl-plan-latent-1"


def save_world_model(
    model: PlanLatentModel, path: Path, *, note: dict[str, str] | None = None
) -> None:
    """Write ``model`` to ``path`` atomically; ``note`` says what made it."""
    header = {
        "format": FORMAT,
        "config": json.dumps(asdict(model.config)),
        "num_tasks": str(model.num_tasks),
        **(note or {}),
    }
    write_atomically(path, save(model.state_dict(), metadata=header))


def load_world_model(path: Path) -> PlanLatentModel:
    """Return the world model stored at ``path``; it predicts exactly as the one saved.

    Raises:
        InvalidInputError: If the file is broken or another kind of checkpoint.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InvalidInputError(
            f"world model must be a whole safetensors file, got {str(path)!r} ({error})"
        ) from error
    if header.get("format") != FORMAT:
        raise InvalidInputError(
            f"world model must have format {FORMAT!r}, got {header.get('format')!r} in {str(path)!r}"
        )
    config = PlanLatentConfig(**json.loads(header["config"]))
    model = PlanLatentModel(config, num_tasks=int(header["num_tasks"]))
    model.load_state_dict(tensors)
    return model
