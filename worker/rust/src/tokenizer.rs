//! tokenizer.json through the `tokenizers` crate.

use std::ffi::c_char;

use serde::de::IgnoredAny;
use tokenizers::Tokenizer;

use crate::ffi::{
    c_str_in, caught, give_back, guard, handle_in, io_reason, slice_in, slice_out, text_in,
    text_out, Outcome,
};

pub struct KvsTokenizer {
    tokenizer: Tokenizer,
    /// Highest id + 1, added tokens included.
    vocab_size: i64,
}

impl KvsTokenizer {
    pub fn load(path: &str) -> Outcome<Self> {
        let bytes =
            std::fs::read(path).map_err(|e| format!("cannot read {path}: {}", io_reason(&e)))?;
        let wrong = |reason: String| format!("{path} is not a tokenizer of Hugging Face: {reason}");
        // The crate panics on some files, so the JSON is checked first and a panic has a name.
        serde_json::from_slice::<IgnoredAny>(&bytes).map_err(|e| wrong(e.to_string()))?;
        let mut tokenizer = caught(|| Tokenizer::from_bytes(&bytes))
            .map_err(wrong)?
            .map_err(|e| wrong(e.to_string()))?;
        // A file may carry the truncation and padding of its training run; a prompt is never cut.
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|e| format!("{path}: cannot switch truncation off: {e}"))?;
        let highest = tokenizer.get_vocab(true).into_values().max();
        let vocab_size = highest.map_or(0, |id| i64::from(id) + 1);
        Ok(Self { tokenizer, vocab_size })
    }

    /// Ids, and for each the bytes [start, end) of `text` that it stands for.
    pub fn encode(&self, text: &str, add_special: bool) -> Outcome<(Vec<u32>, Vec<u64>)> {
        let encoding = self
            .tokenizer
            .encode(text, add_special)
            .map_err(|e| format!("the text cannot be tokenized: {e}"))?;
        let offsets = encoding.get_offsets().iter();
        let flat = offsets.flat_map(|&(start, end)| [start as u64, end as u64]).collect();
        Ok((encoding.get_ids().to_vec(), flat))
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Outcome<String> {
        self.tokenizer
            .decode(ids, skip_special)
            .map_err(|e| format!("the ids cannot be turned into text: {e}"))
    }

    pub fn vocab_size(&self) -> i64 {
        self.vocab_size
    }

    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.tokenizer.token_to_id(token)
    }
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
