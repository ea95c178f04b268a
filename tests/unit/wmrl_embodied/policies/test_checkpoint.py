"""Checks of ``wmrl_embodied.policies.checkpoint``."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from wmrl_embodied.policies.checkpoint import load_policy, policy_note, save_policy
from wmrl_embodied.policies.small_vla import SmallVLA, SmallVLAConfig
from wmrl_envs.errors import InvalidInputError


def test_a_loaded_policy_is_the_saved_one(tmp_path: Path) -> None:
    policy = SmallVLA(SmallVLAConfig(plan_scale=0.04, noise_std=0.1))
    save_policy(policy, tmp_path / "p.safetensors", note={"seed": "3"})
    loaded = load_policy(tmp_path / "p.safetensors")
    assert loaded.config == policy.config
    for name, tensor in policy.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    assert policy_note(tmp_path / "p.safetensors") == {"seed": "3"}


def test_refuses_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"must be a file, got .*nothing\.safetensors"):
        load_policy(tmp_path / "nothing.safetensors")


def test_refuses_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    save_policy(SmallVLA(SmallVLAConfig()), path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InvalidInputError, match="must be a whole safetensors file"):
        load_policy(path)


def test_refuses_another_kind_of_checkpoint(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "x.safetensors")
    with pytest.raises(InvalidInputError, match="must have format 'wmrl-small-vla-1', got None"):
        load_policy(tmp_path / "x.safetensors")
