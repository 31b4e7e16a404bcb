"""`python -m gpcert_check`."""

import sys

from gpcert_check.command import main

if __name__ == "__main__":
    sys.exit(main())
