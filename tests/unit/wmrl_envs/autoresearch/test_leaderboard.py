"""Checks of ``wmrl_envs.autoresearch.leaderboard``."""

from pathlib import Path

import pytest

from wmrl_envs.autoresearch.leaderboard import Leaderboard, human_rank, read_leaderboard
from wmrl_envs.errors import InvalidInputError

HIGHER = Leaderboard(scores=(0.5, 0.9, 0.7, 0.7), higher_is_better=True)  # best first: .9 .7 .7 .5
LOWER = Leaderboard(scores=(1.0, 2.0, 4.0), higher_is_better=False)


@pytest.mark.parametrize(
    ("score", "position"),
    [
        (0.95, 1.0),  # place 1: (4 - 1 + 1) / 4
        (0.9, 1.0),  # matching the best counts as beating it
        (0.8, 0.75),  # place 2: (4 - 2 + 1) / 4
        (0.7, 0.75),  # of two equal entries the better place
        (0.6, 0.25),  # place 4: (4 - 4 + 1) / 4
        (0.4, 0.0),  # place 5 of 4
    ],
)
def test_position_is_that_of_the_first_entry_matched_or_beaten(
    score: float, position: float
) -> None:
    assert HIGHER.position(score) == position


@pytest.mark.parametrize(("score", "rank"), [(0.5, 1), (1.0, 1), (1.5, 2), (4.0, 3), (4.1, 4)])
def test_lower_is_better_turns_the_order(score: float, rank: int) -> None:
    assert LOWER.rank(score) == rank


def test_human_rank_is_the_mean_over_the_boards_that_are_there() -> None:
    private = Leaderboard(scores=(0.9, 0.8), higher_is_better=True)
    # Public: 0.7 takes place 2 of 4, 0.75. Private: below both, 0.
    assert human_rank(0.7, [HIGHER, private]) == pytest.approx(0.375)
    assert human_rank(0.7, [HIGHER]) == pytest.approx(0.75)


def test_human_rank_without_a_board_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="leaderboards must be at least one"):
        human_rank(0.7, [])


@pytest.mark.parametrize("text", ["high", "", "nan", "inf"])
def test_a_leaderboard_of_strings_names_the_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "leaderboard.csv"
    path.write_text(f"rank,score\n1,0.5\n2,{text}\n", encoding="utf-8")

    with pytest.raises(InvalidInputError, match=r"finite numbers.*leaderboard\.csv:3"):
        read_leaderboard(path, higher_is_better=True)


def test_a_missing_leaderboard_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="wmrl tasks leaderboard"):
        read_leaderboard(tmp_path / "leaderboard.csv", higher_is_better=True)
