"""``python -m banditrank``: the command line, where its program is not on the path."""

from banditrank._cli.main import main

if __name__ == "__main__":
    main()
