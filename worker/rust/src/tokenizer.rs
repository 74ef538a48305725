//! tokenizer.json through the `tokenizers` crate.

use std::ffi::c_char;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use serde::de::IgnoredAny;
use tokenizers::{Encoding, ModelWrapper, Tokenizer};

use crate::ffi::{
    c_str_in, caught, give_back, guard, handle_in, io_reason, slice_in, slice_out, text_in,
    text_out, Outcome,
};
use crate::limits::{within, Limits};
use crate::tokenizer_check::{check, explain};
use crate::tokenizer_settings;

/// Eight times the largest tokenizer.json in use.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// A file of 33 MB takes 0.7 GB and 2 s.
const LOADING: Limits = Limits { bytes: 8 << 30, seconds: 120 };

pub struct KvsTokenizer {
    tokenizer: Arc<Tokenizer>,
    /// Highest id + 1, added tokens included.
    vocab_size: i64,
    /// A text went beyond its limits: nothing more is encoded.
    stopped: AtomicBool,
}

impl KvsTokenizer {
    pub fn load(path: &str) -> Outcome<Self> {
        Self::from_json(read_bounded(path)?, path)
    }

    /// `path` names the file in errors.
    pub fn from_json(bytes: Vec<u8>, path: &str) -> Outcome<Self> {
        limit_regex_search();
        let wrong = |reason: String| format!("{path} is not a tokenizer of Hugging Face: {reason}");
        let loaded = within(LOADING, move || parse(&bytes))
            .map_err(|stopped| wrong(format!("reading it {stopped}")))?;
        let (tokenizer, vocab_size) = loaded.map_err(wrong)?;
        Ok(Self { tokenizer: Arc::new(tokenizer), vocab_size, stopped: AtomicBool::new(false) })
    }

    pub fn configure(&mut self, settings: &str) -> Outcome<()> {
        let tokenizer = Arc::get_mut(&mut self.tokenizer);
        tokenizer_settings::apply(tokenizer.ok_or("the tokenizer is already in use")?, settings)
    }

    /// Ids, and for each the bytes [start, end) of `text` that it stands for.
    pub fn encode(&self, text: &str, add_special: bool) -> Outcome<(Vec<u32>, Vec<u64>)> {
        self.limited(text, move |tokenizer, text| ids_and_offsets(tokenizer, text, add_special))
    }

    /// How many ids `encode` gives; faster, because places in the text are not kept.
    pub fn count(&self, text: &str, add_special: bool) -> Outcome<usize> {
        self.limited(text, move |tokenizer, text| {
            tokenized(|| tokenizer.encode_fast(text, add_special)).map(|encoding| encoding.len())
        })
    }

    fn limited<T: Send + 'static>(
        &self,
        text: &str,
        work: impl FnOnce(&Tokenizer, &str) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err("the tokenizer went beyond its limits on an earlier text".into());
        }
        let (tokenizer, text) = (self.tokenizer.clone(), text.to_string());
        let limits = Limits {
            bytes: (256 << 20) + text.len().saturating_mul(2048),
            seconds: 30 + text.len() as u64 / 20_000,
        };
        within(limits, move || work(&tokenizer, &text)).map_err(|stopped| {
            self.stopped.store(true, Ordering::Relaxed);
            format!("the text cannot be tokenized: it {stopped}; tokenizer.json is hostile")
        })?
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Outcome<String> {
        self.tokenizer
            .decode(ids, skip_special)
            .map_err(|e| format!("the ids cannot be turned into text: {e}"))
    }

    /// The model's type, and how it treats bytes that no token stands for.
    pub fn kind(&self) -> String {
        let (kind, fallback) = match self.tokenizer.get_model() {
            ModelWrapper::BPE(model) => ("BPE", model.byte_fallback),
            ModelWrapper::WordPiece(_) => ("WordPiece", false),
            ModelWrapper::WordLevel(_) => ("WordLevel", false),
            ModelWrapper::Unigram(model) => ("Unigram", model.byte_fallback()),
        };
        let bytes = match (tokenizer_settings::is_byte_level(&self.tokenizer), fallback) {
            (true, _) => ", byte-level",
            (_, true) => ", byte fallback",
            _ => "",
        };
        format!("{kind}{bytes}")
    }

    pub fn vocab_size(&self) -> i64 {
        self.vocab_size
    }

    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.tokenizer.token_to_id(token)
    }
}

fn read_bounded(path: &str) -> Outcome<Vec<u8>> {
    let cannot = |e: std::io::Error| format!("cannot read {path}: {}", io_reason(&e));
    // Before it is opened: opening a pipe that nobody writes would wait for ever.
    let about = std::fs::metadata(path).map_err(cannot)?;
    if !about.is_file() {
        return Err(format!("cannot read {path}: it is not a file"));
    }
    let file = File::open(path).map_err(cannot)?;
    if about.len() > MAX_FILE_BYTES {
        return Err(format!(
            "{path} has {} bytes; a tokenizer.json has at most {MAX_FILE_BYTES}",
            about.len()
        ));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Outcome<(Tokenizer, i64)> {
    // The crate panics on some files, so the JSON is checked first and a panic has a name.
    serde_json::from_slice::<IgnoredAny>(bytes).map_err(|e| e.to_string())?;
    let mut tokenizer = caught(|| Tokenizer::from_bytes(bytes))
        .and_then(|loaded| loaded.map_err(|e| e.to_string()))
        .map_err(|reason| explain(bytes, &reason))?;
    // A file may carry the truncation and padding of its training run; a prompt is never cut.
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(|e| format!("cannot switch truncation off: {e}"))?;
    let vocab_size = check(&tokenizer)?;
    Ok((tokenizer, vocab_size))
}

fn ids_and_offsets(
    tokenizer: &Tokenizer,
    text: &str,
    add_special: bool,
) -> Outcome<(Vec<u32>, Vec<u64>)> {
    let encoding = tokenized(|| tokenizer.encode(text, add_special))?;
    let offsets = encoding.get_offsets().iter();
    let flat = offsets.flat_map(|&(start, end)| [start as u64, end as u64]).collect();
    Ok((encoding.get_ids().to_vec(), flat))
}

fn tokenized(work: impl FnOnce() -> tokenizers::Result<Encoding>) -> Outcome<Encoding> {
    caught(work)
        .and_then(|done| done.map_err(|e| e.to_string()))
        .map_err(|reason| format!("the text cannot be tokenized: {reason}"))
}

/// Oniguruma gives up after 10 million steps from one place of the text; this bounds the steps over
/// all places of one search, which are unlimited by default.
fn limit_regex_search() {
    extern "C" {
        fn onig_set_retry_limit_in_search(steps: std::ffi::c_ulong) -> std::ffi::c_int;
    }
    // SAFETY: sets one number, which every search reads when it starts.
    unsafe { onig_set_retry_limit_in_search(100_000_000) };
}

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_load(
    path: *const c_char,
    error: *mut *mut c_char,
) -> *mut KvsTokenizer {
    guard(error, std::ptr::null_mut(), || {
        let loaded = KvsTokenizer::load(c_str_in(path, "the path of the tokenizer")?)?;
        Ok(Box::into_raw(Box::new(loaded)))
    })
}

/// # Safety
/// See kvsweep_rs.h; no other call may use the tokenizer at the same time.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_configure(
    tokenizer: *mut KvsTokenizer,
    settings: *const c_char,
    length: usize,
    error: *mut *mut c_char,
) -> i32 {
    guard(error, -1, || {
        let settings = text_in(settings, length, "the settings of the tokenizer")?;
        tokenizer.as_mut().ok_or("the tokenizer is missing (NULL)")?.configure(settings)?;
        Ok(0)
    })
}

/// # Safety
/// `tokenizer` is NULL or a live handle; it is dead afterwards.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_free(tokenizer: *mut KvsTokenizer) {
    guard(std::ptr::null_mut(), (), || {
        if !tokenizer.is_null() {
            drop(Box::from_raw(tokenizer));
        }
        Ok(())
    })
}

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_encode(
    tokenizer: *const KvsTokenizer,
    text: *const c_char,
    length: usize,
    add_special_tokens: i32,
    ids: *mut *mut u32,
    offsets: *mut *mut u64,
    error: *mut *mut c_char,
) -> i64 {
    guard(error, -1, || {
        if ids.is_null() || offsets.is_null() {
            return Err("the place for the ids or offsets is missing (NULL)".into());
        }
        (*ids, *offsets) = (std::ptr::null_mut(), std::ptr::null_mut());
        let text = text_in(text, length, "the text")?;
        let (found, spans) =
            handle_in(tokenizer, "the tokenizer")?.encode(text, add_special_tokens != 0)?;
        let ids_copy = slice_out(&found)?;
        let offsets_copy = slice_out(&spans).inspect_err(|_| give_back(ids_copy))?;
        (*ids, *offsets) = (ids_copy, offsets_copy);
        Ok(found.len() as i64)
    })
}

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_count(
    tokenizer: *const KvsTokenizer,
    text: *const c_char,
    length: usize,
    add_special_tokens: i32,
    error: *mut *mut c_char,
) -> i64 {
    guard(error, -1, || {
        let text = text_in(text, length, "the text")?;
        let count = handle_in(tokenizer, "the tokenizer")?.count(text, add_special_tokens != 0)?;
        Ok(count as i64)
    })
}

/// # Safety
/// Both are NULL or from one call of kvs_tokenizer_encode; they are dead afterwards.
#[no_mangle]
pub unsafe extern "C" fn kvs_ids_free(ids: *mut u32, offsets: *mut u64, _count: i64) {
    give_back(ids);
    give_back(offsets);
}

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_decode(
    tokenizer: *const KvsTokenizer,
    ids: *const u32,
    count: usize,
    skip_special_tokens: i32,
    length: *mut usize,
    error: *mut *mut c_char,
) -> *mut c_char {
    guard(error, std::ptr::null_mut(), || {
        let ids = slice_in(ids, count, "the list of ids")?;
        let text = handle_in(tokenizer, "the tokenizer")?.decode(ids, skip_special_tokens != 0)?;
        if let Some(length) = length.as_mut() {
            *length = text.len();
        }
        text_out(&text)
    })
}

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_kind(
    tokenizer: *const KvsTokenizer,
    error: *mut *mut c_char,
) -> *mut c_char {
    guard(error, std::ptr::null_mut(), || text_out(&handle_in(tokenizer, "the tokenizer")?.kind()))
}

/// # Safety
/// `tokenizer` is NULL (the result is -1) or a live handle.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_vocab_size(tokenizer: *const KvsTokenizer) -> i64 {
    guard(std::ptr::null_mut(), -1, || Ok(handle_in(tokenizer, "the tokenizer")?.vocab_size()))
}

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_token_id(
    tokenizer: *const KvsTokenizer,
    token: *const c_char,
    length: usize,
) -> i64 {
    guard(std::ptr::null_mut(), -1, || {
        let token = text_in(token, length, "the token")?;
        Ok(handle_in(tokenizer, "the tokenizer")?.token_id(token).map_or(-1, i64::from))
    })
}
