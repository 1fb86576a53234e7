-- +goose Up

-- The tables of the ledger, the office and the seen table. Names and texts that
-- order rows compare by their bytes (collation "C"), as the ledger does. What a
-- client may choose freely is bytea: a text cannot hold everything. Times are Unix
-- nanoseconds, and numbers that may use all of 64 bits numeric(20); a run is its 16
-- hexadecimal digits, as it stands in logs.

-- One row: the version of all that is not owned by one run or one ticket (subjects,
-- flags of events). It grows with each change of them, so that what a process
-- remembers of them can be known to hold.
create table state (
    one     boolean primary key default true check (one),
    version bigint not null
);
insert into state (version) values (1);

-- How far each run of each source is held.
create table stream (
    source text collate "C" not null,
    run    text collate "C" not null,
    high   numeric(20) not null, -- positions up to here are here, were here, or are lost
    top    numeric(20) not null, -- the highest position stored
    head   numeric(20) not null, -- the highest position its source ever named
    base   numeric(20) not null, -- positions up to here were pruned
    lost   numeric(20) not null,
    aside  numeric(20) not null,
    primary key (source, run)
);

-- What came at each position: a record in its own bytes, or what could not be read.
create table record (
    source text collate "C" not null,
    run    text collate "C" not null,
    pos    numeric(20) not null,
    aside  boolean not null,
    raw    bytea not null,
    primary key (source, run, pos)
);

-- Claims by their id (gate, run, pos). Their content is in the record that they
-- point at, of the same gate.
create table claim (
    gate       text collate "C" not null,
    run        text collate "C" not null,
    pos        numeric(20) not null,
    event      text collate "C" not null,
    format     smallint not null,
    ticket     bytea not null,
    entry      bigint not null,
    record_run text collate "C" not null,
    record_pos numeric(20) not null,
    since      bigint not null, -- when it first arrived
    answer     text collate "C" not null,
    primary key (gate, run, pos) -- a claim stands with one unit
);
create unique index claim_unit on claim (event, format, ticket, entry, gate, run, pos);

-- Pending claims by the time at which they become overdue.
create table due (
    at     bigint not null,
    gate   text collate "C" not null,
    run    text collate "C" not null,
    pos    numeric(20) not null,
    event  text collate "C" not null,
    format smallint not null,
    ticket bytea not null,
    entry  bigint not null,
    primary key (at, gate, run, pos)
);

-- The feed record that holds for each subject.
create table subject (
    name    text collate "C" primary key,
    version numeric(20) not null,
    source  text collate "C" not null,
    run     text collate "C" not null,
    pos     numeric(20) not null
);

-- Conflicts and alarms: what they are found and listed by, and the whole as CBOR.
create table conflict (
    id    text collate "C" primary key,
    at    bigint not null, -- when it was announced; never moves
    event text collate "C" not null,
    state text collate "C" not null,
    body  bytea not null
);
create index conflict_at on conflict (at, id);

create table alarm (
    id    text collate "C" primary key,
    at    bigint not null, -- when it was raised; never moves
    event text collate "C" not null,
    kind  text collate "C" not null,
    body  bytea not null
);
create index alarm_at on alarm (at, id);

create table event (
    id     text collate "C" primary key,
    forget bigint not null, -- when to close it; 0: not said
    closed bigint not null, -- when it was closed; 0: open
    pruned boolean not null,
    swept  boolean not null
);

-- What is counted of an event is the sum over its parts: many count at once, and a
-- part is locked until its writer's commit.
create table event_count (
    id        text collate "C" not null,
    part      smallint not null,
    admitted  bigint not null,
    conflicts bigint not null,
    alarms    bigint not null,
    late      bigint not null,
    primary key (id, part)
);

create table gate (
    device text collate "C" primary key,
    place  bytea not null,
    hello  bigint not null -- when it last said hello, at most ten minutes old
);

-- Records that came after their event was pruned.
create table late (
    event  text collate "C" not null,
    source text collate "C" not null,
    run    text collate "C" not null,
    pos    numeric(20) not null,
    raw    bytea not null,
    primary key (event, source, run, pos)
);

-- The rows of the office and of the API, by table and id, in lists by time.
create table office (
    kind text collate "C" not null, -- the table, as the office names it
    id   bytea not null,
    list bytea not null, -- empty: in none
    at   bigint not null,
    body bytea not null,
    primary key (kind, id)
);
create index office_list on office (kind, list, at, id) where list <> '';

-- Who was first. The primary key is the lock.
create table seen (
    endpoint    text collate "C" not null,
    scope       bytea not null,
    id          bytea not null,
    first_seen  bigint,
    until       bigint, -- null: for ever
    place       bytea not null,
    holder      bytea not null,
    fingerprint bytea,
    result      bytea,
    done        boolean not null default false,
    primary key (endpoint, scope, id)
);
create index seen_until on seen (endpoint, until) where until is not null;
