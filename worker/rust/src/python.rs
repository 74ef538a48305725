//! `str()` and `repr()` of Python for the values of a template. Jinja prints with them, minijinja
//! with Rust's own forms for lists, dictionaries and large or small floats.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// Deeper nesting is refused: the printers recurse.
pub const MAX_DEPTH: usize = 100;

pub fn too_deep() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("values nested deeper than {MAX_DEPTH}"))
}

/// What `{{ value }}` prints.
pub fn py_str(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map => {
            let mut out = String::new();
            write_repr(&mut out, value, 0)?;
            Ok(out)
        }
        ValueKind::Number if !value.is_integer() => Ok(float_of(value)),
        _ => Ok(value.to_string()),
    }
}

fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            out.push('[');
            for (i, item) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, &item, depth + 1)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, &key, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        _ => out.push_str(&py_str(value)?),
    }
    Ok(())
}

/// `repr` of a string: single quotes unless only single quotes occur inside.
fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() || c == '\u{a0}' || c == '\u{ad}' => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

fn float_of(value: &Value) -> String {
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), py_float)
}

/// `repr(float)`: the shortest digits that read back equal, with an exponent when the decimal point
/// would lie more than 4 places left or more than 16 places right of the first digit.
/// Examples: 0.1, 1e-05, 123456.0, 1e+16.
pub fn py_float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    let scientific = format!("{value:e}"); // shortest digits, "d.ddde-5"
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
