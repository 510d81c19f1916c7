-- Staged contents, before the change that puts them.
CREATE TABLE staged (
    token text COLLATE "C" PRIMARY KEY,
    namespace bigint NOT NULL,
    -- The number of the content in `chunks`.
    content bigint NOT NULL UNIQUE,
    -- The time at which the last part was stored.
    touched_at timestamptz NOT NULL
);

CREATE INDEX staged_touched ON staged (touched_at);
