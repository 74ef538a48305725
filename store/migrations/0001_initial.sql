-- Version 1: the trial database.
--
-- Times are milliseconds since 1970-01-01T00:00:00Z (UTC); the views print them as text.
-- Hashes are lower-case hexadecimal text where people look at them, and 32-byte blobs in the one
-- table that has a row per example. NaN is never stored: it would turn into NULL.

-- The formats' codecs, so that SQL knows their bits; kept equal to core/catalog/codecs.def by the
-- writer each time it opens the file. bits = 0: an element of the study's baseline type.
CREATE TABLE codecs (
  name  TEXT PRIMARY KEY,
  label TEXT NOT NULL,
  bits  INTEGER NOT NULL CHECK (bits >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE models (
  id         INTEGER PRIMARY KEY,
  hash       TEXT NOT NULL UNIQUE CHECK (length(hash) > 0),
  dir        TEXT NOT NULL,                 -- where it was last seen; models may move
  family     TEXT NOT NULL,
  num_layers INTEGER NOT NULL CHECK (num_layers > 0),
  geometry   TEXT NOT NULL CHECK (json_valid(geometry))
) STRICT;

-- A scheme with every option settled: canonical JSON of core/scheme.hpp, group 0 = whole head.
CREATE TABLE schemes (
  id       INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  options  TEXT NOT NULL UNIQUE CHECK (json_valid(options))
) STRICT;

-- protocol_hash covers protocol and run mode; examples = size of the split, 0 = not known yet.
CREATE TABLE tasks (
  id             INTEGER PRIMARY KEY,
  protocol_hash  TEXT NOT NULL UNIQUE CHECK (length(protocol_hash) > 0),
  name           TEXT NOT NULL,
  version        TEXT NOT NULL,
  split          TEXT NOT NULL,
  shots          INTEGER NOT NULL CHECK (shots >= 0),
  seed           INTEGER NOT NULL,
  max_new_tokens INTEGER NOT NULL CHECK (max_new_tokens >= 0),
  length         INTEGER NOT NULL CHECK (length >= 0),
  mode           TEXT NOT NULL CHECK (mode IN ('generate', 'forced')),
  examples       INTEGER NOT NULL CHECK (examples >= 0)
) STRICT;

-- layers: JSON array, one "K codec/V codec" per layer: ["int8/int4","base/base"].
CREATE TABLE maps (
  id         INTEGER PRIMARY KEY,
  map_id     TEXT NOT NULL UNIQUE CHECK (length(map_id) = 64),
  scheme_id  INTEGER NOT NULL REFERENCES schemes (id),
  num_layers INTEGER NOT NULL CHECK (num_layers > 0),
  layers     TEXT NOT NULL CHECK (json_valid(layers) AND json_array_length(layers) = num_layers),
  summary    TEXT NOT NULL
) STRICT;

-- What profiling measured about one layer under one pair. profile_hash: calibration prompts and
-- how they were run.
CREATE TABLE sensitivities (
  model_id     INTEGER NOT NULL REFERENCES models (id),
  scheme_id    INTEGER NOT NULL REFERENCES schemes (id),
  profile_hash TEXT NOT NULL,
  layer        INTEGER NOT NULL CHECK (layer >= 0),
  k_codec      TEXT NOT NULL REFERENCES codecs (name),
  v_codec      TEXT NOT NULL REFERENCES codecs (name),
  metric       TEXT NOT NULL,
  value        REAL NOT NULL,
  spread       REAL,                        -- standard error over prompts
  prompts      INTEGER NOT NULL CHECK (prompts > 0),
  utc_ms       INTEGER NOT NULL,
  PRIMARY KEY (model_id, scheme_id, profile_hash, layer, k_codec, v_codec, metric)
) STRICT, WITHOUT ROWID;

-- A study that was not part of a sweep belongs to the sweep named ''.
CREATE TABLE sweeps (
  id             INTEGER PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE,
  created_utc_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE studies (
  id              INTEGER PRIMARY KEY,
  sweep_id        INTEGER NOT NULL REFERENCES sweeps (id),
  name            TEXT NOT NULL CHECK (length(name) > 0),
  model_id        INTEGER NOT NULL REFERENCES models (id),
  spec            TEXT NOT NULL CHECK (json_valid(spec)),
  numerics_class  TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('running', 'finished', 'stopped', 'failed')),
  status_reason   TEXT NOT NULL,
  reference_bytes REAL NOT NULL,
  reference_loss  REAL NOT NULL,
  created_utc_ms  INTEGER NOT NULL,
  finished_utc_ms INTEGER NOT NULL,         -- 0 = not yet
  UNIQUE (sweep_id, name)
) STRICT;

-- The layer groups of a study and the pairs each may take; layers and candidates are JSON arrays.
CREATE TABLE groups (
  study_id   INTEGER NOT NULL REFERENCES studies (id),
  number     INTEGER NOT NULL CHECK (number >= 0),
  layers     TEXT NOT NULL CHECK (json_valid(layers) AND json_array_length(layers) > 0),
  candidates TEXT NOT NULL CHECK (json_valid(candidates) AND json_array_length(candidates) > 0),
  PRIMARY KEY (study_id, number)
) STRICT, WITHOUT ROWID;

-- number -1 = the study's baseline. tell_order 0, 1, 2, ... = order of tells; -1 = not told.
-- tells_before = tells the algorithm had seen when it proposed the trial.
CREATE TABLE trials (
  study_id        INTEGER NOT NULL REFERENCES studies (id),
  number          INTEGER NOT NULL CHECK (number >= -1),
  genome          TEXT NOT NULL CHECK (json_valid(genome)),
  parents         TEXT NOT NULL CHECK (json_valid(parents)),
  origin          TEXT NOT NULL,
  map             INTEGER NOT NULL REFERENCES maps (id),
  state           TEXT NOT NULL CHECK (state IN ('asked', 'complete', 'infeasible', 'failed')),
  tell_order      INTEGER NOT NULL CHECK (tell_order >= -1),
  tells_before    INTEGER NOT NULL CHECK (tells_before >= 0),
  bytes           REAL NOT NULL CHECK (bytes >= 0),
  effective_bits  REAL NOT NULL CHECK (effective_bits >= 0),
  metric          REAL,
  loss            REAL,
  examples        INTEGER NOT NULL CHECK (examples >= 0),
  reused          INTEGER NOT NULL CHECK (reused IN (0, 1)),
  failure         TEXT NOT NULL,
  asked_utc_ms    INTEGER NOT NULL,
  finished_utc_ms INTEGER NOT NULL,
  PRIMARY KEY (study_id, number),
  CHECK (number = -1 OR state <> 'complete' OR (metric IS NOT NULL AND loss IS NOT NULL))
) STRICT, WITHOUT ROWID;
-- A study never evaluates a map twice (its baseline may also be one of its genomes).
CREATE UNIQUE INDEX trials_map ON trials (study_id, map) WHERE number >= 0;
CREATE UNIQUE INDEX trials_tell ON trials (study_id, tell_order) WHERE tell_order >= 0;
-- Covers the sweep that finds a front.
CREATE INDEX trials_objectives ON trials (study_id, bytes, loss, number)
  WHERE state = 'complete' AND number >= 0 AND loss IS NOT NULL;
CREATE INDEX trials_by_map ON trials (map);

CREATE TABLE workers (
  id                INTEGER PRIMARY KEY,
  worker_id         TEXT NOT NULL UNIQUE CHECK (length(worker_id) > 0),
  host              TEXT NOT NULL,
  device            TEXT NOT NULL,
  device_name       TEXT NOT NULL,
  numerics_class    TEXT NOT NULL,
  version           TEXT NOT NULL,
  first_seen_utc_ms INTEGER NOT NULL,
  last_seen_utc_ms  INTEGER NOT NULL,
  units_done        INTEGER NOT NULL CHECK (units_done >= 0),
  units_failed      INTEGER NOT NULL CHECK (units_failed >= 0)
) STRICT;

CREATE TABLE units (
  unit_id   TEXT PRIMARY KEY,
  study_id  INTEGER REFERENCES studies (id),
  kind      TEXT NOT NULL,
  state     TEXT NOT NULL,
  attempts  INTEGER NOT NULL CHECK (attempts >= 0),
  worker    INTEGER REFERENCES workers (id),
  failure   TEXT NOT NULL,
  wall_ms   REAL NOT NULL CHECK (wall_ms >= 0),
  utc_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX units_by_study ON units (study_id, state);

-- What the measurements of one map on one task have in common. A measurement is addressed by
-- (scope, example): everything its outcome depends on, once, behind two integers.
CREATE TABLE scopes (
  id             INTEGER PRIMARY KEY,
  map            INTEGER NOT NULL REFERENCES maps (id),
  task           INTEGER NOT NULL REFERENCES tasks (id),
  model          INTEGER NOT NULL REFERENCES models (id),
  base           TEXT NOT NULL CHECK (base IN ('fp32', 'fp16', 'bf16')),
  numerics_class TEXT NOT NULL,
  UNIQUE (map, task, model, base, numerics_class)
) STRICT;

-- SHA-256 of an example's rendered prompt and gold answer.
CREATE TABLE examples (
  id   INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32)
) STRICT;

-- tokens: varints, see store/token_blob.hpp; NULL = none. number = index in the split.
CREATE TABLE measurements (
  id              INTEGER PRIMARY KEY,
  scope           INTEGER NOT NULL REFERENCES scopes (id),
  example         INTEGER NOT NULL REFERENCES examples (id),
  number          INTEGER NOT NULL CHECK (number >= 0),
  text            TEXT NOT NULL,
  tokens          BLOB,
  answer          TEXT NOT NULL,
  exact_match     REAL CHECK (exact_match BETWEEN 0 AND 1),
  strict_match    REAL CHECK (strict_match BETWEEN 0 AND 1),
  token_agreement REAL CHECK (token_agreement BETWEEN 0 AND 1),
  kl              REAL,
  nll             REAL,
  prompt_tokens   INTEGER NOT NULL CHECK (prompt_tokens >= 0),
  output_tokens   INTEGER NOT NULL CHECK (output_tokens >= 0),
  cache_bytes     INTEGER NOT NULL CHECK (cache_bytes >= 0),
  prefill_ms      REAL NOT NULL CHECK (prefill_ms >= 0),
  decode_ms       REAL NOT NULL CHECK (decode_ms >= 0),
  worker          INTEGER REFERENCES workers (id),
  batch_invariant INTEGER NOT NULL CHECK (batch_invariant IN (0, 1)),
  utc_ms          INTEGER NOT NULL,
  UNIQUE (scope, example)
) STRICT;

CREATE TABLE events (
  id       INTEGER PRIMARY KEY,
  study_id INTEGER REFERENCES studies (id),
  utc_ms   INTEGER NOT NULL,
  kind     TEXT NOT NULL CHECK (length(kind) > 0),
  detail   TEXT NOT NULL CHECK (json_valid(detail))
) STRICT;
CREATE INDEX events_by_study ON events (study_id, id);

-- Views for people.

CREATE VIEW v_trials AS
SELECT CASE w.name WHEN '' THEN s.name ELSE w.name || '/' || s.name END AS study,
       t.number, t.state, t.origin, t.bytes, t.effective_bits, t.metric, t.loss, t.examples,
       t.reused, m.summary AS layers, substr(m.map_id, 1, 12) AS map, t.failure,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.asked_utc_ms / 1000.0, 'unixepoch') AS asked,
       CASE WHEN t.finished_utc_ms > 0 THEN
         strftime('%Y-%m-%dT%H:%M:%fZ', t.finished_utc_ms / 1000.0, 'unixepoch') END AS finished,
       CASE WHEN t.finished_utc_ms > 0 THEN
         (t.finished_utc_ms - t.asked_utc_ms) / 1000.0 END AS seconds,
       t.study_id
FROM trials t
JOIN studies s ON s.id = t.study_id
JOIN sweeps w ON w.id = s.sweep_id
JOIN maps m ON m.id = t.map;

-- Sorted by (bytes, loss, number), a trial is on the front when its loss is below every earlier
-- one: no other is at most as large and at most as bad. Of equal objectives the first number stays.
CREATE VIEW v_front AS
WITH swept AS (
  SELECT study_id, number, loss,
         min(loss) OVER (PARTITION BY study_id ORDER BY bytes, loss, number
                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS best_before
  FROM trials
  WHERE state = 'complete' AND number >= 0 AND loss IS NOT NULL)
SELECT v.study, v.number, v.bytes, v.effective_bits, v.metric, v.loss, v.examples, v.layers, v.map,
       v.study_id
FROM swept f
JOIN v_trials v ON v.study_id = f.study_id AND v.number = f.number
WHERE f.best_before IS NULL OR f.loss < f.best_before;

-- bits NULL: the layer's side stays in the baseline type.
CREATE VIEW v_layer_bits AS
SELECT CASE w.name WHEN '' THEN s.name ELSE w.name || '/' || s.name END AS study,
       t.number AS trial, substr(m.map_id, 1, 12) AS map, l.key AS layer,
       k.name AS k_codec, v.name AS v_codec,
       nullif(k.bits, 0) AS k_bits, nullif(v.bits, 0) AS v_bits, t.study_id
FROM maps m
JOIN json_each(m.layers) l
JOIN codecs k ON k.name = substr(l.value, 1, instr(l.value, '/') - 1)
JOIN codecs v ON v.name = substr(l.value, instr(l.value, '/') + 1)
LEFT JOIN trials t ON t.map = m.id
LEFT JOIN studies s ON s.id = t.study_id
LEFT JOIN sweeps w ON w.id = s.sweep_id;

CREATE VIEW v_workers AS
SELECT worker_id AS worker, host, device, device_name, numerics_class, version, units_done,
       units_failed,
       strftime('%Y-%m-%dT%H:%M:%fZ', first_seen_utc_ms / 1000.0, 'unixepoch') AS first_seen,
       strftime('%Y-%m-%dT%H:%M:%fZ', last_seen_utc_ms / 1000.0, 'unixepoch') AS last_seen
FROM workers;
