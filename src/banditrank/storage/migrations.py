"""The tables that SQLite and PostgreSQL have in common, and the way to them from older ones."""

# Steps from an empty database to the present schema; BYTES and SERIAL differ between databases. A step that
# was released is never changed: a store made by an older version is brought up to date by the steps after it.
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
    # Rankings that were shown are written by the group: most are settled before anybody asks for them.
    # Changes are not clustered any more: there, SQLite gives a row of over a kilobyte pages of its own.
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
    # Surfaces of a key: names with spaces between them; none for all surfaces.
    """
    ALTER TABLE keys ADD COLUMN expires_at_ms BIGINT;
    ALTER TABLE keys ADD COLUMN surfaces TEXT NOT NULL DEFAULT ''
    """,
)
