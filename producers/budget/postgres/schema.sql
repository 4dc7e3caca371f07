CREATE TABLE IF NOT EXISTS deniable_identity (
    only_row integer PRIMARY KEY CHECK (only_row = 0), version integer NOT NULL, digest bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS deniable_collections (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS deniable_terms (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection integer NOT NULL REFERENCES deniable_collections,
    fingerprint bytea NOT NULL, period_seconds bigint NOT NULL,
    epsilon_per_report float8 NOT NULL, epsilon_inf float8 NOT NULL, horizon bigint NOT NULL,
    UNIQUE (collection, fingerprint, period_seconds)
);
CREATE TABLE IF NOT EXISTS deniable_spending (
    collection integer NOT NULL, client bigint NOT NULL, spent bytea NOT NULL,
    PRIMARY KEY (collection, client)
) WITH (fillfactor = 70);
