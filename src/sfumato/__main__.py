"""`python -m sfumato`."""

from sfumato.cli import main

if __name__ == "__main__":
    main()
