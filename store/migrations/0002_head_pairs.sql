-- maps.layers: where the KV heads of a layer have pairs of their own, its entry is an array of them:
-- ["int8/int4",["int8/int4","int4/int2"]]. Older programs read strings only, so the version tells.

-- head NULL: the pair is of all KV heads of the layer. bits NULL: the side stays in the baseline
-- type.
DROP VIEW v_layer_bits;
CREATE VIEW v_layer_bits AS
SELECT CASE w.name WHEN '' THEN s.name ELSE w.name || '/' || s.name END AS study,
       t.number AS trial, substr(m.map_id, 1, 12) AS map, l.key AS layer,
       CASE l.type WHEN 'array' THEN h.key END AS head,
       k.name AS k_codec, v.name AS v_codec,
       nullif(k.bits, 0) AS k_bits, nullif(v.bits, 0) AS v_bits, t.study_id
FROM maps m
JOIN json_each(m.layers) l
JOIN json_each(CASE l.type WHEN 'array' THEN l.value ELSE json_array(l.value) END) h
JOIN codecs k ON k.name = substr(h.value, 1, instr(h.value, '/') - 1)
JOIN codecs v ON v.name = substr(h.value, instr(h.value, '/') + 1)
LEFT JOIN trials t ON t.map = m.id
LEFT JOIN studies s ON s.id = t.study_id
LEFT JOIN sweeps w ON w.id = s.sweep_id;
