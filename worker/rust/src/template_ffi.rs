//! C interface of `template`.

use std::ffi::c_char;

use crate::ffi::{c_str_in, guard, handle_in, text_in, text_out};
use crate::template::KvsTemplate;

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_template_compile(
    source: *const c_char,
    length: usize,
    error: *mut *mut c_char,
) -> *mut KvsTemplate {
    guard(error, std::ptr::null_mut(), || {
        let compiled = KvsTemplate::compile(text_in(source, length, "the chat template")?)?;
        Ok(Box::into_raw(Box::new(compiled)))
    })
}

/// # Safety
/// `compiled` is NULL or a live handle; it is dead afterwards.
#[no_mangle]
pub unsafe extern "C" fn kvs_template_free(compiled: *mut KvsTemplate) {
    guard(std::ptr::null_mut(), (), || {
        if !compiled.is_null() {
            drop(Box::from_raw(compiled));
        }
        Ok(())
    })
}

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_template_render(
    compiled: *const KvsTemplate,
    context: *const c_char,
    context_length: usize,
    now: *const c_char,
    fuel: u64,
    length: *mut usize,
    error: *mut *mut c_char,
) -> *mut c_char {
    guard(error, std::ptr::null_mut(), || {
        let context = text_in(context, context_length, "the values for the chat template")?;
        let now = c_str_in(now, "the date for the chat template")?;
        let text = handle_in(compiled, "the chat template")?.render(context, now, fuel)?;
        if let Some(length) = length.as_mut() {
            *length = text.len();
        }
        text_out(&text)
    })
}
