"""Errors that a user can mend; the command line prints them as one line and exits with 2.

Every message reads ``<field> must be <rule>, got <value>; <remedy>``.
"""


class WmrlError(Exception):
    """Base of every error whose cause is outside the program: input, files, installation."""


class InvalidInputError(WmrlError, ValueError):
    """A value breaks a rule; the message names the value, the rule and the remedy."""


class DependencyNotInstalledError(WmrlError, ImportError):
    """An optional package or system library is missing; the message holds the exact command."""


class InfrastructureError(WmrlError, RuntimeError):
    """An execution failed for reasons that say nothing about the agent: its outcome is missing."""
