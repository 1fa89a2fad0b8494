"""Schema of the SQL stores, as migrations."""

# BYTES, SERIAL and CLUSTERED stand for the words of each database. A released step is never changed, because
# the steps after it migrate the stores of older versions.
MIGRATIONS = (
    """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE surfaces (
        number SERIAL,
        name TEXT NOT NULL UNIQUE,
        definition TEXT NOT NULL,
        revision BIGINT NOT NULL,
        version BIGINT NOT NULL
    );
    CREATE TABLE definitions (
        surface BIGINT NOT NULL,
        revision BIGINT NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (surface, revision)
    );
    CREATE TABLE rankings (
        surface BIGINT NOT NULL,
        key BYTES NOT NULL,
        ranking BYTES NOT NULL,
        outcome BIGINT,
        PRIMARY KEY (surface, key)
    ) CLUSTERED;
    CREATE INDEX open_rankings ON rankings (surface, key) WHERE outcome IS NULL;
    CREATE TABLE changes (
        surface BIGINT NOT NULL,
        version BIGINT NOT NULL,
        cells BYTES NOT NULL,
        PRIMARY KEY (surface, version)
    ) CLUSTERED;
    CREATE TABLE snapshots (
        surface BIGINT NOT NULL,
        version BIGINT NOT NULL,
        cells BYTES NOT NULL,
        saved BIGINT NOT NULL,
        PRIMARY KEY (surface, version)
    )
    """,
    """
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        rights TEXT NOT NULL,
        digest BYTES NOT NULL,
        created BIGINT NOT NULL,
        revoked BIGINT
    )
    """,
    # Impressions are written in batches, because most have an outcome before they are read. Changes are no
    # longer clustered, because SQLite would give each row of over a kilobyte pages of its own.
    """
    CREATE TABLE outcomes (
        surface BIGINT NOT NULL,
        key BYTES NOT NULL,
        outcome BIGINT NOT NULL,
        PRIMARY KEY (surface, key)
    ) CLUSTERED;
    CREATE TABLE shown (
        number SERIAL,
        surface BIGINT NOT NULL,
        first BYTES NOT NULL,
        last BYTES NOT NULL,
        rankings BIGINT NOT NULL,
        packed BYTES NOT NULL
    );
    CREATE INDEX shown_in_time ON shown (surface, first);
    INSERT INTO outcomes SELECT surface, key, outcome FROM rankings WHERE outcome IS NOT NULL;
    INSERT INTO shown (surface, first, last, rankings, packed)
        SELECT surface, key, key, 1, CAST(key || ranking AS BYTES) FROM rankings WHERE outcome IS NULL;
    DROP TABLE rankings;
    CREATE TABLE former_changes AS SELECT surface, version, cells FROM changes;
    DROP TABLE changes;
    CREATE TABLE changes (
        surface BIGINT NOT NULL,
        version BIGINT NOT NULL,
        cells BYTES NOT NULL,
        at BIGINT NOT NULL,
        PRIMARY KEY (surface, version)
    );
    INSERT INTO changes SELECT surface, version, cells, 0 FROM former_changes;
    DROP TABLE former_changes;
    ALTER TABLE snapshots ADD COLUMN history BYTES;
    ALTER TABLE surfaces ADD COLUMN forgotten BIGINT NOT NULL DEFAULT 0
    """,
    # The surfaces of a key are names separated by spaces; empty for all surfaces.
    """
    ALTER TABLE keys ADD COLUMN expires_at_ms BIGINT;
    ALTER TABLE keys ADD COLUMN surfaces TEXT NOT NULL DEFAULT ''
    """,
    # snapshots.history stays, unused: replicas of the previous version select it until they are replaced.
    """
    CREATE TABLE time_series (
        surface BIGINT PRIMARY KEY,
        version BIGINT NOT NULL,
        data BYTES NOT NULL
    );
    INSERT INTO time_series
        SELECT surface, version, history FROM snapshots AS latest
        WHERE length(history) > 0 AND surface IN (SELECT number FROM surfaces) AND NOT EXISTS (
            SELECT 1 FROM snapshots AS later
            WHERE later.surface = latest.surface AND later.version > latest.version
            AND length(later.history) > 0
        )
    """,
    # Outcomes whose code is not one number: their number in the table of outcomes, which replicas of the
    # previous version write until they are replaced, is -1.
    """
    CREATE TABLE outcome_codes (
        surface BIGINT NOT NULL,
        key BYTES NOT NULL,
        code TEXT NOT NULL,
        PRIMARY KEY (surface, key)
    ) CLUSTERED
    """,
)
