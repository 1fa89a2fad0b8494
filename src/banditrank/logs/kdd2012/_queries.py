"""SQL queries: each streams its file once, by whole lines, and aggregates.

A line is read as one string and matched against a pattern before it is split. DuckDB's CSV reader is not
strict enough: it rounds 1.5, accepts 1e3 and 0x10, skips blank lines, and ignores a tab at the end of a line.
A line that does not match calls ``error``, which stops the query at once.
"""

from typing import Final

from banditrank.logs.kdd2012._files import MAX_IMPRESSIONS, SEPARATOR

USER_CODES: Final = {
    "gender 0": 0,
    "male": 1,
    "female": 2,
    "gender other than 0, 1, 2": 3,
    "user 0": 4,
    "no profile": 5,
}
"""Codes of the user of a row in the queries; 0 to 2 are the gender codes of the profile file."""

_READER: Final = f"""read_csv($path, columns = {{'line': 'VARCHAR'}}, delim = chr({SEPARATOR[0]}),
    header = false, quote = '', escape = '', auto_detect = false, compression = 'none')"""

READ_PROFILES: Final = rf"""
CREATE TEMP TABLE profile AS
SELECT
    fields[1]::UBIGINT AS user_id,
    min(least(fields[2]::UBIGINT, 3))::UTINYINT AS gender,
    max(least(fields[2]::UBIGINT, 3))::UTINYINT AS other_gender,
    bool_or(fields[3]::UBIGINT NOT BETWEEN 1 AND 6) AS unknown_age,
    count(*) AS n_rows
FROM (
    SELECT string_split(
        CASE WHEN regexp_full_match(line, '[0-9]{{1,20}}(\t[0-9]{{1,20}}){{2}}') THEN line
        ELSE error(coalesce(line, '')) END, chr(9)) AS fields
    FROM {_READER}
)
GROUP BY ALL
"""  # noqa: S608 - interpolates constants only

DESCRIBE_PROFILES: Final = """
SELECT
    coalesce(sum(n_rows), 0), count(*), count_if(gender = 3), count_if(unknown_age),
    min(user_id) FILTER (gender <> other_gender)
FROM profile
"""

READ_TRAINING: Final = rf"""
CREATE TEMP TABLE cell AS
SELECT
    ad,
    CASE WHEN position BETWEEN 1 AND 3 THEN position ELSE 0 END::UTINYINT AS position,
    CASE WHEN user_id = 0 THEN 4 WHEN gender IS NULL THEN 5 ELSE gender END::UTINYINT AS person,
    count(*) AS n_rows,
    sum(impression) AS impressions,
    sum(click) AS clicks,
    count_if(depth NOT BETWEEN 1 AND 3) AS unknown_depths,
    count_if(depth BETWEEN 1 AND 3 AND position BETWEEN depth + 1 AND 3) AS beyond_depth
FROM (
    SELECT
        fields[1]::UBIGINT AS click,
        CASE WHEN fields[2]::UBIGINT BETWEEN greatest(1, fields[1]::UBIGINT) AND {MAX_IMPRESSIONS}
        THEN fields[2]::UBIGINT ELSE error(fields[2]) END AS impression,
        fields[4]::UBIGINT AS ad,
        fields[6]::UBIGINT AS depth,
        fields[7]::UBIGINT AS position,
        fields[12]::UBIGINT AS user_id
    FROM (
        SELECT string_split(
            CASE WHEN regexp_full_match(line, '[0-9]{{1,20}}(\t[0-9]{{1,20}}){{11}}') THEN line
            ELSE error(coalesce(line, '')) END, chr(9)) AS fields
        FROM {_READER}
    )
)
LEFT JOIN (SELECT user_id, gender FROM profile) USING (user_id)
GROUP BY ALL
"""  # noqa: S608 - interpolates constants only

CHOOSE_ADS: Final = """
CREATE TEMP TABLE chosen AS
SELECT ad, sum(impressions) AS impressions
FROM cell
WHERE list_contains($positions, position) AND person IN (1, 2)
GROUP BY ad
ORDER BY impressions DESC, ad
LIMIT $n_ads
"""

CHOSEN_ADS: Final = "SELECT ad FROM chosen ORDER BY impressions DESC, ad"

CHOSEN_CELLS: Final = """
SELECT person, ad, position, impressions, clicks
FROM cell SEMI JOIN chosen USING (ad)
WHERE list_contains($positions, position) AND person IN (1, 2)
"""

GROUP_ROWS: Final = """
SELECT
    position, person, list_contains($positions, position), chosen.ad IS NOT NULL,
    sum(n_rows), sum(cell.impressions), sum(clicks)
FROM cell LEFT JOIN chosen USING (ad)
GROUP BY ALL
"""

DESCRIBE_TRAINING: Final = """
SELECT coalesce(sum(n_rows), 0), count(DISTINCT ad), sum(unknown_depths), sum(beyond_depth) FROM cell
"""
