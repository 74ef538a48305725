//! What the `tokenizers` crate accepts and kvsweep does not, and what is wrong with a tokenizer.json
//! that the crate refused, naming the field: its own errors rarely say where.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokenizers::{
    DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper,
    Tokenizer,
};

use crate::ffi::{caught, Outcome};

/// Sixty times the largest vocabulary in use; a larger id is a mistake or an attack on whatever is
/// sized by it.
const MAX_ID: u32 = (1 << 24) - 1;
/// Ids become text after every token that is generated, so decoders must be cheap.
const MAX_DECODER_GROWTH: usize = 64;
const SHOWN_CHARS: usize = 40;

/// Refuses what would be slow, unbounded or different from call to call. Returns the highest id + 1.
pub fn check(tokenizer: &Tokenizer) -> Outcome<i64> {
    if let ModelWrapper::BPE(model) = tokenizer.get_model() {
        if let Some(share) = model.dropout.filter(|&share| share != 0.0) {
            return Err(format!(
                "model.dropout is {share}: a text would give other tokens every time; set it to null"
            ));
        }
    }
    if let Some(decoder) = tokenizer.get_decoder() {
        let decoder = serde_json::to_value(decoder).map_err(|e| format!("decoder: {e}"))?;
        let growth = decoder_growth(&decoder, "decoder")?;
        if growth > MAX_DECODER_GROWTH {
            return Err(format!(
                "decoder: its Replace steps may make a text {growth} times as long; at most \
                 {MAX_DECODER_GROWTH} times is allowed"
            ));
        }
    }
    let vocabulary = tokenizer.get_vocab(true);
    match vocabulary.iter().max_by_key(|(_, &id)| id) {
        Some((token, &id)) if id > MAX_ID => Err(format!(
            "model.vocab: token {} has the id {id}; ids go up to {MAX_ID}",
            shown(&Value::from(token.as_str()))
        )),
        Some((_, &id)) => Ok(i64::from(id) + 1),
        None => Ok(0),
    }
}

/// How much longer the Replace steps of a decoder may make a text, at most.
fn decoder_growth(decoder: &Value, field: &str) -> Outcome<usize> {
    let text = |value: &Value| value.as_str().unwrap_or_default().len();
    match decoder["type"].as_str() {
        Some("Replace") => match &decoder["pattern"] {
            Value::Object(pattern) if pattern.contains_key("String") => {
                let (from, to) = (text(&pattern["String"]), text(&decoder["content"]));
                // An empty pattern stands between all characters.
                Ok(if from == 0 { to + 1 } else { to.div_ceil(from).max(1) })
            }
            _ => Err(format!(
                "{field}.pattern is a regular expression; only a String is supported there"
            )),
        },
        Some("Sequence") => {
            let steps = decoder["decoders"].as_array().map(Vec::as_slice).unwrap_or_default();
            steps.iter().enumerate().try_fold(1usize, |growth, (i, step)| {
                let of_step = decoder_growth(step, &format!("{field}.decoders[{i}]"))?;
                Ok(growth.saturating_mul(of_step))
            })
        }
        _ => Ok(1),
    }
}

/// One sentence about `bytes`, which the crate refused with `reason`.
pub fn explain(bytes: &[u8], reason: &str) -> String {
    match find_fault(bytes) {
        Err(fault) => fault,
        Ok(()) => reason.to_string(),
    }
}

fn find_fault(bytes: &[u8]) -> Outcome<()> {
    let root: Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let root = root.as_object().ok_or("it does not hold a JSON object")?;
    match root.get("version") {
        Some(version) if version != "1.0" => {
            return Err(format!("version is {}; only \"1.0\" is known", shown(version)));
        }
        _ => {}
    }
    check_added_tokens(root)?;
    check_part::<NormalizerWrapper>(root, "normalizer", "normalizers")?;
    check_part::<PreTokenizerWrapper>(root, "pre_tokenizer", "pretokenizers")?;
    check_model(root.get("model").unwrap_or(&Value::Null))?;
    check_part::<PostProcessorWrapper>(root, "post_processor", "processors")?;
    check_part::<DecoderWrapper>(root, "decoder", "decoders")
}

fn check_added_tokens(root: &Map<String, Value>) -> Outcome<()> {
    let Some(member) = root.get("added_tokens") else { return Ok(()) };
    let tokens = member.as_array();
    let tokens = tokens.ok_or_else(|| format!("added_tokens is {}, not a list", shown(member)))?;
    for (i, token) in tokens.iter().enumerate() {
        let id = token["id"].as_u64().filter(|&id| u32::try_from(id).is_ok());
        if id.is_none() {
            return Err(format!("added_tokens[{i}].id is {}, not a token id", shown(&token["id"])));
        }
        if !token["content"].is_string() {
            let content = shown(&token["content"]);
            return Err(format!("added_tokens[{i}].content is {content}, not a text"));
        }
        for flag in ["single_word", "lstrip", "rstrip", "normalized", "special"] {
            if !token[flag].is_boolean() {
                let value = shown(&token[flag]);
                return Err(format!("added_tokens[{i}].{flag} is {value}, not true or false"));
            }
        }
    }
    Ok(())
}

/// Finds the innermost step that the crate does not accept; `steps` names the list of a Sequence.
fn check_part<T: DeserializeOwned>(
    parent: &Map<String, Value>,
    name: &str,
    steps: &str,
) -> Outcome<()> {
    match parent.get(name) {
        None | Some(Value::Null) => Ok(()),
        Some(part) => check_step::<T>(part, name, steps),
    }
}

fn check_step<T: DeserializeOwned>(part: &Value, field: &str, steps: &str) -> Outcome<()> {
    let Err(reason) = accepts::<T>(part) else { return Ok(()) };
    if let Some(inner) = part.get(steps).and_then(Value::as_array) {
        for (i, step) in inner.iter().enumerate() {
            check_step::<T>(step, &format!("{field}.{steps}[{i}]"), steps)?;
        }
    }
    Err(format!("{field} is {}: {reason}", shown(part)))
}

fn accepts<T: DeserializeOwned>(part: &Value) -> Outcome<()> {
    caught(|| serde_json::from_value::<T>(part.clone()).map(|_| ()).map_err(|e| e.to_string()))?
}

fn check_model(model: &Value) -> Outcome<()> {
    if model.is_null() {
        return Err("model is missing".into());
    }
    let Err(reason) = accepts::<ModelWrapper>(model) else { return Ok(()) };
    if let Some(kind) = model.get("type") {
        let known = ["BPE", "WordPiece", "WordLevel", "Unigram"];
        if !known.iter().any(|name| kind == name) {
            return Err(format!("model.type is {}; known are {}", shown(kind), known.join(", ")));
        }
    }
    if model["type"] != "Unigram" {
        check_vocabulary(&model["vocab"])?;
    }
    if model["type"] == "BPE" {
        check_merges(&model["merges"])?;
    }
    Err(format!("model: {reason}"))
}

fn check_vocabulary(vocabulary: &Value) -> Outcome<()> {
    let entries = vocabulary.as_object();
    let entries = entries
        .ok_or_else(|| format!("model.vocab is {}, not an object of ids", shown(vocabulary)))?;
    match entries.iter().find(|(_, id)| !id.as_u64().is_some_and(|id| u32::try_from(id).is_ok())) {
        Some((token, id)) => {
            let token = shown(&Value::from(token.as_str()));
            Err(format!("model.vocab: token {token} has the id {}, not a token id", shown(id)))
        }
        None => Ok(()),
    }
}

fn check_merges(merges: &Value) -> Outcome<()> {
    let rows = merges.as_array();
    let rows = rows.ok_or_else(|| format!("model.merges is {}, not a list", shown(merges)))?;
    let sound = |row: &Value| match row {
        Value::String(text) => text.contains(' '),
        Value::Array(pair) => pair.len() == 2 && pair.iter().all(Value::is_string),
        _ => false,
    };
    match rows.iter().position(|row| !sound(row)) {
        Some(i) => Err(format!("model.merges[{i}] is {}, not a pair of tokens", shown(&rows[i]))),
        None => Ok(()),
    }
}

/// A value as an error message shows it: compact and cut.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "missing".to_string(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(members) => match members.get("type").and_then(Value::as_str) {
            Some(kind) => format!("an object of type {kind}"),
            None => format!("an object of {} members", members.len()),
        },
        plain => plain.to_string(),
    };
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
