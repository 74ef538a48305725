//! What is wrong with a safetensors file, naming the tensor and the field.
//!
//! The `safetensors` crate decides whether a file is sound; its errors rarely say where. This file
//! only looks for the words, after a refusal.

use safetensors::{Dtype, SafeTensorError};
use serde_json::{Map, Value};

use crate::ffi::Outcome;

const LENGTH_BYTES: usize = 8;
/// The limit of the `safetensors` crate.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// One sentence about `bytes`, which the crate refused with `error`.
pub fn explain(bytes: &[u8], error: &SafeTensorError) -> String {
    match find_fault(bytes) {
        Err(fault) => fault,
        Ok(()) => format!("not a sound safetensors file: {error}"),
    }
}

fn find_fault(bytes: &[u8]) -> Outcome<()> {
    let header = header_of(bytes)?;
    let text = std::str::from_utf8(header)
        .map_err(|e| format!("the header is not UTF-8 at byte {}", e.valid_up_to()))?;
    let tensors: Map<String, Value> =
        serde_json::from_str(text).map_err(|e| format!("the header is not a JSON object: {e}"))?;
    let data_bytes = (bytes.len() - LENGTH_BYTES - header.len()) as u64;
    let mut spans = Vec::new();
    for (name, entry) in tensors.iter().filter(|(name, _)| *name != "__metadata__") {
        spans.push(check_entry(name, entry, data_bytes)?);
    }
    check_cover(spans, data_bytes)
}

fn header_of(bytes: &[u8]) -> Outcome<&[u8]> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        return Err(format!(
            "the file is {} bytes long, which is too short for a safetensors file",
            bytes.len()
        ));
    };
    let length = u64::from_le_bytes(*length);
    if length > rest.len() as u64 {
        return Err(format!(
            "the file says that its header has {length} bytes, but only {} follow: it is cut short \
             or not a safetensors file",
            rest.len()
        ));
    }
    if length > MAX_HEADER_BYTES {
        return Err(format!("the header has {length} bytes; at most {MAX_HEADER_BYTES} are read"));
    }
    Ok(&rest[..length as usize])
}

/// A tensor's place in the data: (begin, end, name).
type Span<'a> = (u64, u64, &'a str);

fn check_entry<'a>(name: &'a str, entry: &Value, data_bytes: u64) -> Outcome<Span<'a>> {
    let dtype: Dtype = serde_json::from_value(entry["dtype"].clone())
        .map_err(|_| format!("tensor '{name}' has the unknown dtype {}", entry["dtype"]))?;
    let shape = whole_numbers(&entry["shape"]).ok_or_else(|| {
        format!("tensor '{name}' has the shape {}, not a list of sizes", entry["shape"])
    })?;
    let offsets = whole_numbers(&entry["data_offsets"]);
    let Some([begin, end]) = offsets.as_deref() else {
        let got = &entry["data_offsets"];
        return Err(format!("tensor '{name}' has data_offsets {got}, not [begin, end]"));
    };
    if begin > end {
        return Err(format!(
            "tensor '{name}' has data_offsets [{begin}, {end}]: it ends before it begins"
        ));
    }
    if *end > data_bytes {
        return Err(format!(
            "tensor '{name}' ends at byte {end} of the data, but the file holds {data_bytes}: it is \
             cut short, or data_offsets is wrong"
        ));
    }
    let size = byte_size(&shape, dtype);
    if size != Some(end - begin) {
        let needs = size.map_or("more than 2^64 bits".into(), |n| format!("{n} bytes"));
        return Err(format!(
            "tensor '{name}' of shape {shape:?} and dtype {dtype} needs {needs}, but data_offsets \
             gives it {}",
            end - begin
        ));
    }
    Ok((*begin, *end, name))
}

fn whole_numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}

fn byte_size(shape: &[u64], dtype: Dtype) -> Option<u64> {
    let elements = shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n))?;
    let bits = elements.checked_mul(dtype.bitsize() as u64)?;
    (bits % 8 == 0).then_some(bits / 8)
}

/// The tensors must lie one after another and end with the file.
fn check_cover(mut spans: Vec<Span>, data_bytes: u64) -> Outcome<()> {
    spans.sort_unstable();
    let mut before: Span = (0, 0, "the header");
    for span in spans {
        if span.0 < before.1 {
            return Err(format!(
                "tensors '{}' [{}, {}] and '{}' [{}, {}] overlap",
                before.2, before.0, before.1, span.2, span.0, span.1
            ));
        }
        if span.0 > before.1 {
            return Err(format!(
                "bytes {} to {} of the data, before tensor '{}', belong to no tensor",
                before.1, span.0, span.2
            ));
        }
        before = span;
    }
    match data_bytes - before.1 {
        0 => Ok(()),
        rest => Err(format!("the last {rest} bytes of the file belong to no tensor")),
    }
}
