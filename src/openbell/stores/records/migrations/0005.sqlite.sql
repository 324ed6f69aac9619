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
	created_at FLOAT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_accounts PRIMARY KEY (name)
);

CREATE TABLE alerts (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	spelling TEXT NOT NULL,
	interval TEXT NOT NULL,
	type TEXT NOT NULL,
	set_at FLOAT NOT NULL,
	threshold TEXT,
	indicator TEXT,
	signal TEXT,
	state TEXT NOT NULL,
	fired_at FLOAT,
	value FLOAT,
	bar_hash TEXT,
	updated_at FLOAT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_alerts PRIMARY KEY (id)
);

CREATE INDEX ix_alerts_principal_state ON alerts (principal, state);

CREATE INDEX ix_alerts_state_seq ON alerts (state, seq);

CREATE TABLE decisions (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	action TEXT NOT NULL,
	confidence FLOAT NOT NULL,
	opportunity_score FLOAT,
	reasoning TEXT NOT NULL,
	tool_calls JSON,
	created_at FLOAT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_decisions PRIMARY KEY (id)
);

CREATE INDEX ix_decisions_principal_seq ON decisions (principal, seq);

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
	at FLOAT NOT NULL,
	bar INTEGER,
	bar_hash TEXT,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_fills PRIMARY KEY (id)
);

CREATE INDEX ix_fills_account_seq ON fills (account, seq);

CREATE INDEX ix_fills_order_id ON fills (order_id);

CREATE TABLE inbox (
	alert_id TEXT NOT NULL,
	principal TEXT NOT NULL,
	cursor INTEGER NOT NULL,
	body JSON NOT NULL,
	created_at FLOAT NOT NULL,
	CONSTRAINT pk_inbox PRIMARY KEY (alert_id)
);

CREATE INDEX ix_inbox_principal_cursor ON inbox (principal, cursor);

CREATE TABLE leases (
	name TEXT NOT NULL,
	token INTEGER NOT NULL,
	holder TEXT NOT NULL,
	expires FLOAT NOT NULL,
	CONSTRAINT pk_leases PRIMARY KEY (name)
);

CREATE TABLE ledger (
	seq INTEGER NOT NULL,
	at FLOAT NOT NULL,
	kind TEXT NOT NULL,
	"key" TEXT NOT NULL,
	body TEXT NOT NULL,
	prev TEXT NOT NULL,
	hash TEXT NOT NULL,
	CONSTRAINT pk_ledger PRIMARY KEY (seq)
);

CREATE INDEX ix_ledger_kind_key ON ledger (kind, "key");

CREATE TABLE marks (
	name TEXT NOT NULL,
	until FLOAT NOT NULL,
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
	placed_at FLOAT NOT NULL,
	spelling TEXT NOT NULL,
	limit_price TEXT,
	stop_price TEXT,
	take_profit TEXT,
	stop_loss TEXT,
	role TEXT NOT NULL,
	parent TEXT,
	client_order_id TEXT,
	expires_at FLOAT,
	state TEXT NOT NULL,
	triggered BOOLEAN NOT NULL,
	filled TEXT NOT NULL,
	paid TEXT NOT NULL,
	fees TEXT NOT NULL,
	broker_id TEXT,
	reason TEXT,
	updated_at FLOAT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_orders PRIMARY KEY (id),
	CONSTRAINT uq_orders_account_principal_client_order_id UNIQUE (account, principal, client_order_id)
);

CREATE INDEX ix_orders_account_seq ON orders (account, seq);

CREATE INDEX ix_orders_account_state ON orders (account, state);

CREATE INDEX ix_orders_parent ON orders (parent);

CREATE TABLE pushes (
	alert_id TEXT NOT NULL,
	principal TEXT NOT NULL,
	cursor INTEGER NOT NULL,
	body JSON NOT NULL,
	queued FLOAT NOT NULL, method TEXT DEFAULT 'notifications/alert_triggered' NOT NULL,
	CONSTRAINT pk_pushes PRIMARY KEY (alert_id)
);

CREATE INDEX ix_pushes_principal_cursor ON pushes (principal, cursor);

CREATE TABLE requests (
	order_id TEXT NOT NULL,
	account TEXT NOT NULL,
	principal TEXT NOT NULL,
	digest TEXT NOT NULL,
	received FLOAT NOT NULL,
	CONSTRAINT pk_requests PRIMARY KEY (order_id)
);

CREATE INDEX ix_requests_account_received ON requests (account, received);

CREATE TABLE subscriptions (
	principal TEXT NOT NULL,
	symbols JSON NOT NULL,
	alert_types JSON NOT NULL,
	created_at FLOAT NOT NULL,
	CONSTRAINT pk_subscriptions PRIMARY KEY (principal)
);

CREATE TABLE switches (
	name TEXT NOT NULL,
	reason TEXT,
	at FLOAT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_switches PRIMARY KEY (name)
);

CREATE TABLE checkpoints (
	account TEXT NOT NULL,
	seq INTEGER NOT NULL,
	at FLOAT NOT NULL,
	body JSON NOT NULL,
	CONSTRAINT pk_checkpoints PRIMARY KEY (account, seq)
);

CREATE TABLE troubles (
	name TEXT NOT NULL,
	since FLOAT NOT NULL,
	reason TEXT NOT NULL,
	CONSTRAINT pk_troubles PRIMARY KEY (name)
);

CREATE TABLE cursors (
	principal TEXT NOT NULL,
	seen INTEGER NOT NULL,
	pushed INTEGER NOT NULL, signals INTEGER DEFAULT '0' NOT NULL,
	CONSTRAINT pk_cursors PRIMARY KEY (principal)
);

CREATE INDEX ix_ledger_at_seq ON ledger (at, seq);

CREATE INDEX ix_fills_account_at ON fills (account, at);

CREATE TABLE specs (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	name TEXT NOT NULL,
	content JSON NOT NULL,
	reasoning TEXT NOT NULL,
	created_at FLOAT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_specs PRIMARY KEY (id),
	CONSTRAINT uq_specs_principal_name UNIQUE (principal, name)
);

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
	first INTEGER NOT NULL,
	trained_until INTEGER NOT NULL,
	found_at FLOAT NOT NULL,
	changed_at FLOAT NOT NULL,
	tries INTEGER NOT NULL,
	figures JSON NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_implementations PRIMARY KEY (id)
);

CREATE TABLE searches (
	id TEXT NOT NULL,
	symbol TEXT NOT NULL,
	timeframe TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	tries INTEGER NOT NULL,
	bars INTEGER NOT NULL,
	first INTEGER NOT NULL,
	until INTEGER NOT NULL,
	digest INTEGER NOT NULL,
	costs JSON NOT NULL,
	at FLOAT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_searches PRIMARY KEY (id)
);

CREATE TABLE signals (
	implementation_id TEXT NOT NULL,
	symbol TEXT NOT NULL,
	signal TEXT NOT NULL,
	confidence FLOAT NOT NULL,
	triggered_at FLOAT NOT NULL,
	bar_hash TEXT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_signals PRIMARY KEY (implementation_id)
);

CREATE TABLE consensuses (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	bullish INTEGER NOT NULL,
	bearish INTEGER NOT NULL,
	neutral INTEGER NOT NULL,
	consensus TEXT NOT NULL,
	confidence FLOAT NOT NULL,
	signals JSON NOT NULL,
	at FLOAT NOT NULL,
	seq INTEGER NOT NULL,
	CONSTRAINT pk_consensuses PRIMARY KEY (id)
);

CREATE TABLE performance (
	implementation_id TEXT NOT NULL,
	until FLOAT NOT NULL,
	body JSON NOT NULL,
	CONSTRAINT pk_performance PRIMARY KEY (implementation_id)
);

CREATE INDEX ix_implementations_symbol_timeframe ON implementations (symbol, timeframe);

CREATE INDEX ix_implementations_spec_id ON implementations (spec_id);

CREATE TABLE webhooks (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	direction TEXT NOT NULL,
	name TEXT NOT NULL,
	url TEXT NOT NULL,
	events JSON NOT NULL,
	symbols JSON NOT NULL,
	secret TEXT NOT NULL,
	created_at FLOAT NOT NULL,
	since INTEGER NOT NULL,
	CONSTRAINT pk_webhooks PRIMARY KEY (id)
);

CREATE TABLE deliveries (
	id TEXT NOT NULL,
	webhook_id TEXT NOT NULL,
	seq INTEGER NOT NULL,
	type TEXT NOT NULL,
	body TEXT NOT NULL,
	queued FLOAT NOT NULL,
	due FLOAT NOT NULL,
	attempts INTEGER NOT NULL,
	dead BOOLEAN NOT NULL,
	reason TEXT NOT NULL,
	CONSTRAINT pk_deliveries PRIMARY KEY (id),
	CONSTRAINT uq_deliveries_webhook_id_seq UNIQUE (webhook_id, seq)
);

CREATE TABLE received (
	webhook_id TEXT NOT NULL,
	digest TEXT NOT NULL,
	at FLOAT NOT NULL,
	CONSTRAINT pk_received PRIMARY KEY (webhook_id, digest)
);

CREATE INDEX ix_webhooks_principal ON webhooks (principal);

CREATE TABLE crossing_subscriptions (
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	symbol TEXT NOT NULL,
	spelling TEXT NOT NULL,
	crossings JSON NOT NULL,
	throttle_ms INTEGER NOT NULL,
	created_at FLOAT NOT NULL,
	seen INTEGER NOT NULL,
	sent_at FLOAT,
	CONSTRAINT pk_crossing_subscriptions PRIMARY KEY (id)
);

CREATE INDEX ix_crossing_subscriptions_principal ON crossing_subscriptions (principal);

INSERT INTO alembic_version (version_num) VALUES ('0005');

