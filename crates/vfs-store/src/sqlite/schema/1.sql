-- Namespaces. `sequence` is the sequence number of the newest change; `files` and `bytes` are the counts of the
-- namespace.
CREATE TABLE namespaces (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sequence INTEGER NOT NULL DEFAULT 0,
    files INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Metadata of each file, in the order of paths, which are compared byte by byte. `version` is the first half of the
-- BLAKE3 hash of the content, `write_id` identifies the write that put it, and times are microseconds since 1970.
-- `indexed` is the state of the entry in `texts`: 0 never indexed; 1 the content; 2 not indexed yet; 3 an earlier
-- content.
CREATE TABLE files (
    namespace INTEGER NOT NULL,
    path TEXT NOT NULL,
    id INTEGER NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    version BLOB NOT NULL,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    write_id BLOB NOT NULL,
    indexed INTEGER NOT NULL,
    PRIMARY KEY (namespace, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX files_not_indexed ON files (namespace, path) WHERE indexed <> 1;
CREATE INDEX files_waiting ON files (indexed, size) WHERE indexed >= 2;

-- Contents in pieces of 1 MiB and a last one that may be shorter. `place` is the id of the file * 2^20 + the number of
-- the piece.
CREATE TABLE chunks (
    place INTEGER PRIMARY KEY,
    content BLOB NOT NULL
) STRICT;

-- The newest changes of each namespace. `kind` is 1 created, 2 changed, 3 removed, 4 moved from `origin`.
CREATE TABLE changes (
    namespace INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    path TEXT NOT NULL,
    origin TEXT,
    size INTEGER,
    version BLOB,
    created INTEGER,
    modified INTEGER,
    PRIMARY KEY (namespace, sequence)
) STRICT, WITHOUT ROWID;

-- Trigram index of the folded contents; the rowid is the id of the file.
CREATE VIRTUAL TABLE texts USING fts5(
    body,
    content = '',
    contentless_delete = 1,
    detail = none,
    tokenize = 'trigram case_sensitive 1'
);
