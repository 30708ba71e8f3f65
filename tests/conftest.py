"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No test is timed: a machine that does other work besides must not make one fail.
settings.register_profile("afterrun", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("afterrun")
