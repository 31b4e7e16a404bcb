"""`python -m gpcert`."""

from __future__ import annotations

import sys

from gpcert.cli import main

if __name__ == "__main__":
    sys.exit(main())
