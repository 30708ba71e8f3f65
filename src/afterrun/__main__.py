"""``python -m afterrun``."""

from __future__ import annotations

from afterrun.cli import run


def main() -> None:
    """Entry point of the console script."""
    run()


if __name__ == "__main__":
    main()
