"""`python -m builder` is `tandem`."""

import sys

from builder.cli.main import main

sys.exit(main())
