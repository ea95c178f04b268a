"""Assets: small trained checkpoints that ship with the package."""

from pathlib import Path

from wmrl_envs.errors import InvalidInputError

_PACKAGED = Path(__file__).parent / "shipped"
_CHECKOUT = Path(__file__).parents[1] / "assets"


def find_asset(path: Path) -> Path:
    """Return ``path`` if it is a file, else the shipped file of that name.

    Raises:
        InvalidInputError: If neither exists; lists what ships.
    """
    for candidate in (path, _PACKAGED / path, _CHECKOUT / path):
        if candidate.is_file():
            return candidate.resolve()
    shipped = sorted(
        {found.name for folder in (_PACKAGED, _CHECKOUT) for found in folder.glob("*.safetensors")}
    )
    raise InvalidInputError(
        f"checkpoint must be a file or one of {shipped}, got {str(path)!r}; make one with `wmrl sft`"
    )
