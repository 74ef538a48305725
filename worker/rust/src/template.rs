//! Chat templates as Hugging Face renders them: Jinja with trim_blocks and lstrip_blocks, Python's
//! methods and printing, and the extra names raise_exception, strftime_now, tojson.
//!
//! Known differences from Jinja: `~` joins lists and large floats in the form of Rust, tuples print
//! as lists, and of the methods of Python's types only those of `minijinja_contrib::pycompat` exist.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::dates::Date;
use crate::ffi::Outcome;
use crate::limits::{within, Limits, Stopped};
use crate::python::py_str;
use crate::tojson::tojson;

const NAME: &str = "chat_template";
/// A prompt is far smaller; a loop that prints without end stops here before memory is gone.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// Ten times the largest template in use.
const MAX_SOURCE_BYTES: usize = 1 << 20;
const COMPILING: Limits = Limits { bytes: 256 << 20, seconds: 30 };
/// The conversation and the output count as well; `fuel` usually ends a template long before.
const RENDERING: Limits = Limits { bytes: 512 << 20, seconds: 30 };

pub struct KvsTemplate {
    environment: Arc<Environment<'static>>,
    /// A conversation made it go beyond `RENDERING`: nothing more is rendered.
    stopped: AtomicBool,
}

impl KvsTemplate {
    pub fn compile(source: &str) -> Outcome<Self> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(format!(
                "the chat template has {} bytes; at most {MAX_SOURCE_BYTES} are allowed",
                source.len()
            ));
        }
        let source = source.to_string();
        let compiled = within(COMPILING, move || compiled(&source))
            .map_err(|stopped| format!("compiling the chat template {stopped}"))?;
        Ok(Self { environment: Arc::new(compiled?), stopped: AtomicBool::new(false) })
    }

    /// `context` is a JSON object; `fuel` bounds the instructions of the template.
    pub fn render(&self, context: &str, now: &str, fuel: u64) -> Outcome<String> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(
                "the chat template went beyond its limits on an earlier conversation".into()
            );
        }
        let context: serde_json::Map<String, serde_json::Value> = serde_json::from_str(context)
            .map_err(|e| format!("the values for the chat template are not a JSON object: {e}"))?;
        let now = Date::parse(now)?;
        let environment = self.environment.clone();
        let rendered = within(RENDERING, move || rendered(&environment, context, now, fuel));
        rendered.map_err(|stopped| self.give_up(stopped))?
    }

    fn give_up(&self, stopped: Stopped) -> String {
        self.stopped.store(true, Ordering::Relaxed);
        format!("the chat template {stopped}: it grows or loops without end")
    }
}

fn compiled(source: &str) -> Outcome<Environment<'static>> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_unknown_method_callback(unknown_method_callback);
    environment.set_formatter(|out, _state, value| Ok(out.write_str(&py_str(value)?)?));
    environment.add_filter("tojson", |value: &Value, kwargs: Kwargs| tojson(value, kwargs));
    environment.add_filter("string", |value: &Value| py_str(value));
    environment.add_function("raise_exception", raise_exception);
    // Both take a time that is quadratic in the depth of a value, and no template needs them.
    environment.remove_filter("pprint");
    environment.remove_global("debug");
    environment
        .add_template_owned(NAME, without_generation_tags(source))
        .map_err(|e| format!("the chat template has a mistake: {}", sentence(&e)))?;
    Ok(environment)
}

fn rendered(
    environment: &Environment<'static>,
    context: serde_json::Map<String, serde_json::Value>,
    now: Date,
    fuel: u64,
) -> Outcome<String> {
    // A copy shares the compiled template; fuel and clock belong to this call alone.
    let mut environment = environment.clone();
    environment.set_fuel(Some(fuel.min(i64::MAX as u64))); // counted down in a signed number
    environment.add_function("strftime_now", move |format: &str| {
        now.format(format).map_err(|reason| Error::new(ErrorKind::InvalidOperation, reason))
    });
    let mut out = Bounded { bytes: Vec::new() };
    environment
        .get_template(NAME)
        .and_then(|template| template.render_captured_to(context, &mut out).map(|_| ()))
        .map_err(|e| render_error(&e, fuel))?;
    String::from_utf8(out.bytes).map_err(|_| "the chat template wrote invalid UTF-8".into())
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn render_error(error: &Error, fuel: u64) -> String {
    match error.kind() {
        ErrorKind::OutOfFuel => format!(
            "the chat template did not end within {fuel} steps: it loops without end, or the \
             conversation is too long for it"
        ),
        ErrorKind::WriteFailure => {
            format!("the chat template wrote more than {MAX_OUTPUT_BYTES} bytes")
        }
        _ => format!("the chat template refused the conversation: {}", sentence(error)),
    }
}

/// The reason and the line, without minijinja's name of the kind where a reason is given.
fn sentence(error: &Error) -> String {
    let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
    let reason = cut(&reason);
    match error.line() {
        Some(line) => format!("{reason} (line {line} of the template)"),
        None => reason.to_string(),
    }
}

/// A template may raise a text of any length.
fn cut(reason: &str) -> &str {
    reason.char_indices().nth(1000).map_or(reason, |(end, _)| &reason[..end])
}

struct Bounded {
    bytes: Vec<u8>,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(io::Error::from(io::ErrorKind::WriteZero));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `{% generation %}` and `{% endgeneration %}` mark the assistant's words for training and print
/// nothing. They become an empty `{% with %}`: a block with its own names, as in transformers, and
/// the same trimming of white space around the tags.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        rest = &tag[2..];
        out.push_str("{%");
        let Some(end) = rest.find("%}") else { break };
        let inner = &rest[..end];
        let word = inner.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
        match word {
            "generation" => out.push_str(&inner.replace(word, "with")),
            "endgeneration" => out.push_str(&inner.replace(word, "endwith")),
            _ => continue, // `inner` is copied with what follows it
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}
