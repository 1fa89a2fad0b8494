"""The heap of a service process."""

import subprocess
import sys

import pytest

# Frees a block before it allocates the next one, as a solver that runs again and again, and prints the growth
# of the heap, without mappings, in bytes.
_PROGRAM = """
import ctypes

from banditrank.service._process_memory import configure_heap


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd",
        "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]


library = ctypes.CDLL(None)
library.mallinfo2.restype = Mallinfo
library.calloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
configure_heap()
before = library.mallinfo2().arena
for _ in range(4):
    block = library.calloc(1, 25 << 20)
    grown = library.mallinfo2().arena - before
    library.free(block)
print(grown)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs the GNU C library")
def test_arrays_of_solvers_are_not_in_the_heap() -> None:
    """Finding 17: a large block has a mapping of its own, also after one of its size was freed."""
    result = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True)
    assert int(result.stdout) < 1 << 20
