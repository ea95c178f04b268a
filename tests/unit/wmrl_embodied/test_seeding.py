"""Checks of ``wmrl_embodied.seeding``."""

import torch

from wmrl_embodied.seeding import numpy_generator, seed_of, torch_generator


def test_the_same_name_gives_the_same_stream() -> None:
    first = torch.rand(5, generator=torch_generator(3, "anchors", 17))
    again = torch.rand(5, generator=torch_generator(3, "anchors", 17))
    assert torch.equal(first, again)


def test_seeds_differ_between_names_steps_and_roots() -> None:
    seeds = [
        seed_of(root, name, step)
        for root in (0, 1)
        for name in ("anchors", "proposals")
        for step in (0, 1)
    ]
    assert len(set(seeds)) == 8


def test_numpy_and_torch_streams_are_stable_across_versions() -> None:
    # Pinned values: a change here would silently change every recorded run.
    assert seed_of(0, "anchors", 0) == 3827538041903341416
    assert numpy_generator(0, "anchors", 0).integers(2**31) == 92047940
