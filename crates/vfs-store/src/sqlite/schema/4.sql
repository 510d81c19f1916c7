-- Records of applied operations, by which a repeated operation finds its result. `made` is in microseconds since 1970.
CREATE TABLE operations (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    result TEXT NOT NULL,
    made INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX operations_made ON operations (made);
