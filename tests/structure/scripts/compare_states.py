"""Record the process, use mixtrain, record again; print what differs.

    python -m tests.structure.scripts.compare_states
"""

from __future__ import annotations

import keras

from tests.structure.scripts.process_state import Recorder, differences, random_states


def main() -> None:
    """Print a line for each difference, after the name of what made it."""
    recorder = Recorder()
    before, drawn = recorder.state(), random_states()
    looked_at = len(before)

    import mixtrain  # noqa: F401

    _tell("import mixtrain", differences(before | drawn, recorder.state() | random_states()))

    from tests.structure.scripts import programs

    # Keras's own way to seed, which `set_seed` takes, imports TensorFlow where it is installed, on JAX too.
    keras.utils.set_random_seed(0)
    before = recorder.state()
    programs.train_keras_network()
    _tell("a Keras network trained with Model", differences(before, recorder.state()))
    before = recorder.state()
    programs.run_mindspore_script()
    _tell("a MindSpore script", differences(before, recorder.state()))
    print(f"looked at {looked_at}")


def _tell(what: str, lines: list[str]) -> None:
    for line in lines:
        print(f"changed by {what}: {line}")


if __name__ == "__main__":
    main()
