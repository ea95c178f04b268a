"""State records: frozen dataclasses of tensors, stored, restored and selected field by field."""

from collections.abc import Mapping
from dataclasses import Field, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool
from torch import Tensor

from wmrl_envs.errors import InvalidInputError


@runtime_checkable
class TensorRecord(Protocol):
    """A dataclass whose fields are all tensors."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Record = TypeVar("Record", bound=TensorRecord)


def tensors(record: TensorRecord) -> dict[str, Tensor]:
    """Return the record's fields by name."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def select(condition: Bool[Tensor, "*runs"], yes: Record, no: Record) -> Record:
    """Return ``yes`` for the runs where ``condition`` holds and ``no`` for the others."""
    old = tensors(no)
    return replace(
        yes,
        **{
            name: torch.where(
                condition.view(condition.shape + (1,) * (new.dim() - condition.dim())),
                new,
                old[name],
            )
            for name, new in tensors(yes).items()
        },
    )


def flatten(records: Mapping[str, TensorRecord]) -> dict[str, Tensor]:
    """Return copies of all tensors under ``record.field`` names."""
    return {
        f"{prefix}.{name}": value.clone()
        for prefix, record in records.items()
        for name, value in tensors(record).items()
    }


def restore(prefix: str, like: Record, stored: Mapping[str, Tensor]) -> Record:
    """Return a record of ``like``'s kind from :func:`flatten`'s output.

    Args:
        prefix: Name the record was stored under.
        like: A record with the expected fields and data types.
        stored: Tensors by ``record.field``.

    Raises:
        InvalidInputError: If a field is missing or has another data type.
    """
    values = {}
    for name, example in tensors(like).items():
        key = f"{prefix}.{name}"
        if key not in stored or stored[key].dtype != example.dtype:
            got = stored[key].dtype if key in stored else "nothing"
            raise InvalidInputError(
                f"state {key} must be a tensor of {example.dtype}, got {got}; "
                "load a state saved with the same estimator preset"
            )
        values[name] = stored[key].clone()
    return replace(like, **values)
