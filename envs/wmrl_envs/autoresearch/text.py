"""Text as Gymnasium spaces and in agents' messages."""

import re
import string
from typing import Any

from gymnasium.spaces import Text

_FENCE = re.compile(r"```[a-zA-Z]*\n(.*?)(?:```|\Z)", re.DOTALL)
_SAMPLE = string.ascii_letters + string.digits + string.punctuation + " \n"


class UnicodeText(Text):
    """Any text of at most ``max_length`` characters.

    Gymnasium's ``Text`` admits a fixed alphabet only, which neither code, data nor tracebacks keep
    to; samples are still drawn from printable ASCII.
    """

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=_SAMPLE)

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a text short enough."""
        return isinstance(x, str) and len(x) <= self.max_length


def code_in(message: str) -> str:
    """Return the program in a message: its last code fence, or all of it where there is none."""
    fenced = _FENCE.findall(message)
    return fenced[-1] if fenced else message
