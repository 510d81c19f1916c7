-- Ids of files that were removed with many others and still have an entry in `texts`. Later changes remove these
-- entries, a bounded number at a time; until then no other file gets the id.
CREATE TABLE removed (
    id INTEGER PRIMARY KEY
) STRICT;
