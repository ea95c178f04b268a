"""Estimator configuration: one frozen record, and the named presets that fill it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimatorConfig:
    """How predicted and real scores become advantages."""

    rule: Literal["linear", "paper"] = "linear"
    """``linear`` is c = f' + η e; ``paper`` the published two-part correction."""

    eta: float | Literal["auto"] = "auto"
    """Trust in the residual, in [0, 1]; ``auto`` lets the bias monitor choose."""

    anchor_fraction: float = 0.1
    """Share of the rollouts that is really executed, in [0, 1]."""

    unit: Literal["group", "rollout", "active"] = "active"
    """What is drawn: whole groups, random rollouts, or rollouts by their expected information."""

    use_world_model: bool = True
    """False ignores predictions: the update rests on executed rollouts alone."""

    calibration: Literal["isotonic", "none"] = "isotonic"
    """Map from predicted to real scores; ``none`` takes predictions as they are."""

    calibration_cells: int = 256
    """Cells over [0, 1] in which pairs are counted."""

    calibration_half_life: float = 3_000.0
    """Pairs after which a pair counts half."""

    calibration_line_pairs: float = 50.0
    """Pairs at which isotonic regression and straight line weigh the same."""

    calibration_refit: float = 64.0
    """Fresh pairs that trigger a refit."""

    task_pairs: float | None = None
    """Pairs at which a task's own line weighs as much as the map of all tasks; None: no own line."""

    slope: Literal["joint", "single", "fixed"] = "joint"
    """Within-group slopes on calibrated and raw score, on the calibrated score, or ``slope_prior``."""

    slope_half_life: float = 40.0
    """Steps after which a step counts half."""

    slope_prior: float = 0.5
    """Slope on the calibrated score when nothing is known."""

    slope_prior_pairs: float = 20.0
    """Strength of the prior, in executed rollouts."""

    slope_max: float = 1.5
    """Bound of the slopes; 0 switches the world model off."""

    active_floor: float = 0.3
    """Share of the draw that is uniform with ``unit='active'``; bounds 1/p_j."""

    audit_steps: int = 0
    """First steps that execute ``audit_fraction`` and use ``audit_eta``."""

    audit_fraction: float = 0.3
    """Share executed during the audit."""

    audit_eta: float = 0.3
    """η during the audit."""

    eta_min: float = 0.1
    """η0: trust in the residual while no bias is seen, with ``eta='auto'``."""

    monitor_window: float = 60.0
    """Steps over which evidence of bias is held."""

    monitor_confidence: float = 1.0
    """k: standard deviations by which evidence is discounted."""

    monitor_horizon: float = 200.0
    """H: steps over which the optimiser averages noise."""

    fallback: bool = False
    """Train on a few executed groups alone while the world model is worse than useless."""

    fallback_fraction: float = 0.2
    """Share of an ordinary step's groups that is generated, and executed whole, in the fallback."""

    fallback_rate: float = 0.35
    """Factor on the learning rate in the fallback."""

    scale_decay: float = 0.9
    """Decay a step of the running mean square that scales advantages."""

    baseline_decay: float = 0.9
    """Decay a step of the running mean of real scores."""

    alarm: bool = True
    """Raise η to 1 and ask for a refresh of the world model when it is being exploited."""

    alarm_threshold: float = 0.1
    """Growth of (predicted - real) that counts as exploitation."""

    alarm_sigmas: float = 4.0
    """Standard errors the growth must exceed as well."""

    alarm_pairs: float = 200.0
    """Pairs that make up the alarm's reference."""

    def __post_init__(self) -> None:
        """Reject values outside their range, each by name."""
        _within("anchor_fraction", self.anchor_fraction, 0.0, 1.0)
        _within("audit_fraction", self.audit_fraction, 0.0, 1.0)
        _within("audit_eta", self.audit_eta, 0.0, 1.0)
        _within("eta_min", self.eta_min, 0.0, 1.0)
        _within("fallback_fraction", self.fallback_fraction, 0.001, 1.0)
        _within("slope_max", self.slope_max, 0.0, 10.0)
        _within("slope_prior", self.slope_prior, 0.0, 10.0)
        _within("scale_decay", self.scale_decay, 0.0, 0.9999)
        _within("baseline_decay", self.baseline_decay, 0.0, 0.9999)
        _within("active_floor", self.active_floor, 0.01, 1.0)
        if self.eta != "auto":
            _within("eta", self.eta, 0.0, 1.0)
        if self.anchor_fraction == 0.0 and not (self.eta == 0.0 and self.use_world_model):
            raise InvalidInputError(
                "anchor_fraction must be above 0 unless eta is 0, got 0.0 with "
                f"eta={self.eta}; execute some rollouts, or set eta=0 to trust the world model blindly"
            )
        for name, value in (
            ("calibration_half_life", self.calibration_half_life),
            ("calibration_refit", self.calibration_refit),
            ("slope_half_life", self.slope_half_life),
            ("monitor_horizon", self.monitor_horizon),
            ("fallback_rate", self.fallback_rate),
            ("alarm_threshold", self.alarm_threshold),
            ("alarm_pairs", self.alarm_pairs),
        ):
            if not value > 0.0:
                raise InvalidInputError(f"{name} must be above 0, got {value}")
        self._check_counts()

    def _check_counts(self) -> None:
        for name, value, least in (
            ("calibration_cells", self.calibration_cells, 2),
            ("audit_steps", self.audit_steps, 0),
            ("monitor_window", self.monitor_window, 2),
            ("slope_prior_pairs", self.slope_prior_pairs, 0),
            ("calibration_line_pairs", self.calibration_line_pairs, 0),
            ("monitor_confidence", self.monitor_confidence, 0),
            ("alarm_sigmas", self.alarm_sigmas, 0),
        ):
            if value < least:
                raise InvalidInputError(f"{name} must be at least {least}, got {value}")
        if self.task_pairs is not None and not self.task_pairs > 0.0:
            raise InvalidInputError(f"task_pairs must be above 0 or None, got {self.task_pairs}")


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InvalidInputError(f"{name} must be in [{low}, {high}], got {value}")


def _real() -> EstimatorConfig:
    return EstimatorConfig(
        eta=1.0, anchor_fraction=1.0, unit="group", use_world_model=False, alarm=False
    )


def _anchors_only() -> EstimatorConfig:
    return EstimatorConfig(eta=1.0, unit="group", use_world_model=False, alarm=False)


def _world_model_only() -> EstimatorConfig:
    return EstimatorConfig(
        eta=0.0,
        anchor_fraction=0.0,
        calibration="none",
        slope="fixed",
        slope_prior=1.0,
        alarm=False,
    )


def _paper() -> EstimatorConfig:
    return EstimatorConfig(
        rule="paper", eta=1.0, unit="group", slope="fixed", slope_prior=1.0, alarm=False
    )


def _fixed(eta: float) -> Callable[[], EstimatorConfig]:
    return lambda: EstimatorConfig(eta=eta)


def _auto() -> EstimatorConfig:
    return EstimatorConfig(audit_steps=3)


def _auto_random() -> EstimatorConfig:
    return EstimatorConfig(unit="rollout", eta_min=0.05, audit_steps=3, fallback=True)


def _auto_groups() -> EstimatorConfig:
    return EstimatorConfig(unit="group", eta_min=0.05, audit_steps=3, fallback=True)


PRESETS: dict[str, Callable[[], EstimatorConfig]] = {
    "real": _real,
    "anchors_only": _anchors_only,
    "world_model_only": _world_model_only,
    "paper": _paper,
    "fast": _fixed(0.1),
    "balanced": _fixed(0.3),
    "unbiased": _fixed(1.0),
    "auto": _auto,
    "auto_random": _auto_random,
    "auto_groups": _auto_groups,
}
"""Named estimators; ``auto`` is the default."""


def preset(name: str) -> EstimatorConfig:
    """Return the configuration of a named estimator.

    Raises:
        InvalidInputError: If there is no such preset; the message lists those there are.
    """
    if name not in PRESETS:
        raise InvalidInputError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
    return PRESETS[name]()
