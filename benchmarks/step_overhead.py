"""What a step of Model costs beside keras.Model.fit, and what loss scaling adds to it: the set "step_overhead" alone.

    python -m benchmarks.step_overhead
"""

from __future__ import annotations

import sys

from benchmarks.__main__ import main

if __name__ == "__main__":
    main(["--set", "step_overhead", *sys.argv[1:]])
