-- Staged contents, before the change that puts them: `id` is that of the pieces in `chunks`, and `touched` the time of
-- the last part in microseconds since 1970.
CREATE TABLE staged (
    id INTEGER PRIMARY KEY,
    token TEXT NOT NULL UNIQUE,
    touched INTEGER NOT NULL
) STRICT;

CREATE INDEX staged_touched ON staged (touched);
