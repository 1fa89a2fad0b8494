"""Calls of compiled functions by address.

A formula that is called by name is compiled into its caller: the compiler optimises it again at every level
of the call graph, and again for every combination of a policy and a click model. A *native function* is
compiled once, on its own, and called by its address, which costs a few nanoseconds.

Native functions are compiled from formulas of this package only: callers do not receive their exceptions, and
`_layout` distinguishes only the types that occur in states of this package.

All native functions have the same signature: a pointer to everything that stays the same from call to call, a
named tuple and a generator, and two integers. `NativeArguments` holds these in memory.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numpy.typing import NDArray

from banditrank._compilation import GENERATOR_TYPE, compile_native, compiled, inlined
from banditrank._interrupts import deferred_interrupts

_numba: Any = numba  # its functions have no types
types = _numba.types
_SIGNATURE = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 3)


class NativeArguments:
    """A named tuple of arrays and numbers, and a generator, in the memory layout of compiled code.

    Parameters
    ----------
    values
        The named tuple. Its arrays are borrowed.
    rng
        The generator, borrowed as well, or None. It is not in the tuple, because Numba would determine the
        type of the tuple ten times as slowly.

    Attributes
    ----------
    memory
        Where they are stored. This array keeps them alive.
    address
        Address of the memory, for `call_native`.
    """

    def __init__(self, values: tuple[Any, ...], rng: np.random.Generator | None = None) -> None:
        with deferred_interrupts():
            key = (_layout(values), rng is None)
            layout = _LAYOUTS.get(key)
            if layout is None:
                layout = _LAYOUTS.setdefault(key, _Layout(values, rng))
            self._layout = layout
            owner = _Memory(8 * layout.n_words)
            owner.values = (values, rng)
            self.memory = np.frombuffer(owner, dtype=np.uint64)
            layout.store(values, rng, self.memory)
        self.address = self.memory.ctypes.data

    @property
    def generator_slot(self) -> int:
        """Address in the memory at which the generator is stored, for `store_generator`."""
        return int(self.address + self.memory.nbytes - _generator_size(np.random.default_rng(0)))

    def native_function(self, function: Callable[..., None]) -> int:
        """Return the address of a native function for arguments of this layout, compiled on first use.

        Parameters
        ----------
        function
            Takes a pointer for `load_arguments` and two integers. Its machine code is cached only if it is a
            function of a module, or comes from `wrap_formula`.
        """
        address = self._layout.addresses.get(function)
        if address is None:
            pointer = types.CPointer(self._layout.arguments_type)
            signature = types.void(pointer, types.intp, types.intp)
            address = self._layout.addresses[function] = compile_native(function, signature)
        return address

    def __reduce__(self) -> NoReturn:
        raise TypeError("native arguments cannot be copied: they contain addresses")


class _Memory(bytearray):
    """Memory with references to the objects that are stored in it."""

    values: Any


def stored_values(memory: NDArray[np.uint64]) -> tuple[Any, np.random.Generator | None]:
    """Return the named tuple and the generator that `NativeArguments.memory` was made from."""
    buffer: Any = memory.base
    values: tuple[Any, np.random.Generator | None] = buffer.obj.values
    return values


class _Layout:
    """Machine code for all arguments with the types of the given ones.

    Attributes
    ----------
    n_words
        Size of the arguments in memory.
    store
        The machine code of `_store`. Called as a function, it would determine the types at every call, which
        takes longer than ranking under equal treatment.
    addresses
        Addresses of native functions.
    """

    def __init__(self, values: tuple[Any, ...], rng: np.random.Generator | None) -> None:
        memory = np.zeros(0, dtype=np.uint64)
        self.n_words = int(_store(values, rng, memory))
        self.arguments_type = _numba.typeof((values, rng))
        signature = (*self.arguments_type, _numba.typeof(memory))
        self.store: Callable[..., object] = _store_code.overloads[signature].entry_point
        self.addresses: dict[Callable[..., None], int] = {}


_LAYOUTS: dict[tuple[Any, ...], _Layout] = {}


def _layout(value: Any) -> Any:
    """Return what determines the compiled type of a value, ten times as fast as Numba's ``typeof``."""
    if isinstance(value, tuple):
        return (type(value), *map(_layout, value))
    if isinstance(value, np.ndarray):
        flags = value.flags
        return (value.dtype.num, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable)
    return type(value)


@compiled
def _store(values: Any, rng: np.random.Generator | None, memory: Any) -> Any:
    """Store arguments if the memory suffices, and return the number of 8-byte words that they need."""
    arguments = (values, rng)
    n_words = (_size_of(arguments) + 7) // 8
    if memory.size >= n_words:
        _store_at(memory.ctypes.data, arguments)
    return n_words


_store_code: Any = _store  # a dispatcher of Numba, which has no types


@compiled
def _generator_size(rng: np.random.Generator) -> Any:
    """Return the number of bytes that a generator takes, at the end of `NativeArguments.memory`."""
    return _size_of(rng)


@inlined
def store_generator(slot: int, rng: np.random.Generator) -> None:
    """Replace the generator of native arguments; valid as long as that generator exists."""
    _store_at(slot, rng)


@inlined
def call_native(function: int, arguments: int, first: int, second: int) -> None:
    """Call the native function at an address with arguments at an address, and two integers."""
    _call(function, arguments, first, second)


@_numba.extending.intrinsic  # type: ignore[untyped-decorator]
def _size_of(_context: Any, values: Any) -> Any:
    def emit(context: Any, _builder: Any, signature: Any, _arguments: Any) -> Any:
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0]))
        return context.get_constant(types.intp, size)

    return types.intp(values), emit


@_numba.extending.intrinsic  # type: ignore[untyped-decorator]
def _store_at(_context: Any, address: Any, values: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[1]
        pointer = builder.inttoptr(arguments[0], context.get_data_type(kind).as_pointer())
        context.pack_value(builder, kind, arguments[1], pointer)
        return context.get_dummy_value()

    return types.void(address, values), emit


@_numba.extending.intrinsic  # type: ignore[untyped-decorator]
def _call(_context: Any, _function: Any, _arguments: Any, _first: Any, _second: Any) -> Any:
    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        function = builder.inttoptr(arguments[0], _SIGNATURE.as_pointer())
        builder.call(function, arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4), emit


@_numba.extending.intrinsic  # type: ignore[untyped-decorator]
def load_arguments(_context: Any, pointer: Any) -> Any:
    """Return the named tuple and the generator that a native function's pointer refers to."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.unpack_value(builder, signature.return_type, arguments[0])

    return pointer.dtype(pointer), emit


@_numba.extending.intrinsic  # type: ignore[untyped-decorator]
def generator_address(_context: Any, rng: Any) -> Any:
    """Return the address of a generator's pointers, for `load_generator`; valid until the caller returns."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (kind,) = signature.args
        memory = _numba.core.cgutils.alloca_once(builder, context.get_data_type(kind))
        context.pack_value(builder, kind, arguments[0], memory)
        return builder.ptrtoint(memory, context.get_value_type(types.intp))

    return types.intp(rng), emit


@_numba.extending.intrinsic  # type: ignore[untyped-decorator]
def load_generator(_context: Any, address: Any) -> Any:
    """Return the generator whose pointers are at an address."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.return_type
        pointer = builder.inttoptr(arguments[0], context.get_data_type(kind).as_pointer())
        return context.unpack_value(builder, kind, pointer)

    return GENERATOR_TYPE(address), emit
