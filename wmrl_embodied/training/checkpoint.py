"""Checkpoint: a training state on disk, whole and verified, or not there at all.

A checkpoint is a folder ``step-000010`` with ``tensors.safetensors`` and ``state.json``; the second
holds the checksum of the first. It is written under another name and renamed, so that a run that is
killed while writing leaves the previous checkpoint as the newest. Nothing is pickled.
"""

import hashlib
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor

from wmrl_embodied.files import write_atomically
from wmrl_embodied.training.ledger import Ledger
from wmrl_embodied.training.state import TrainState
from wmrl_envs.errors import InvalidInputError

FORMAT = "wmrl-checkpoint-1"
_TENSORS, _STATE = "tensors.safetensors", "state.json"


def save_checkpoint(state: TrainState, folder: Path, *, keep: int) -> Path:
    """Write ``state`` below ``folder`` and drop all but the ``keep`` newest checkpoints.

    Returns:
        The folder written.

    Raises:
        InvalidInputError: If the disk refuses.
    """
    path, partial = folder / f"step-{state.step:06d}", folder / f".partial-{state.step:06d}"
    shutil.rmtree(partial, ignore_errors=True)
    content = save(_tensors_of(state))
    write_atomically(partial / _TENSORS, content)
    record = {
        "format": FORMAT,
        "sha256": hashlib.sha256(content).hexdigest(),
        "step": state.step,
        "is_warm": state.is_warm,
        "ledger": state.ledger.to_json(),
    }
    write_atomically(partial / _STATE, json.dumps(record, indent=1))
    shutil.rmtree(path, ignore_errors=True)
    partial.rename(path)
    for old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old)
    return path


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints below ``folder``, oldest first."""
    return sorted(folder.glob("step-*"))


def load_checkpoint(state: TrainState, path: Path) -> None:
    """Restore into ``state`` what :func:`save_checkpoint` wrote.

    Raises:
        InvalidInputError: If the checkpoint is incomplete, corrupt or of another format; names the
            previous one where there is one.
    """
    try:
        record = json.loads((path / _STATE).read_text(encoding="utf-8"))
        content = (path / _TENSORS).read_bytes()
    except (OSError, json.JSONDecodeError) as error:
        raise InvalidInputError(f"{_refusal(path)}, got {error}; {_remedy(path)}") from error
    if record.get("format") != FORMAT:
        raise InvalidInputError(
            f"{_refusal(path)}, got format {record.get('format')!r}; {_remedy(path)}"
        )
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        raise InvalidInputError(f"{_refusal(path)}, got a wrong checksum; {_remedy(path)}")
    _restore(state, load(content))
    state.ledger = Ledger.from_json(record["ledger"])
    state.step, state.is_warm = record["step"], record["is_warm"]


def _tensors_of(state: TrainState) -> dict[str, Tensor]:
    parts = {
        "policy": state.domain.policy.state_dict(),
        "world_model": state.domain.world_model.state_dict(),
        "estimator": state.estimator.state_dict(),
        "optimizer": {
            f"{number}.{name}": value
            for number, entry in state.optimizer.state_dict()["state"].items()
            for name, value in entry.items()
        },
    }
    return {
        f"{part}/{name}": tensor.detach().clone().contiguous()
        for part, tensors in parts.items()
        for name, tensor in tensors.items()
    }


def _restore(state: TrainState, tensors: dict[str, Tensor]) -> None:
    def part(name: str) -> dict[str, Tensor]:
        prefix = f"{name}/"
        return {
            key.removeprefix(prefix): value
            for key, value in tensors.items()
            if key.startswith(prefix)
        }

    state.domain.policy.load_state_dict(part("policy"))
    state.domain.world_model.load_state_dict(part("world_model"))
    state.estimator.load_state_dict(part("estimator"))
    entries: dict[int, dict[str, Tensor]] = {}
    for key, value in part("optimizer").items():
        number, name = key.split(".", 1)
        entries.setdefault(int(number), {})[name] = value
    groups = state.optimizer.state_dict()["param_groups"]
    state.optimizer.load_state_dict({"state": entries, "param_groups": groups})


def _refusal(path: Path) -> str:
    return f"checkpoint must be whole and of format {FORMAT!r}: {str(path)!r}"


def _remedy(path: Path) -> str:
    older = [other for other in checkpoints(path.parent) if other < path]
    if older:
        return f"resume from the previous one, {str(older[-1])!r}"
    return "start the run again"


def parameters_digest(module_state: dict[str, Tensor]) -> str:
    """Return a short digest of named tensors, equal only for bit-equal parameters."""
    digest = hashlib.sha256()
    for name in sorted(module_state):
        digest.update(name.encode())
        digest.update(torch.as_tensor(module_state[name]).contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
