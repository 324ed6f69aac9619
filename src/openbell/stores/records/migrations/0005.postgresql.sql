CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE accounts (
	name TEXT NOT NULL,
	broker TEXT NOT NULL,
	owner TEXT NOT NULL,
	cash TEXT NOT NULL,
	token TEXT,
	created_at FLOAT(53) NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_accounts PRIMARY KEY (name)
);

CREATE TABLE alerts (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	spelling TEXT NOT NULL,
	interval TEXT NOT NULL,
	type TEXT NOT NULL,
	set_at FLOAT(53) NOT NULL,
	threshold TEXT,
	indicator TEXT,
	signal TEXT,
	state TEXT NOT NULL,
	fired_at FLOAT(53),
	value FLOAT(53),
	bar_hash TEXT,
	updated_at FLOAT(53) NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_alerts PRIMARY KEY (id)
);

CREATE INDEX ix_alerts_principal_state ON alerts (principal, state);

CREATE INDEX ix_alerts_state_seq ON alerts (state, seq);

CREATE TABLE checkpoints (
	account TEXT NOT NULL,
	seq BIGINT NOT NULL,
	at FLOAT(53) NOT NULL,
	body JSON NOT NULL,
	CONSTRAINT pk_checkpoints PRIMARY KEY (account, seq)
);

CREATE TABLE consensuses (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	bullish INTEGER NOT NULL,
	bearish INTEGER NOT NULL,
	neutral INTEGER NOT NULL,
	consensus TEXT NOT NULL,
	confidence FLOAT(53) NOT NULL,
	signals JSON NOT NULL,
	at FLOAT(53) NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_consensuses PRIMARY KEY (id)
);

CREATE TABLE crossing_subscriptions (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	spelling TEXT NOT NULL,
	crossings JSON NOT NULL,
	throttle_ms BIGINT NOT NULL,
	created_at FLOAT(53) NOT NULL,
	seen BIGINT NOT NULL,
	sent_at FLOAT(53),
	CONSTRAINT pk_crossing_subscriptions PRIMARY KEY (id)
);

CREATE INDEX ix_crossing_subscriptions_principal ON crossing_subscriptions (principal);

CREATE TABLE cursors (
	principal TEXT NOT NULL,
	seen BIGINT NOT NULL,
	pushed BIGINT NOT NULL,
	signals BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_cursors PRIMARY KEY (principal)
);

CREATE TABLE decisions (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	action TEXT NOT NULL,
	confidence FLOAT(53) NOT NULL,
	opportunity_score FLOAT(53),
	reasoning TEXT NOT NULL,
	tool_calls JSON,
	created_at FLOAT(53) NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_decisions PRIMARY KEY (id)
);

CREATE INDEX ix_decisions_principal_seq ON decisions (principal, seq);

CREATE TABLE deliveries (
	id TEXT NOT NULL,
	webhook_id TEXT NOT NULL,
	seq BIGINT NOT NULL,
	type TEXT NOT NULL,
	body TEXT NOT NULL,
	queued FLOAT(53) NOT NULL,
	due FLOAT(53) NOT NULL,
	attempts INTEGER NOT NULL,
	dead BOOLEAN NOT NULL,
	reason TEXT NOT NULL,
	CONSTRAINT pk_deliveries PRIMARY KEY (id),
	CONSTRAINT uq_deliveries_webhook_id_seq UNIQUE (webhook_id, seq)
);

CREATE TABLE fills (
	id TEXT NOT NULL,
	order_id TEXT NOT NULL,
	account TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	side TEXT NOT NULL,
	quantity TEXT NOT NULL,
	price TEXT NOT NULL,
	fee TEXT NOT NULL,
	at FLOAT(53) NOT NULL,
	bar BIGINT,
	bar_hash TEXT,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_fills PRIMARY KEY (id)
);

CREATE INDEX ix_fills_account_at ON fills (account, at);

CREATE INDEX ix_fills_account_seq ON fills (account, seq);

CREATE INDEX ix_fills_order_id ON fills (order_id);

CREATE TABLE implementations (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	spec_id TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	symbol TEXT NOT NULL,
	timeframe TEXT NOT NULL,
	parameters JSON NOT NULL,
	status TEXT NOT NULL,
	reason TEXT NOT NULL,
	first BIGINT NOT NULL,
	trained_until BIGINT NOT NULL,
	found_at FLOAT(53) NOT NULL,
	changed_at FLOAT(53) NOT NULL,
	tries INTEGER NOT NULL,
	figures JSON NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_implementations PRIMARY KEY (id)
);

CREATE INDEX ix_implementations_spec_id ON implementations (spec_id);

CREATE INDEX ix_implementations_symbol_timeframe ON implementations (symbol, timeframe);

CREATE TABLE inbox (
	alert_id TEXT NOT NULL,
	principal TEXT NOT NULL,
	cursor BIGINT NOT NULL,
	body JSON NOT NULL,
	created_at FLOAT(53) NOT NULL,
	CONSTRAINT pk_inbox PRIMARY KEY (alert_id)
);

CREATE INDEX ix_inbox_principal_cursor ON inbox (principal, cursor);

CREATE TABLE leases (
	name TEXT NOT NULL,
	token INTEGER NOT NULL,
	holder TEXT NOT NULL,
	expires FLOAT(53) NOT NULL,
	CONSTRAINT pk_leases PRIMARY KEY (name)
);

CREATE TABLE ledger (
	seq BIGINT NOT NULL,
	at FLOAT(53) NOT NULL,
	kind TEXT NOT NULL,
	key TEXT NOT NULL,
	body TEXT NOT NULL,
	prev TEXT NOT NULL,
	hash TEXT NOT NULL,
	CONSTRAINT pk_ledger PRIMARY KEY (seq)
);

CREATE INDEX ix_ledger_at_seq ON ledger (at, seq);

CREATE INDEX ix_ledger_kind_key ON ledger (kind, key);

CREATE TABLE marks (
	name TEXT NOT NULL,
	until FLOAT(53) NOT NULL,
	CONSTRAINT pk_marks PRIMARY KEY (name)
);

CREATE TABLE orders (
	id TEXT NOT NULL,
	account TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	side TEXT NOT NULL,
	kind TEXT NOT NULL,
	quantity TEXT NOT NULL,
	opening TEXT NOT NULL,
	time_in_force TEXT NOT NULL,
	placed_at FLOAT(53) NOT NULL,
	spelling TEXT NOT NULL,
	limit_price TEXT,
	stop_price TEXT,
	take_profit TEXT,
	stop_loss TEXT,
	role TEXT NOT NULL,
	parent TEXT,
	client_order_id TEXT,
	expires_at FLOAT(53),
	state TEXT NOT NULL,
	triggered BOOLEAN NOT NULL,
	filled TEXT NOT NULL,
	paid TEXT NOT NULL,
	fees TEXT NOT NULL,
	broker_id TEXT,
	reason TEXT,
	updated_at FLOAT(53) NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_orders PRIMARY KEY (id),
	CONSTRAINT uq_orders_account_principal_client_order_id UNIQUE (account, principal, client_order_id)
);

CREATE INDEX ix_orders_account_seq ON orders (account, seq);

CREATE INDEX ix_orders_account_state ON orders (account, state);

CREATE INDEX ix_orders_parent ON orders (parent);

CREATE TABLE performance (
	implementation_id TEXT NOT NULL,
	until FLOAT(53) NOT NULL,
	body JSON NOT NULL,
	CONSTRAINT pk_performance PRIMARY KEY (implementation_id)
);

CREATE TABLE pushes (
	alert_id TEXT NOT NULL,
	principal TEXT NOT NULL,
	cursor BIGINT NOT NULL,
	body JSON NOT NULL,
	queued FLOAT(53) NOT NULL,
	method TEXT DEFAULT 'notifications/alert_triggered' NOT NULL,
	CONSTRAINT pk_pushes PRIMARY KEY (alert_id)
);

CREATE INDEX ix_pushes_principal_cursor ON pushes (principal, cursor);

CREATE TABLE received (
	webhook_id TEXT NOT NULL,
	digest TEXT NOT NULL,
	at FLOAT(53) NOT NULL,
	CONSTRAINT pk_received PRIMARY KEY (webhook_id, digest)
);

CREATE TABLE requests (
	order_id TEXT NOT NULL,
	account TEXT NOT NULL,
	principal TEXT NOT NULL,
	digest TEXT NOT NULL,
	received FLOAT(53) NOT NULL,
	CONSTRAINT pk_requests PRIMARY KEY (order_id)
);

CREATE INDEX ix_requests_account_received ON requests (account, received);

CREATE TABLE searches (
	id TEXT NOT NULL,
	symbol TEXT NOT NULL,
	timeframe TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	tries INTEGER NOT NULL,
	bars INTEGER NOT NULL,
	first BIGINT NOT NULL,
	until BIGINT NOT NULL,
	digest BIGINT NOT NULL,
	costs JSON NOT NULL,
	at FLOAT(53) NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_searches PRIMARY KEY (id)
);

CREATE TABLE signals (
	implementation_id TEXT NOT NULL,
	symbol TEXT NOT NULL,
	signal TEXT NOT NULL,
	confidence FLOAT(53) NOT NULL,
	triggered_at FLOAT(53) NOT NULL,
	bar_hash TEXT NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_signals PRIMARY KEY (implementation_id)
);

CREATE TABLE specs (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	name TEXT NOT NULL,
	content JSON NOT NULL,
	reasoning TEXT NOT NULL,
	created_at FLOAT(53) NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_specs PRIMARY KEY (id),
	CONSTRAINT uq_specs_principal_name UNIQUE (principal, name)
);

CREATE TABLE subscriptions (
	principal TEXT NOT NULL,
	symbols JSON NOT NULL,
	alert_types JSON NOT NULL,
	created_at FLOAT(53) NOT NULL,
	CONSTRAINT pk_subscriptions PRIMARY KEY (principal)
);

CREATE TABLE switches (
	name TEXT NOT NULL,
	reason TEXT,
	at FLOAT(53) NOT NULL,
	seq BIGINT NOT NULL,
	CONSTRAINT pk_switches PRIMARY KEY (name)
);

CREATE TABLE troubles (
	name TEXT NOT NULL,
	since FLOAT(53) NOT NULL,
	reason TEXT NOT NULL,
	CONSTRAINT pk_troubles PRIMARY KEY (name)
);

CREATE TABLE webhooks (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	direction TEXT NOT NULL,
	name TEXT NOT NULL,
	url TEXT NOT NULL,
	events JSON NOT NULL,
	symbols JSON NOT NULL,
	secret TEXT NOT NULL,
	created_at FLOAT(53) NOT NULL,
	since BIGINT NOT NULL,
	CONSTRAINT pk_webhooks PRIMARY KEY (id)
);

CREATE INDEX ix_webhooks_principal ON webhooks (principal);

INSERT INTO alembic_version (version_num) VALUES ('0005');

