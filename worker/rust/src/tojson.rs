//! The `tojson` filter as Hugging Face defines it: Python's `json.dumps` with `ensure_ascii=False`,
//! and the arguments ensure_ascii, indent, separators and sort_keys.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::python::{py_float, too_deep, MAX_DEPTH};

/// More than this many spaces of indentation per level is refused.
const MAX_INDENT: usize = 64;

struct Style {
    ensure_ascii: bool,
    /// White space of one level; None: everything on one line.
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

pub fn tojson(value: &Value, kwargs: Kwargs) -> Result<Value, Error> {
    let style = Style::from_arguments(&kwargs)?;
    kwargs.assert_all_used()?;
    let mut out = String::new();
    style.write(&mut out, value, 0)?;
    Ok(Value::from(out))
}

impl Style {
    fn from_arguments(kwargs: &Kwargs) -> Result<Self, Error> {
        let indent = match kwargs.get::<Option<Value>>("indent")? {
            None => None,
            Some(value) if value.is_none() => None,
            Some(value) => Some(indent_text(&value)?),
        };
        let separators: Option<Vec<String>> = kwargs.get("separators")?;
        let (item, key) = match separators.as_deref() {
            None if indent.is_some() => (",", ": "),
            None => (", ", ": "),
            Some([item, key]) => (item.as_str(), key.as_str()),
            Some(_) => return Err(wrong("tojson wants two separators".into())),
        };
        Ok(Self {
            ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
            item_separator: item.to_string(),
            key_separator: key.to_string(),
            sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
            indent,
        })
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value)?),
            ValueKind::String => self.write_string(out, value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.write_list(out, value, depth)?,
            ValueKind::Map => self.write_map(out, value, depth)?,
            kind => return Err(wrong(format!("a value of kind {kind} cannot be written as JSON"))),
        }
        Ok(())
    }

    fn write_list(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        let items: Vec<Value> = value.try_iter()?.collect();
        out.push('[');
        for (i, item) in items.iter().enumerate() {
            self.begin_item(out, i, depth);
            self.write(out, item, depth + 1)?;
        }
        self.end_items(out, items.len(), depth);
        out.push(']');
        Ok(())
    }

    fn write_map(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        out.push('{');
        for (i, key) in keys.iter().enumerate() {
            self.begin_item(out, i, depth);
            self.write_string(out, &key_text(key)?);
            out.push_str(&self.key_separator);
            self.write(out, &value.get_item(key)?, depth + 1)?;
        }
        self.end_items(out, keys.len(), depth);
        out.push('}');
        Ok(())
    }

    fn begin_item(&self, out: &mut String, index: usize, depth: usize) {
        if index > 0 {
            out.push_str(&self.item_separator);
        }
        self.new_line(out, depth + 1);
    }

    fn end_items(&self, out: &mut String, count: usize, depth: usize) {
        if count > 0 {
            self.new_line(out, depth);
        }
    }

    fn new_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    }

    fn write_string(&self, out: &mut String, text: &str) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && c > '~') => write_escape(out, c),
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn indent_text(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_string());
    }
    let spaces = i64::try_from(value.clone())?.max(0) as usize; // Python: below 0 counts as 0
    match spaces <= MAX_INDENT {
        true => Ok(" ".repeat(spaces)),
        false => Err(wrong(format!("tojson indents by at most {MAX_INDENT} spaces, not {spaces}"))),
    }
}

fn number(value: &Value) -> Result<String, Error> {
    if value.is_integer() {
        return Ok(value.to_string());
    }
    let float = f64::try_from(value.clone())?;
    Ok(match float {
        f if f.is_nan() => "NaN".to_string(),
        f if f.is_infinite() => if f > 0.0 { "Infinity" } else { "-Infinity" }.to_string(),
        f => py_float(f),
    })
}

/// Python turns the keys true, None and 1 into "true", "null" and "1".
fn key_text(key: &Value) -> Result<String, Error> {
    Ok(match key.kind() {
        ValueKind::String => key.as_str().unwrap_or_default().to_string(),
        ValueKind::Bool => key.is_true().to_string(),
        ValueKind::None => "null".to_string(),
        ValueKind::Number => number(key)?,
        kind => return Err(wrong(format!("a key of kind {kind} cannot be written as JSON"))),
    })
}

fn write_escape(out: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}
