CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE attempts (
	key TEXT NOT NULL,
	failures INTEGER NOT NULL,
	last_at FLOAT(53) NOT NULL,
	locked_until FLOAT(53) NOT NULL,
	CONSTRAINT pk_attempts PRIMARY KEY (key)
);

CREATE INDEX ix_attempts_last_at ON attempts (last_at);

CREATE TABLE clients (
	id TEXT NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	redirect_uris JSON NOT NULL,
	grant_types JSON NOT NULL,
	auth_method TEXT NOT NULL,
	secret TEXT,
	address TEXT NOT NULL,
	created_at FLOAT(53) NOT NULL,
	fresh_until FLOAT(53),
	CONSTRAINT pk_clients PRIMARY KEY (id)
);

CREATE INDEX ix_clients_kind_created_at ON clients (kind, created_at);

CREATE TABLE codes (
	hash TEXT NOT NULL,
	grant_id TEXT NOT NULL,
	redirect_uri TEXT NOT NULL,
	challenge TEXT NOT NULL,
	expires_at FLOAT(53) NOT NULL,
	used_at FLOAT(53),
	CONSTRAINT pk_codes PRIMARY KEY (hash)
);

CREATE INDEX ix_codes_grant_id ON codes (grant_id);

CREATE TABLE forms (
	nonce TEXT NOT NULL,
	expires_at FLOAT(53) NOT NULL,
	CONSTRAINT pk_forms PRIMARY KEY (nonce)
);

CREATE TABLE grants (
	id TEXT NOT NULL,
	client_id TEXT NOT NULL,
	subject TEXT NOT NULL,
	scopes TEXT NOT NULL,
	resource TEXT NOT NULL,
	created_at FLOAT(53) NOT NULL,
	expires_at FLOAT(53) NOT NULL,
	revoked_at FLOAT(53),
	CONSTRAINT pk_grants PRIMARY KEY (id)
);

CREATE INDEX ix_grants_client_id ON grants (client_id);

CREATE INDEX ix_grants_expires_at ON grants (expires_at);

CREATE INDEX ix_grants_subject ON grants (subject);

CREATE TABLE keys (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_keys PRIMARY KEY (name)
);

CREATE TABLE static_tokens (
	name TEXT NOT NULL,
	subject TEXT NOT NULL,
	scopes TEXT NOT NULL,
	hash TEXT NOT NULL,
	created_at FLOAT(53) NOT NULL,
	expires_at FLOAT(53),
	CONSTRAINT pk_static_tokens PRIMARY KEY (name),
	CONSTRAINT uq_static_tokens_hash UNIQUE (hash)
);

CREATE TABLE tokens (
	hash TEXT NOT NULL,
	kind TEXT NOT NULL,
	grant_id TEXT NOT NULL,
	scopes TEXT NOT NULL,
	resource TEXT NOT NULL,
	expires_at FLOAT(53) NOT NULL,
	rotated_at FLOAT(53),
	CONSTRAINT pk_tokens PRIMARY KEY (hash)
);

CREATE INDEX ix_tokens_grant_id ON tokens (grant_id);

CREATE INDEX ix_tokens_kind_expires_at ON tokens (kind, expires_at);

CREATE TABLE users (
	name TEXT NOT NULL,
	hash TEXT NOT NULL,
	salt TEXT NOT NULL,
	n INTEGER NOT NULL,
	r INTEGER NOT NULL,
	p INTEGER NOT NULL,
	scopes TEXT NOT NULL,
	changed_at FLOAT(53) NOT NULL,
	CONSTRAINT pk_users PRIMARY KEY (name)
);

INSERT INTO alembic_version (version_num) VALUES ('0001');

