-- Texts are compared byte by byte: COLLATE "C".

CREATE TABLE namespaces (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    -- The sequence number of the last change. A change of the namespace locks this row until the commit.
    sequence bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE SEQUENCE contents AS bigint;

CREATE TABLE files (
    namespace bigint NOT NULL,
    -- The directory, with a trailing '/': files below '/a' have a parent from '/a/' up to '/a0', as '0' comes after
    -- '/'.
    parent text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    path text COLLATE "C" GENERATED ALWAYS AS (parent || name) STORED,
    content bigint NOT NULL,
    size bigint NOT NULL,
    version text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL
);

CREATE UNIQUE INDEX files_path ON files (namespace, path);
CREATE UNIQUE INDEX files_level ON files (namespace, parent, name);
CREATE INDEX files_content ON files (namespace, content);

-- Contents, which are immutable; copies of a file share one. A foreign key would cost a look-up for each write, and
-- `check` finds the errors that it would prevent.
CREATE TABLE chunks (
    namespace bigint NOT NULL,
    content bigint NOT NULL,
    part integer NOT NULL,
    -- Whether this is the whole content, and UTF-8 without NUL of at most 128 KiB, which the search index covers.
    is_text boolean NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (namespace, content, part)
);

-- Chunks are not compressed, so that a part can be read without the rest.
ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL;

-- Contents that the search index does not cover, which are candidates of every search.
CREATE INDEX chunks_of_no_text ON chunks (namespace, content) WHERE NOT is_text AND part = 0;

CREATE TABLE changes (
    namespace bigint NOT NULL,
    sequence bigint NOT NULL,
    -- The id of the write, by which a client whose connection was lost finds out that its change was committed.
    write_id bytea NOT NULL,
    -- 1 created, 2 changed, 3 removed, 4 moved.
    kind smallint NOT NULL,
    path text COLLATE "C" NOT NULL,
    -- The new path of a moved file.
    target text COLLATE "C",
    size bigint,
    version text COLLATE "C",
    created_at timestamptz,
    modified_at timestamptz,
    PRIMARY KEY (namespace, sequence)
);

-- Namespaces with a subscriber. Others get no notifications, because these serialise all commits of the server.
CREATE UNLOGGED TABLE watched (
    namespace bigint PRIMARY KEY,
    until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Returns the text in the search index: ASCII letters are in lower case, as collation "C" folds no others. A search
-- computes it for every content that the index finds, so it has to be cheap.
CREATE FUNCTION searchable(data bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 100
    AS $$ SELECT lower(convert_from(data, 'UTF8') COLLATE "C") $$;

-- Returns the first condition that does not hold, with the file at its path, or no row if all hold. As the function is
-- STABLE, it sees one snapshot. Kinds: 1 no file at the path, 2 a file with this version, 3 no file below the path.
CREATE FUNCTION refusal(space bigint, kinds smallint[], paths text[], versions text[]) RETURNS TABLE (
    at_path text, at_size bigint, at_version text, at_created timestamptz, at_modified timestamptz
)
LANGUAGE plpgsql STABLE ROWS 1 AS $$
BEGIN
    RETURN QUERY
        SELECT condition.path, found.size, found.version, found.created_at, found.modified_at
        FROM unnest(kinds, paths, versions) WITH ORDINALITY AS condition (kind, path, version, number)
        LEFT JOIN files AS found ON found.namespace = space AND found.path = condition.path
        WHERE CASE condition.kind
            WHEN 1 THEN found.path IS NOT NULL
            WHEN 2 THEN found.version IS DISTINCT FROM condition.version
            ELSE EXISTS (
                SELECT FROM files AS below
                WHERE below.namespace = space
                    AND below.path > rtrim(condition.path, '/') || '/' AND below.path < rtrim(condition.path, '/') || '0')
        END
        ORDER BY condition.number
        LIMIT 1;
END $$;

-- Removes a content that no file uses any more.
CREATE FUNCTION release(space bigint, released bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM files WHERE namespace = space AND content = released) THEN
        DELETE FROM chunks WHERE namespace = space AND content = released;
    END IF;
END $$;

-- Puts `file` at its path. Returns whether there was no file.
CREATE FUNCTION place(file files) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    SELECT content INTO before FROM files
    WHERE namespace = file.namespace AND path = file.parent || file.name;
    IF NOT FOUND THEN
        INSERT INTO files (namespace, parent, name, content, size, version, created_at, modified_at)
        VALUES (file.namespace, file.parent, file.name, file.content, file.size, file.version,
            file.created_at, file.modified_at);
        RETURN true;
    END IF;
    UPDATE files
    SET content = file.content, size = file.size, version = file.version,
        created_at = file.created_at, modified_at = file.modified_at
    WHERE namespace = file.namespace AND path = file.parent || file.name;
    IF before <> file.content THEN
        PERFORM release(file.namespace, before);
    END IF;
    RETURN false;
END $$;

-- Returns the id of a namespace, which is created if it is missing, and the sequence number of its last change. Its row
-- stays locked.
CREATE FUNCTION enter(of_namespace text, OUT space bigint, OUT last bigint)
LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        SELECT id, sequence INTO space, last FROM namespaces WHERE name = of_namespace FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO namespaces (name) VALUES (of_namespace) ON CONFLICT (name) DO NOTHING;
    END LOOP;
END $$;

-- Applies all the steps in order if all the conditions hold. The result has a row for each step, or ends with a row
-- that is not done, and the caller rolls back. Each row of an applied change has the id of the transaction, so that a
-- client that does not get the response to its commit can query the outcome. Kinds of steps: 1 put, 2 delete, 3 move, 4
-- copy. A put has the number of its content if that is already in `chunks`, or its data.
CREATE FUNCTION change(
    of_namespace text,
    condition_kinds smallint[], condition_paths text[], condition_versions text[],
    kinds smallint[], parents text[], names text[], sources text[],
    contents bigint[], datas bytea[], are_texts boolean[],
    sizes bigint[], versions text[], created timestamptz[], modified timestamptz[],
    channel text, write_id bytea
) RETURNS TABLE (
    is_done boolean, at_path text, at_size bigint, at_version text, at_created timestamptz, at_modified timestamptz,
    transaction text
)
LANGUAGE plpgsql AS $$
DECLARE
    space bigint;
    last bigint;
    newest bigint;
    step record;
    source files;
    target files;
    is_new boolean;
    told smallint;
BEGIN
    -- What is refused now can be refused without waiting for the others.
    SELECT id INTO space FROM namespaces WHERE name = of_namespace;
    RETURN QUERY SELECT false, refusal.*, NULL
        FROM refusal(space, condition_kinds, condition_paths, condition_versions);
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO space, last FROM enter(of_namespace);
    RETURN QUERY SELECT false, refusal.*, NULL
        FROM refusal(space, condition_kinds, condition_paths, condition_versions);
    IF FOUND THEN
        RETURN;
    END IF;

    transaction := pg_current_xact_id()::text;
    newest := last;
    FOR step IN
        SELECT * FROM unnest(kinds, parents, names, sources, contents, datas, are_texts, sizes, versions, created, modified)
            AS listed (kind, parent, name, source, content, data, is_text, size, version, created_at, modified_at)
    LOOP
        target := NULL;
        IF step.kind = 1 THEN
            target.content := step.content;
            IF target.content IS NULL THEN
                target.content := nextval('contents');
                IF step.size > 0 THEN
                    INSERT INTO chunks (namespace, content, part, is_text, data)
                    VALUES (space, target.content, 0, step.is_text, step.data);
                END IF;
            END IF;
            target.size := step.size;
            target.version := step.version;
            target.created_at := step.created_at;
            target.modified_at := step.modified_at;
        ELSE
            SELECT * INTO source FROM files
            WHERE namespace = space AND path = coalesce(step.source, step.parent || step.name);
            IF NOT FOUND THEN
                RETURN QUERY SELECT false, coalesce(step.source, step.parent || step.name), NULL::bigint, NULL,
                    NULL::timestamptz, NULL::timestamptz, NULL;
                RETURN;
            END IF;
            target := source;
            IF step.kind = 4 THEN
                target.created_at := step.created_at;
                target.modified_at := step.modified_at;
            ELSE
                DELETE FROM files WHERE namespace = space AND path = source.path;
            END IF;
        END IF;

        IF step.kind = 2 THEN
            PERFORM release(space, source.content);
            told := 3;
        ELSE
            target.namespace := space;
            target.parent := step.parent;
            target.name := step.name;
            is_new := place(target);
            told := CASE WHEN step.kind = 3 THEN 4 WHEN is_new THEN 1 ELSE 2 END;
        END IF;

        newest := newest + 1;
        INSERT INTO changes (namespace, sequence, write_id, kind, path, target, size, version, created_at, modified_at)
        VALUES (space, newest, write_id, told,
            CASE WHEN told = 4 THEN step.source ELSE step.parent || step.name END,
            CASE WHEN told = 4 THEN step.parent || step.name END,
            target.size, target.version, target.created_at, target.modified_at);

        is_done := true;
        at_size := target.size;
        at_version := target.version;
        at_created := target.created_at;
        at_modified := target.modified_at;
        RETURN NEXT;
    END LOOP;

    IF newest > last THEN
        UPDATE namespaces SET sequence = newest WHERE id = space;
        -- Not at every change, as many at once are cheaper.
        IF newest / 1024 > last / 1024 THEN
            DELETE FROM changes WHERE namespace = space AND sequence <= newest - 4096;
        END IF;
        IF EXISTS (SELECT FROM watched WHERE namespace = space AND until > clock_timestamp()) THEN
            PERFORM pg_notify(channel, newest || ' ' || of_namespace);
        END IF;
    END IF;
END $$;

-- Returns one level of a directory: its files by name, then its directories, in the order of their names with a
-- trailing '/'. Directories are not stored: each is found as the first parent after all paths in the previous one,
-- which costs one look-up in the index for each directory, however many files it has.
CREATE FUNCTION list_level(
    of_namespace text, directory text, after_name text, after_directory text, most integer
) RETURNS TABLE (
    is_directory boolean, at_name text, at_size bigint, at_version text, at_created timestamptz, at_modified timestamptz
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    space bigint;
    listed integer := 0;
    beyond text COLLATE "C" := left(directory, -1) || '0';
    beginning text COLLATE "C" := directory || coalesce(after_directory || '0', '');
    found_parent text COLLATE "C";
BEGIN
    SELECT id INTO space FROM namespaces WHERE name = of_namespace;
    IF after_directory IS NULL THEN
        RETURN QUERY
            SELECT false, name, size, version, created_at, modified_at FROM files
            WHERE namespace = space AND parent = directory AND name > coalesce(after_name, '')
            ORDER BY namespace, parent, name LIMIT most;
        GET DIAGNOSTICS listed = ROW_COUNT;
    END IF;
    is_directory := true;
    WHILE listed < most LOOP
        SELECT parent INTO found_parent FROM files
        WHERE namespace = space AND parent > directory AND parent >= beginning AND parent < beyond
        ORDER BY namespace, parent LIMIT 1;
        EXIT WHEN NOT FOUND;
        at_name := split_part(substr(found_parent, length(directory) + 1), '/', 1);
        beginning := directory || at_name || '0';
        listed := listed + 1;
        RETURN NEXT;
    END LOOP;
END $$;
