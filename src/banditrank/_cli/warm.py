"""``banditrank warm``: compile code before the service needs it."""

from typing import TYPE_CHECKING, Annotated

import typer

from banditrank._cli.command import split_names
from banditrank._cli.store import ConfigOption, StoreFileOption, StoreOption, store_address
from banditrank._extras import requires
from banditrank.errors import InvalidInputError, StoreError

if TYPE_CHECKING:
    from banditrank.engine._surface import Surface

_SIZES = ((8, 3), (20, 5))  # numbers of items and positions: solvers depend on them


def warm_command(
    store: StoreOption = None,
    store_file: StoreFileOption = None,
    config: ConfigOption = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Compile this policy instead of those of the store's surfaces; repeat or separate with "
            "commas for several.",
            show_default="auto",
        ),
    ] = None,
    treatment: Annotated[
        list[str] | None,
        typer.Option(
            help="personalized, equal or equal-lottery; repeat or separate with commas for several.",
            show_default="personalized and equal",
        ),
    ] = None,
    utility: Annotated[
        list[str] | None,
        typer.Option(
            help="Utility of equal treatment; repeat or separate with commas for several.",
            show_default="utilitarian,nash",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes.", show_default="one per processor")
    ] = None,
) -> None:
    """Compile the code of a service's surfaces, so that it starts and creates surfaces without a wait.

    Compiles what the surfaces of the store need. Without a store, or if it has no surfaces, compiles the
    default policy with personalized treatment, and with equal treatment by the utilitarian and Nash
    utilities. What is compiled already is not compiled again. Machine code is kept below NUMBA_CACHE_DIR, or
    in the cache directory of the user.
    """
    with requires("service", "banditrank warm"):
        from banditrank.service._configuration import load_settings

    from banditrank._checks import check_workers
    from banditrank._compilation import cache_directory, preferred_cache_directory
    from banditrank.dashboard._warm_up import distinct_kinds, warm_up_all
    from banditrank.simulation._backends.local import available_cpus

    n_workers = check_workers("workers", workers) or available_cpus()
    surfaces: list[Surface] = []
    if policy or treatment or utility:
        surfaces = _given_surfaces(policy, treatment, utility)
    else:
        with store_address(store, store_file) as address:
            options = {} if address is None else {"store": address}
            with load_settings(options, config) as settings:
                surfaces = _stored_surfaces(settings.store)
        surfaces = surfaces or _given_surfaces(None, None, None)
    if cache_directory() != preferred_cache_directory():
        directory = str(preferred_cache_directory())
        raise InvalidInputError("cache directory", "must be writable: set NUMBA_CACHE_DIR", directory)
    kinds = distinct_kinds(surfaces)
    compiled: set[str] = set()
    for done in warm_up_all(kinds, n_workers):
        if done.is_compiled:
            compiled.add(done.surface.definition)
            typer.echo(f"compiled {_describe(done.surface)} in {done.seconds:.1f} s")
    n_kinds = f"{len(kinds)} kind{'s' if len(kinds) > 1 else ''} of surfaces"
    state = f"compiled {len(compiled)} of {n_kinds}" if compiled else f"everything is compiled: {n_kinds}"
    typer.echo(f"{state}, in {cache_directory()}")


def _given_surfaces(
    policies: list[str] | None, treatments: list[str] | None, utilities: list[str] | None
) -> "list[Surface]":
    """Return surfaces of several sizes for each policy, treatment and utility."""
    from banditrank.engine._surface import Surface
    from banditrank.policies._base import check_utility

    surfaces: list[Surface] = []
    names = split_names(utilities) or ["utilitarian", "nash"]
    chosen = split_names(treatments) or ["personalized", "equal"]
    if utilities and set(chosen) == {"personalized"}:
        for utility in names:
            check_utility(utility, "personalized")
    for policy in split_names(policies) or ["auto"]:
        for treatment in chosen:
            for utility in ["utilitarian"] if treatment == "personalized" else names:
                for n_items, n_positions in _SIZES:
                    definition = {
                        "name": f"kind-{len(surfaces) + 1}",
                        "items": [f"item {number}" for number in range(1, n_items + 1)],
                        "n_positions": n_positions,
                        "user_types": ["new", "old"],
                        "policy": policy,
                        "treatment": treatment,
                        "utility": utility,
                    }
                    surfaces.append(Surface.from_dict(definition))
    return surfaces


def _stored_surfaces(address: str) -> "list[Surface]":
    """Return the surfaces of a store; none if it is in memory, or a file that does not exist yet."""
    from banditrank._files import is_file
    from banditrank.engine._surface import Surface
    from banditrank.storage._addresses import is_in_memory, sqlite_file
    from banditrank.storage._factory import open_store

    path = sqlite_file(address)
    if is_in_memory(address) or (path is not None and not is_file(path)):
        return []
    surfaces = []
    with open_store(address) as store:
        for record in store.surfaces():
            try:
                surfaces.append(Surface.from_definition(record.definition))
            except StoreError as error:  # of a newer version; the service starts without it, too
                typer.echo(f"banditrank: surface {record.name!r} is skipped: {error}", err=True)
    return surfaces


def _describe(surface: "Surface") -> str:
    treatment: str = surface.treatment
    if treatment != "personalized":
        treatment = f"{treatment}, {surface.utility}"
    return f"{surface.compiled_policy.name}, {treatment}, {len(surface.active_items)} items"
