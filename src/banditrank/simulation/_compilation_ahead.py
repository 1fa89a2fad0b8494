"""Compilation of later simulations in other processes, while this one compiles the first.

Numba compiles one function at a time in a process. Processes share machine code by the cache on disk: what
another process compiled is only loaded.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import cloudpickle

from banditrank._compilation import notify_on_compile
from banditrank.simulation._backends.local import available_cpus
from banditrank.simulation._replication import AnyExperiment
from banditrank.simulation._run import precompile


@contextmanager
def compile_ahead(
    make_experiments: Callable[[], Sequence[AnyExperiment]], workers: int | None
) -> Iterator[None]:
    """Compile experiments in other processes, the last one first, as soon as this process compiles a policy.

    Nothing is started if the machine code is in the cache. The processes are stopped at the end.

    Parameters
    ----------
    make_experiments
        Returns the experiments, in the order in which they will run. The first is left to this process.
    workers
        Maximum number of processes that compile, this one included; the number of processors by default.
    """
    compilers: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        later = list(make_experiments())[:0:-1]
        n_compilers = min(workers or available_cpus(), available_cpus(), len(later) + 1) - 1
        for first in range(n_compilers):
            with suppress(Exception):  # not picklable, or no process to be had: this process compiles it
                compilers.append(_start_compiler(later[first::n_compilers]))

    with notify_on_compile("banditrank.policies", start):
        try:
            yield
        finally:
            for compiler in compilers:
                compiler.kill()
                compiler.wait()


def _start_compiler(experiments: list[AnyExperiment]) -> "subprocess.Popen[bytes]":
    payload = cloudpickle.dumps(experiments)
    compiler = subprocess.Popen(
        [sys.executable, "-m", "banditrank.simulation._compilation_ahead"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C reaches the parent only, which stops its compilers
    )
    with suppress(BrokenPipeError):
        compiler.stdin.write(payload)  # type: ignore[union-attr]
        compiler.stdin.close()  # type: ignore[union-attr]
    return compiler


if __name__ == "__main__":
    for experiment in cloudpickle.load(sys.stdin.buffer):
        precompile(experiment)
