"""The commands of ``wmrl``, one module each; a command is a dataclass with a ``run`` method."""
