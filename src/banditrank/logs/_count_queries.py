"""The queries that count a click log, one definition for all engines.

An engine names the columns of a log after their roles in a view ``log`` (`projection`); all other queries
read that view. They are SQL that DuckDB and Spark both understand; the few functions that have another name
or argument order in each are the `Dialect` of an engine.

Rows are grouped by their raw values first, and validated afterwards, group by group, in Python: a check of a
million groups costs nothing beside a pass over a billion rows. The only values that SQL itself interprets are
positions and clicks, for the bits of a visit's clicks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from banditrank.counts._click_cube import MAX_POSITIONS, N_FOLDS
from banditrank.errors import BanditRankError
from banditrank.logs._log_columns import ColumnKind, ResolvedColumns

MODULUS = 2**31 - 1
"""Prime modulus of the hash of whole numbers (Carter and Wegman, 1979)."""


class QueryError(BanditRankError):
    """A query failed for another reason than missing memory or disk space."""


class HashParameters(NamedTuple):
    """Parameters of a hash of ids.

    Attributes
    ----------
    factor
        Factor of whole numbers.
    digit
        First of the eight hexadecimal digits of the MD5 digest of other ids, from 1.
    """

    factor: int
    digit: int


FOLD_HASH, SAMPLE_HASH = HashParameters(1103515245, 1), HashParameters(747796405, 9)
"""Hashes by which ids are assigned to folds, and to buckets of the sample of lists."""

SAMPLE_BUCKETS = 1_000_000
"""Number of buckets that visits are hashed into for the sample of lists."""

MAX_AMOUNT = "1e15"
"""Maximum number of displays, or clicks, of an aggregated row, as the queries write it."""

TIME_RANGE = (-62_135_596_800, 253_402_300_799)
"""First and last time in seconds since 1970: the years 1 to 9999, which Python's dates know."""

MIN_PROPENSITY = 1e-100
"""Minimum propensity: sums of the squares of its inverse are numbers, too."""

(
    VISIT_OK,
    VISIT_DUPLICATE,
    VISIT_SEVERAL_CLICKS,
    VISIT_UNSHOWN_CLICK,
    VISIT_EMPTY,
    VISIT_INVALID_ITEM,
    VISIT_INVALID_TYPE,
) = range(7)
"""Flags of visits; all but the first are reasons to leave out their rows."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between engines: templates with positional fields.

    Attributes
    ----------
    quote
        Character around names of columns.
    shift_left, shift_right
        Shift of a BIGINT.
    matches
        Whether a whole text matches a regular expression.
    hexadecimal
        BIGINT of hexadecimal digits.
    epoch
        Seconds since 1970 of a timestamp.
    parse_time
        Timestamp of a text, or NULL.
    element
        Element of a list, from 0; NULL beyond its end.
    size
        Number of elements of a list.
    n_distinct
        Number of distinct elements of a list, without NULL.
    make_list
        List of elements.
    text_list
        List with elements as text.
    split
        List of the parts of a text that are separated by ``|``, ``;``, ``,`` or spaces, without brackets and
        quotes.
    mixed_text
        Text of a value of JSON; after a control character, so that it is no name, if the value is nested.
    unnest
        Columns ``position``, from 0, and ``item`` of a list, a row each.
    """

    quote: str
    shift_left: str
    shift_right: str
    matches: str
    hexadecimal: str
    epoch: str
    parse_time: str
    element: str
    size: str
    n_distinct: str
    make_list: str
    text_list: str
    split: str
    mixed_text: str
    unnest: str

    def name(self, column: str) -> str:
        """Return the quoted name of a column."""
        return self.quote + column.replace(self.quote, self.quote * 2) + self.quote


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Choices that are part of the queries.

    Attributes
    ----------
    low, high
        Range of valid positions, as the log numbers them.
    period
        ``hour``, ``day``, ``week``, ``month``; ``all`` for a single period of the rows with a time, None
        for one of all rows.
    offsets
        Offsets of the time zone: seconds since 1970 from which on an offset in seconds applies, in order.
    single_click
        Whether several clicks in a visit are a reason to leave it out.
    since, until
        Seconds since 1970, from and before which rows are counted.
    excluded
        MD5 digests of values that are not names, by column: ``item``, ``type_1``. Rows with them are not part
        of a visit.
    """

    low: int
    high: int
    period: str | None
    offsets: Sequence[tuple[int, int]]
    single_click: bool
    since: int | None = None
    until: int | None = None
    excluded: Mapping[str, Sequence[str]] = field(default_factory=dict)


class CountQueries:
    """Queries for one log.

    Parameters
    ----------
    columns
        Columns of the log.
    kinds
        Kinds of all columns of the log.
    dialect
        SQL of the engine.
    options
        Choices.
    """

    def __init__(
        self,
        columns: ResolvedColumns,
        kinds: Mapping[str, ColumnKind],
        dialect: Dialect,
        options: QueryOptions,
    ) -> None:
        self.columns = columns
        self._dialect = dialect
        self._options = options
        self._kinds = {role: _usable(kinds[name]) for role, name in columns.names.items()}
        self._source_kinds = kinds
        self.types = [f"type_{number}" for number in range(1, len(columns.user_types) + 1)]
        self._type_kinds = [_usable(kinds[name]) for name in columns.user_types]

    @property
    def has_sessions(self) -> bool:
        """Whether rows belong to visits by a column of the log."""
        return "session" in self.columns.names

    @property
    def has_visits(self) -> bool:
        """Whether rows belong to visits, or are visits."""
        return self.columns.layout == "wide" or (self.has_sessions and self.columns.layout == "long")

    @property
    def has_folds(self) -> bool:
        """Whether rows are assigned to folds."""
        return "user" in self.columns.names or "session" in self.columns.names

    def projection(self, *others: str) -> str:
        """Return the SELECT that names the columns of ``source`` after their roles.

        Parameters
        ----------
        others
            Further expressions with their names.
        """
        parts = [
            f"{self._scalar(name)} AS {alias}"
            for name, alias in zip(self.columns.user_types, self.types, strict=True)
        ]
        parts += others
        for role, name in self.columns.names.items():
            if self.columns.layout == "wide" and role in ("clicks", "clicked_item"):
                expression = self._list(name) if role == "clicks" else self._clicked_items(name)
            else:
                expression = self._scalar(name)
            parts.append(f"{expression} AS {_ALIASES.get(role, role)}")
        if self.columns.items:
            names = self.columns.items
            if len(names) == 1:
                items = self._list(names[0])
            else:
                each = ", ".join(f"CAST({self._dialect.name(name)} AS STRING)" for name in names)
                items = self._dialect.make_list.format(each)
            parts.append(f"{items} AS items")
        return f"SELECT {', '.join(parts)} FROM source"

    def ranking_of(self, column: str, *, is_list: bool) -> str:
        """Return the expression ``candidate`` of a column with rankings, or with an item for each row."""
        text = self._list(column) if is_list else f"CAST({self._dialect.name(column)} AS STRING)"
        return f"{text} AS candidate"

    def count_outside(self) -> str:
        """Return the number of rows before ``since`` or after ``until``, of the view ``all_rows``."""
        return f"SELECT count(*) AS n FROM all_rows WHERE NOT coalesce({self._is_inside()}, true)"

    def inside(self) -> str:
        """Return the rows of the view ``all_rows`` that are counted."""
        return f"SELECT * FROM all_rows WHERE coalesce({self._is_inside()}, true)"

    def time_range(self) -> str:
        """Return the first and last time, in seconds since 1970."""
        epoch = self._epoch()
        return f"SELECT min({epoch}) AS first, max({epoch}) AS last FROM log"

    def days(self) -> str:
        """Return the number of rows of each day since 1970; of the day NULL those without a time."""
        day = f"CAST(floor({self._epoch()} / 86400.0) AS BIGINT)"
        return f"SELECT day, count(*) AS n FROM (SELECT {day} AS day FROM log) GROUP BY day"

    def invalid_times(self, limit: int) -> str:
        """Return the different values that are not times, as text."""
        value = "CAST(moment AS STRING)"
        return f"SELECT DISTINCT {value} AS value FROM log WHERE {self._epoch()} IS NULL LIMIT {limit}"

    def lowest_position(self) -> str:
        """Return the lowest position."""
        return f"SELECT min({self._position()}) AS lowest FROM log"

    def longest_list(self) -> str:
        """Return the number of items of the longest list."""
        return f"SELECT max({self._dialect.size.format('items')}) AS longest FROM log"

    def visits(self) -> str:
        """Return a row for each visit: its clicks as bits, its fold, its user type and its flag.

        Only valid rows are part of a visit.
        """
        position = self._valid_position()
        bit = self._dialect.shift_left.format("CAST(1 AS BIGINT)", position)
        keys = "".join(f", min({name}) AS {name}" for name in self.types)
        period = f", min({self._period()}) AS period" if self._options.period else ""
        fold = self._fold_of("min(user_id)", self._kinds["user"]) if self._has_user else self._session_fold()
        several = (
            f"WHEN bit_count(clicks) > 1 THEN {VISIT_SEVERAL_CLICKS} " if self._options.single_click else ""
        )
        return (
            f"SELECT *, CASE WHEN n <> bit_count(shown) THEN {VISIT_DUPLICATE} {several}ELSE {VISIT_OK} "
            "END AS flag "
            f"FROM (SELECT session{keys}{period}, {fold} AS fold, "
            f"bit_or(CASE WHEN {self._is_click()} THEN {bit} ELSE CAST(0 AS BIGINT) END) AS clicks, "
            f"bit_or({bit}) AS shown, count(*) AS n FROM log WHERE {self._is_valid()} "
            "GROUP BY session) AS one"
        )

    def joined_visits(self) -> str:
        """Return the visits that rows are joined with: clicked or flagged ones, if rows know their fold."""
        if self._joins_all_visits:
            return "SELECT session, clicks, fold, flag FROM visits"
        return f"SELECT session, clicks, flag FROM visits WHERE clicks <> 0 OR flag <> {VISIT_OK}"

    def missing_sessions(self) -> str:
        """Return the number of rows without a session."""
        missing = _is_missing("session", self._kinds["session"])
        return f"SELECT count(*) AS n FROM log WHERE {missing}"

    def cells(  # noqa: C901 - a case a layout
        self, *, has_flags: bool = True, has_missing_sessions: bool = True
    ) -> str:
        """Return the groups of rows with equal raw values, the cells of the cube.

        Parameters
        ----------
        has_flags, has_missing_sessions
            Whether there are flagged visits, and rows without a visit: without them, rows are grouped by
            fewer columns, which is faster.
        """
        if self.columns.layout == "wide":
            return self._wide_cells()
        keys = [*self.types, "item", "position"]
        if self._options.period:
            keys.append(f"{self._period()} AS period")
        if self.columns.layout == "aggregated":
            if self._has_user:
                keys.append(f"{self._fold_of('user_id', self._kinds['user'])} AS fold")
            keys.append(f"{self._amount_flag()} AS amount_flag")
            amounts = "count(*) AS n, " + ", ".join(
                f"CAST(sum(CASE WHEN {self._amount_flag()} = 0 THEN {self._number(role)} END) AS BIGINT) "
                f"AS {role}"
                for role in ("displays", "clicks")
            )
            return f"SELECT {', '.join(keys)}, {amounts} FROM log GROUP BY ALL"
        keys.append("clicked")
        sums = ["count(*) AS n"]
        if "propensity" in self.columns.names:
            keys.append(f"{self._has_valid_propensity()} AS has_propensity")
            weight = f"(CASE WHEN {self._has_valid_propensity()} THEN 1.0 / {self._number('propensity')} END)"
            sums += [f"sum({weight}) AS weights", f"sum({weight} * {weight}) AS squared_weights"]
        if not self.has_sessions:
            if self._has_user:
                keys.append(f"{self._fold_of('user_id', self._kinds['user'])} AS fold")
            return f"SELECT {', '.join([*keys, *sums])} FROM log GROUP BY ALL"
        position = self._valid_position()
        below = self._dialect.shift_right.format("joined.clicks", position)
        if self._joins_all_visits:
            keys.append("joined.fold AS fold")
        elif self._has_user:
            keys.append(f"{self._fold_of('user_id', self._kinds['user'])} AS fold")
        else:
            keys.append(f"{self._session_fold('log.session')} AS fold")
        keys.append(f"{self._above('joined.clicks', position)} AS above")
        if has_flags:
            keys.append("joined.flag AS flag")
        if has_missing_sessions:
            keys.append(f"{_is_missing('log.session', self._kinds['session'])} AS is_visit_missing")
        sums += [
            f"count(CASE WHEN coalesce(joined.clicks, 0) = 0 OR {below} <> 0 THEN 1 END) AS examined",
            f"count(CASE WHEN {self._is_click()} AND {below} = 1 THEN 1 END) AS last_clicks",
        ]
        return (
            f"SELECT {', '.join([*keys, *sums])} FROM log LEFT JOIN joined ON log.session = joined.session "
            "GROUP BY ALL"
        )

    def visit_counts(self) -> str:
        """Return the number of visits by number of clicks."""
        keys = [*self.types, *(["period"] if self._options.period else [])]
        keys += ["fold"] if self.has_folds else []
        keys += ["bit_count(clicks) AS n_clicks", "flag"]
        return f"SELECT {', '.join(keys)}, count(*) AS n FROM visits GROUP BY ALL"

    def flagged_sessions(self, limit: int) -> str:
        """Return sessions whose rows are left out."""
        return f"SELECT session, flag FROM visits WHERE flag <> {VISIT_OK} LIMIT {limit}"

    def duplicate_items(self) -> str:
        """Return the sessions in which an item is twice."""
        return (
            "SELECT DISTINCT session FROM (SELECT session, item FROM log "
            f"WHERE {self._is_valid()} GROUP BY session, item HAVING count(*) > 1) AS one"
        )

    def flag_duplicates(self) -> str:
        """Return the visits, with flags of those in the table ``duplicates``."""
        names = ["session", *self.types, *(["period"] if self._options.period else [])]
        kept = ", ".join(f"visits.{name} AS {name}" for name in [*names, "fold", "clicks", "shown", "n"])
        return (
            f"SELECT {kept}, CASE WHEN duplicates.session IS NOT NULL THEN {VISIT_DUPLICATE} "
            "ELSE visits.flag END AS flag FROM visits "
            "LEFT JOIN duplicates ON visits.session = duplicates.session"
        )

    def list_rows(self, n_buckets: int) -> str:
        """Return the items of a sample of visits, a row for each position.

        The sample are the visits in the first of `SAMPLE_BUCKETS` buckets, by a hash of their id.
        """
        outer = "".join(f", visit_{name} AS {name}" for name in self.types)
        inner = "".join(f", {name} AS visit_{name}" for name in self.types)
        sampled = (
            f"SELECT session AS visit, fold, clicks{inner} FROM visits "
            f"WHERE {self._sample_bucket('session', self._kinds['session'])} < {n_buckets} "
            f"AND flag = {VISIT_OK}"
        )
        return (
            f"SELECT visit{outer}, fold, sampled.clicks AS clicks, {self._position()} AS position, item "
            f"FROM log JOIN ({sampled}) AS sampled ON log.session = sampled.visit WHERE {self._is_valid()}"
        )

    def list_counts(self, n_visits: int, max_lists: int, longest: int) -> str:
        """Return the distinct lists of a log with a row for each visit, of a sample of at most ``max_lists``.

        Each visit is in the sample with the same probability. Visits are sampled by a hash of their id, or
        else of their user. Without ids, visits at equal steps are taken in the order of their clicks and
        items.

        Parameters
        ----------
        n_visits
            Number of visits that are not flagged.
        max_lists
            Maximum number of visits in the sample.
        longest
            Number of items of the longest list.
        """
        keys = ", ".join([*self.types, *(["fold"] if self.has_folds else []), "items", "clicks"])
        counted = f"SELECT {keys}, count(*) AS n FROM visits WHERE flag = {VISIT_OK}"
        if n_visits <= max_lists:
            return f"{counted} GROUP BY ALL"
        if self.has_folds:
            return f"{counted} AND bucket < {SAMPLE_BUCKETS * max_lists // n_visits} GROUP BY ALL"
        texts = [*self.types, *(self._dialect.element.format("items", k) for k in range(longest))]
        order = ", ".join(["clicks", *(f"coalesce(CAST({text} AS STRING), '')" for text in texts)])
        steps = " - ".join(
            f"floor(CAST({end} AS DOUBLE) * {max_lists} / {n_visits})" for end in ("last", "(last - n)")
        )
        return (
            f"SELECT {keys}, n FROM (SELECT {keys}, CAST({steps} AS BIGINT) AS n "
            f"FROM (SELECT *, sum(n) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS last "
            f"FROM ({counted} GROUP BY ALL) AS lists) AS cumulated) AS sampled WHERE n > 0"
        )

    def busiest_users(self) -> str:
        """Return the number of users, of their rows, and of rows of the busiest one."""
        return (
            "SELECT count(*) AS users, CAST(sum(n) AS BIGINT) AS n, max(n) AS most "
            "FROM (SELECT user_id, count(*) AS n FROM log WHERE user_id IS NOT NULL GROUP BY user_id) AS one"
        )

    def wide_visits(self, longest: int, limit: int) -> str:
        """Return a row for each visit of a log with a row for each visit.

        Parameters
        ----------
        longest
            Number of items of the longest list.
        limit
            Number of positions that are counted, the first ones.
        """
        dialect = self._dialect
        elements = [dialect.element.format("items", k) for k in range(longest)]
        if "clicks" in self.columns.names:
            hits = [self._list_click(dialect.element.format("clicks", k)) for k in range(longest)]
            n_given = " + ".join(f"CASE WHEN {hit} THEN 1 ELSE 0 END" for hit in hits) or "0"
        else:
            hits = [f"array_contains(clicked_item, {element})" for element in elements]
            n_given = f"coalesce({dialect.n_distinct.format('clicked_item')}, 0)"
        bits = " + ".join(
            f"CASE WHEN {element} IS NOT NULL AND {hit} THEN CAST({1 << k} AS BIGINT) "
            "ELSE CAST(0 AS BIGINT) END"
            for k, (element, hit) in enumerate(zip(elements, hits, strict=True))
        )
        n_items = " + ".join(f"CASE WHEN {element} IS NOT NULL THEN 1 ELSE 0 END" for element in elements)
        fold = bucket = ""
        if self.has_folds:
            role = "user" if self._has_user else "session"
            fold = f", {self._fold_of(_ALIASES.get(role, role), self._kinds[role])} AS fold"
            role = "session" if self.has_sessions else "user"
            bucket = f", {self._sample_bucket(_ALIASES.get(role, role), self._kinds[role])} AS bucket"
        period = f", {self._period()} AS period" if self._options.period else ""
        several = (
            f"WHEN bit_count(all_clicks) > 1 THEN {VISIT_SEVERAL_CLICKS} "
            if self._options.single_click
            else ""
        )
        keys = "".join(f", {name}" for name in self.types)
        kept = keys + (", fold, bucket" if fold else "") + (", period" if period else "")
        invalid_names = ""
        for column in self._options.excluded:
            values, flag = ([column], VISIT_INVALID_TYPE)
            if column == "item":
                values, flag = elements, VISIT_INVALID_ITEM
            bad = " OR ".join(f"coalesce({self._is_excluded(value, column)}, false)" for value in values)
            invalid_names += f"WHEN {bad} THEN {flag} "
        return (
            f"SELECT items{kept}, all_clicks & CAST({(1 << limit) - 1} AS BIGINT) AS clicks, "
            f"CASE {invalid_names}WHEN n_items = 0 THEN {VISIT_EMPTY} "
            f"WHEN n_items <> n_distinct THEN {VISIT_DUPLICATE} "
            f"WHEN n_given <> bit_count(all_clicks) THEN {VISIT_UNSHOWN_CLICK} {several}"
            f"ELSE {VISIT_OK} END AS flag "
            f"FROM (SELECT items{keys}{fold}{bucket}{period}, {bits or 'CAST(0 AS BIGINT)'} AS all_clicks, "
            f"{n_items or '0'} AS n_items, coalesce({dialect.n_distinct.format('items')}, 0) AS n_distinct, "
            f"{n_given} AS n_given FROM log) AS one"
        )

    def wide_rows(self) -> str:
        """Return the number of rows by their flag and missing values."""
        missing = self._are_types_missing() if self.types else "false"
        keys = [f"{missing} AS is_type_missing", "flag"]
        if self._options.period:
            keys.append("period IS NULL AS is_time_missing")
        return f"SELECT {', '.join(keys)}, count(*) AS n FROM visits GROUP BY ALL"

    def _wide_cells(self) -> str:
        keys = [
            *self.types,
            *(["fold"] if self.has_folds else []),
            *(["period"] if self._options.period else []),
        ]
        inner = ", ".join([*keys, "clicks", "flag", self._dialect.unnest])
        position = "CAST(position AS INTEGER)"
        below = self._dialect.shift_right.format("clicks", position)
        return (
            f"SELECT {', '.join([*keys, 'item', 'position'])}, {self._above('clicks', position)} AS above, "
            f"CASE WHEN {below} % 2 = 1 THEN 1 ELSE 0 END AS clicked, count(*) AS n, "
            f"count(CASE WHEN clicks = 0 OR {below} <> 0 THEN 1 END) AS examined, "
            f"count(CASE WHEN {below} = 1 THEN 1 END) AS last_clicks "
            f"FROM (SELECT {inner} FROM visits WHERE flag = {VISIT_OK}) AS shown "
            f"WHERE item IS NOT NULL AND position < {MAX_POSITIONS} GROUP BY ALL"
        )

    @property
    def _has_user(self) -> bool:
        return "user" in self.columns.names

    @property
    def _joins_all_visits(self) -> bool:
        """Whether rows get their fold from their visit, because a hash for each row would take longer."""
        return self._kinds["user" if self._has_user else "session"] != "integer"

    def _scalar(self, column: str) -> str:
        name = self._dialect.name(column)
        match self._source_kinds[column]:
            case "mixed":
                return self._dialect.mixed_text.format(name)
            case "other" | "list" | "nested":
                return f"CAST({name} AS STRING)"
            case _:
                return name

    def _list(self, column: str) -> str:
        name, kind = self._dialect.name(column), self._source_kinds[column]
        if kind == "list":
            return self._dialect.text_list.format(name)
        return self._dialect.split.format(f"CAST({name} AS STRING)")

    def _clicked_items(self, column: str) -> str:
        if self._source_kinds[column] in ("list", "text"):
            return self._list(column)
        name = self._dialect.name(column)
        single = self._dialect.make_list.format(f"CAST({name} AS STRING)")
        return f"CASE WHEN {name} IS NOT NULL THEN {single} END"

    def _position(self) -> str:
        match self._kinds["position"]:
            case "integer":
                return "position"
            case "number":
                return (
                    "CASE WHEN position BETWEEN -1 AND 100 AND position = floor(position) "
                    "THEN try_cast(position AS INTEGER) END"
                )
            case _:
                whole = self._dialect.matches.format("CAST(position AS STRING)", "[0-9]{1,9}")
                return f"CASE WHEN {whole} THEN try_cast(CAST(position AS STRING) AS INTEGER) END"

    def _valid_position(self) -> str:
        low, high = self._options.low, self._options.high
        position = self._position()
        return f"CAST(CASE WHEN {position} BETWEEN {low} AND {high} THEN {position} END AS INTEGER)"

    def _is_click(self) -> str:
        return _is_one("clicked", self._kinds["clicked"])

    def _list_click(self, element: str) -> str:
        return f"coalesce({_is_one(element, 'text')}, false)"

    def _is_valid(self) -> str:
        position = self._position()
        rules = [f"{position} BETWEEN {self._options.low} AND {self._options.high}"]
        match self._kinds["clicked"]:
            case "boolean":
                rules.append("clicked IS NOT NULL")
            case "integer" | "number":
                rules.append("clicked IN (0, 1)")
            case _:
                rules.append(f"lower(CAST(clicked AS STRING)) IN ({_CLICK_TEXTS})")
        rules += [
            f"NOT {_is_missing(name, kind)}" for name, kind in zip(self.types, self._type_kinds, strict=True)
        ]
        item = _is_missing("item", self._kinds["item"])
        rules += [f"NOT {item}", f"NOT {_is_missing('log.session', self._kinds['session'])}"]
        if self._options.period:
            rules.append(f"{self._epoch()} IS NOT NULL")
        if "propensity" in self.columns.names:
            rules.append(self._has_valid_propensity())
        rules += [f"NOT {self._is_excluded(name, name)}" for name in self._options.excluded]
        return " AND ".join(rules)

    def _is_excluded(self, expression: str, column: str) -> str:
        """Return whether a value of a column, which is not NULL, is not a name."""
        digests = ", ".join(f"'{digest}'" for digest in self._options.excluded[column])
        return f"(md5(CAST({expression} AS STRING)) IN ({digests}))"

    def _are_types_missing(self) -> str:
        tests = (_is_missing(name, kind) for name, kind in zip(self.types, self._type_kinds, strict=True))
        return f"({' OR '.join(tests)})"

    def _number(self, role: str) -> str:
        kind = self._kinds[role]
        if kind in ("integer", "number"):
            return role
        return f"try_cast(CAST({role} AS STRING) AS DOUBLE)"

    def _has_valid_propensity(self) -> str:
        number = self._number("propensity")
        return f"coalesce({number} >= {MIN_PROPENSITY} AND {number} <= 1, false)"

    def _amount_flag(self) -> str:
        """Return 1 for a missing or invalid number, 2 for more clicks than displays, else 0."""
        displays, clicks = self._number("displays"), self._number("clicks")
        is_amount = " AND ".join(
            f"{number} BETWEEN 0 AND {MAX_AMOUNT} AND {number} = floor({number})"
            for number in (displays, clicks)
        )
        order = f"CASE WHEN {clicks} > {displays} THEN 2 ELSE 0 END"
        return f"CASE WHEN coalesce({is_amount}, false) THEN {order} ELSE 1 END"

    def _epoch(self) -> str:
        """Return the time in seconds since 1970; NULL if it is none of the years 1 to 9999."""
        match self._kinds["time"]:
            case "time":
                seconds = self._dialect.epoch.format("moment")
            case "integer" | "number":
                seconds = (
                    "floor(CASE WHEN moment > 100000000000000 THEN moment / 1000000.0 "
                    "WHEN moment > 100000000000 THEN moment / 1000.0 ELSE moment END)"
                )
            case _:
                parsed = self._dialect.parse_time.format("CAST(moment AS STRING)")
                seconds = self._dialect.epoch.format(parsed)
        low, high = TIME_RANGE
        return f"CASE WHEN {seconds} BETWEEN {low} AND {high} THEN CAST({seconds} AS BIGINT) END"

    def _is_inside(self) -> str:
        epoch, rules = self._epoch(), []
        if self._options.since is not None:
            rules.append(f"{epoch} >= {self._options.since}")
        if self._options.until is not None:
            rules.append(f"{epoch} < {self._options.until}")
        return " AND ".join(rules)

    def _period(self) -> str:
        """Return the number of the period since 1970."""
        epoch = self._epoch()
        if self._options.period == "all":
            return f"CASE WHEN {epoch} IS NOT NULL THEN CAST(0 AS BIGINT) END"
        local = epoch
        if any(offset for _, offset in self._options.offsets):
            (_, first), *later = self._options.offsets
            cases = "".join(f"WHEN {epoch} >= {start} THEN {offset} " for start, offset in reversed(later))
            local = f"({epoch} + {f'CASE {cases}ELSE {first} END' if cases else first})"
        day = f"floor({local} / 86400.0)"
        match self._options.period:
            case "hour":
                return f"CAST(floor({local} / 3600.0) AS BIGINT)"
            case "week":
                return f"CAST(floor(({day} + 3) / 7.0) AS BIGINT)"
            case "month":
                date = f"(DATE '1970-01-01' + CAST({day} AS INTEGER))"
                return f"CAST(year({date}) * 12 + month({date}) - 1 AS BIGINT)"
            case _:
                return f"CAST({day} AS BIGINT)"

    def _above(self, clicks: str, position: str) -> str:
        """Return the position of the last click above, as the log numbers it; NULL without one."""
        mask = f"{self._dialect.shift_left.format('CAST(1 AS BIGINT)', position)} - 1"
        bits = f"({clicks} & ({mask}))"
        high = self._dialect.shift_right.format(bits, 31)
        # Logarithms of up to 31 bits are exact enough for the highest bit.
        return (
            f"CAST(CASE WHEN {bits} = 0 THEN NULL "
            f"WHEN {high} > 0 THEN 31 + floor(log2(CAST({high} AS DOUBLE))) "
            f"ELSE floor(log2(CAST({bits} AS DOUBLE))) END AS INTEGER)"
        )

    def _session_fold(self, column: str = "session") -> str:
        return self._fold_of(column, self._kinds["session"])

    def _fold_of(self, column: str, kind: ColumnKind) -> str:
        return f"CAST({self._hash(column, kind, FOLD_HASH)} % {N_FOLDS} AS INTEGER)"

    def _sample_bucket(self, column: str, kind: ColumnKind) -> str:
        return f"{self._hash(column, kind, SAMPLE_HASH)} % {SAMPLE_BUCKETS}"

    def _hash(self, column: str, kind: ColumnKind, parameters: HashParameters) -> str:
        """Return a hash that is the same in all engines, and for a number and its text."""
        factor, digit = parameters
        if kind == "integer":
            return f"((abs(CAST({column} AS BIGINT) % {MODULUS}) * {factor} + 12345) % {MODULUS})"
        text = f"CAST({column} AS STRING)"
        number = f"((abs(try_cast({text} AS BIGINT) % {MODULUS}) * {factor} + 12345) % {MODULUS})"
        digits = self._dialect.hexadecimal.format(f"substr(md5({text}), {digit}, 8)")
        is_number = self._dialect.matches.format(text, "[0-9]{1,18}")
        return f"(CASE WHEN {text} IS NULL THEN NULL WHEN {is_number} THEN {number} ELSE {digits} END)"


_ALIASES = {"user": "user_id", "time": "moment"}
_CLICK_TEXTS = "'0', '1', 'false', 'true', '0.0', '1.0'"


def _usable(kind: ColumnKind) -> ColumnKind:
    return "text" if kind in ("other", "list", "nested", "mixed") else kind


def _is_one(expression: str, kind: ColumnKind) -> str:
    match kind:
        case "boolean":
            return expression
        case "integer" | "number":
            return f"{expression} = 1"
        case _:
            return f"lower(CAST({expression} AS STRING)) IN ('1', 'true', '1.0')"


def _is_missing(column: str, kind: ColumnKind) -> str:
    return f"({column} IS NULL OR {column} = '')" if kind == "text" else f"({column} IS NULL)"
