-- Tasks may be put to the model as chats, cut to a context, halved, and run in more ways. SQLite cannot
-- change a CHECK, so the table is made anew; ids stay.
CREATE TABLE tasks_new (
  id             INTEGER PRIMARY KEY,
  protocol_hash  TEXT NOT NULL UNIQUE CHECK (length(protocol_hash) > 0),
  name           TEXT NOT NULL,
  version        TEXT NOT NULL,
  split          TEXT NOT NULL,
  shots          INTEGER NOT NULL CHECK (shots >= 0),
  seed           INTEGER NOT NULL,
  max_new_tokens INTEGER NOT NULL CHECK (max_new_tokens >= 0),
  length         INTEGER NOT NULL CHECK (length >= 0),
  mode           TEXT NOT NULL CHECK (mode IN ('generate', 'forced', 'choices', 'rolling')),
  examples       INTEGER NOT NULL CHECK (examples >= 0),
  form           TEXT NOT NULL DEFAULT 'text' CHECK (form IN ('text', 'chat', 'multiturn')),
  context        INTEGER NOT NULL DEFAULT 0 CHECK (context >= 0),  -- tokens; 0 = the model's
  rows           TEXT NOT NULL DEFAULT ''  -- half of the split; '' = all of it
) STRICT;
INSERT INTO tasks_new
SELECT id, protocol_hash, name, version, split, shots, seed, max_new_tokens, length, mode, examples,
       'text', 0, ''
FROM tasks;
DROP TABLE tasks;
ALTER TABLE tasks_new RENAME TO tasks;
