-- Records of applied operations, by which a repeated operation finds its result.
CREATE TABLE operations (
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request text NOT NULL,
    result text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, key)
);

CREATE INDEX operations_made ON operations (made_at);
