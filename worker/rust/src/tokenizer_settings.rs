//! What tokenizer_config.json changes about a tokenizer.json, as transformers 5 applies it.

use serde_json::{json, Value};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

use crate::ffi::{caught, Outcome};

/// `settings`, all optional: "add_bos_token" and "add_eos_token" (booleans, with "bos_token" and
/// "eos_token") replace the post-processor; "prepend_scheme" rebuilds the handling of spaces.
pub fn apply(tokenizer: &mut Tokenizer, settings: &str) -> Outcome<()> {
    let settings: Value = serde_json::from_str(settings)
        .map_err(|e| format!("the settings of the tokenizer are not JSON: {e}"))?;
    if settings["add_bos_token"].is_boolean() || settings["add_eos_token"].is_boolean() {
        let bos = token_to_add(tokenizer, &settings, "bos")?;
        let eos = token_to_add(tokenizer, &settings, "eos")?;
        set_post_processor(tokenizer, bos, eos)?;
    }
    match settings["prepend_scheme"].as_str() {
        Some(scheme) if !is_byte_level(tokenizer) => set_spaces(tokenizer, scheme),
        _ => Ok(()),
    }
}

fn token_to_add(
    tokenizer: &Tokenizer,
    settings: &Value,
    name: &str,
) -> Outcome<Option<(String, u32)>> {
    let token = settings[format!("{name}_token")].as_str();
    match (settings[format!("add_{name}_token")].as_bool(), token) {
        (Some(true), Some(token)) => match tokenizer.token_to_id(token) {
            Some(id) => Ok(Some((token.to_string(), id))),
            None => Err(format!(
                "add_{name}_token: {name}_token '{token}' is not a token of tokenizer.json; the two \
                 files belong to different models"
            )),
        },
        _ => Ok(None),
    }
}

fn set_post_processor(
    tokenizer: &mut Tokenizer,
    bos: Option<(String, u32)>,
    eos: Option<(String, u32)>,
) -> Outcome<()> {
    let sequence = |name: &str, kind: u32| json!({"Sequence": {"id": name, "type_id": kind}});
    let around = |middle: Value, kind: u32| -> Vec<Value> {
        let special =
            |token: &(String, u32)| json!({"SpecialToken": {"id": token.0, "type_id": kind}});
        let (before, after) = (bos.iter().map(special), eos.iter().map(special));
        before.chain([middle]).chain(after).collect()
    };
    let (single, second) = (around(sequence("A", 0), 0), around(sequence("B", 1), 1));
    let pair: Vec<Value> = single.iter().cloned().chain(second).collect();
    let mut tokens = serde_json::Map::new();
    for (token, id) in bos.iter().chain(eos.iter()) {
        tokens.insert(token.clone(), json!({"id": token, "ids": [id], "tokens": [token]}));
    }
    let template = json!({
        "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens,
    });
    let processor = serde_json::from_value(template).map_err(|e| format!("post_processor: {e}"))?;
    tokenizer.with_post_processor(Some::<tokenizers::PostProcessorWrapper>(processor));
    Ok(())
}

fn is_byte_level(tokenizer: &Tokenizer) -> bool {
    let parts = json!([tokenizer.get_pre_tokenizer(), tokenizer.get_decoder()]);
    parts.to_string().contains("\"ByteLevel\"")
}

/// The class LlamaTokenizer takes only vocabulary and merges from the file. Its Metaspace puts a
/// space before a text (or before every piece between special tokens) that does not start with one;
/// the Prepend of the file, like sentencepiece, does so always.
fn set_spaces(tokenizer: &mut Tokenizer, scheme: &str) -> Outcome<()> {
    let wrong = |e: serde_json::Error| format!("prepend_scheme: {e}");
    let mut steps = vec![
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if scheme != "never" {
        steps.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let metaspace = json!({
        "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": false,
    });
    let spaces: PreTokenizerWrapper = serde_json::from_value(metaspace).map_err(wrong)?;
    let decoder = json!({"type": "Sequence", "decoders": steps});
    let decoder: tokenizers::DecoderWrapper = serde_json::from_value(decoder).map_err(wrong)?;
    let set = || {
        tokenizer.with_normalizer(None::<NormalizerWrapper>).map_err(|e| e.to_string())?;
        tokenizer.with_pre_tokenizer(Some(spaces)).with_decoder(Some(decoder));
        Ok(())
    };
    caught(set)?
}
