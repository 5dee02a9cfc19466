"""`python -m timbre` is the command `timbre`."""

from timbre.app import main

if __name__ == "__main__":
    main()
