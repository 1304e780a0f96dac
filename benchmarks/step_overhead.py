"""Run the set "step_overhead" alone: Model's step against keras.Model.fit, and the cost of loss scaling.

    python -m benchmarks.step_overhead
"""

from __future__ import annotations

import sys

from benchmarks.__main__ import main

if __name__ == "__main__":
    main(["--set", "step_overhead", *sys.argv[1:]])
