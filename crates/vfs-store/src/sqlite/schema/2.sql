-- Ids of files that were removed with many others and that `texts` still has. Later changes take them from it, a bounded number
-- at a time; until then they name no other file.
CREATE TABLE removed (
    id INTEGER PRIMARY KEY
) STRICT;
