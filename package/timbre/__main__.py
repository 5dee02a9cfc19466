"""The command `timbre`, which is also `python -m timbre`."""

from timbre.studio.cli.interrupts import end_at_once


def main() -> None:
    """Run the command line, whose imports take a moment in which Ctrl-C shall end it too."""
    end_at_once()
    from timbre.app import main as run

    run()


if __name__ == "__main__":
    main()
