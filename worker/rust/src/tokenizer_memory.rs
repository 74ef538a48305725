//! A tokenizer.json that lies in memory and in no file: what a GGUF file says, in that form.

use std::ffi::c_char;

use crate::ffi::{c_str_in, guard, slice_in};
use crate::tokenizer::KvsTokenizer;

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_tokenizer_from_json(
    json: *const c_char,
    length: usize,
    path: *const c_char,
    error: *mut *mut c_char,
) -> *mut KvsTokenizer {
    guard(error, std::ptr::null_mut(), || {
        let bytes = slice_in(json.cast::<u8>(), length, "the text of the tokenizer")?;
        let path = c_str_in(path, "the path of the tokenizer")?;
        Ok(Box::into_raw(Box::new(KvsTokenizer::from_json(bytes.to_vec(), path)?)))
    })
}
