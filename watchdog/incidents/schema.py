"""The tables of ``incidents.sqlite``, and how one version of them becomes the next.

An incident is one row: its JSON whole, and beside it what is searched for. Hosts and devices that held a culprit have a table,
so that earlier incidents are found at once. Letters are notifications that no receiver has taken yet: they are written in the
transaction of what they tell of. Texts are ASCII (JSON with escapes): names from a job may hold what UTF-8 cannot carry.
"""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE incidents (
        id TEXT PRIMARY KEY,
        state TEXT NOT NULL,
        opened_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        body TEXT NOT NULL
    );
    CREATE INDEX incidents_by_state ON incidents (state, updated_at);
    CREATE TABLE culprits (
        name TEXT NOT NULL,
        incident TEXT NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
        PRIMARY KEY (name, incident)
    ) WITHOUT ROWID;
    CREATE INDEX culprits_by_incident ON culprits (incident);
    CREATE TABLE letters (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        receiver TEXT NOT NULL,
        incident TEXT NOT NULL,
        event TEXT NOT NULL,
        made_at_s REAL NOT NULL,
        refusals INTEGER NOT NULL DEFAULT 0,
        body TEXT NOT NULL
    );
    CREATE INDEX letters_by_receiver ON letters (receiver, incident, number);
    """,
)
"""Entry N makes version N + 1 (``user_version``) of version N. Never change one that was released: add another."""
