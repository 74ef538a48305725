//! Crossing the border: arguments in, results and messages out.

use std::any::Any;
use std::ffi::{c_char, c_void, CStr};
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// A sentence for a person.
pub type Outcome<T> = Result<T, String>;

/// Runs `body`; on an error or a panic sets `*error` (when `error` is not NULL) and returns
/// `failed`. On success `*error` is NULL.
///
/// # Safety
/// `error` is NULL or points to a writable pointer.
pub unsafe fn guard<T>(error: *mut *mut c_char, failed: T, body: impl FnOnce() -> Outcome<T>) -> T {
    if !error.is_null() {
        *error = std::ptr::null_mut();
    }
    match caught(body).unwrap_or_else(|panic| Err(format!("internal error: {panic}"))) {
        Ok(value) => value,
        Err(message) => {
            if !error.is_null() {
                // NULL when memory is exhausted: the caller still sees `failed`.
                *error =
                    text_out(&message.replace('\0', "\u{fffd}")).unwrap_or(std::ptr::null_mut());
            }
            failed
        }
    }
}

/// The value of `body`, or what it panicked with.
pub fn caught<T>(body: impl FnOnce() -> T) -> Outcome<T> {
    static QUIET: Once = Once::new();
    // Every panic ends here and becomes a message for the caller, so none is printed as well.
    QUIET.call_once(|| set_hook(Box::new(|_| {})));
    // After a panic nothing that `body` touched is used again: handles are immutable.
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| panic_text(panic.as_ref()).to_string())
}

/// The reason alone, without Rust's "(os error 2)".
pub fn io_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a message",
    }
}

/// The bytes `[length]` as UTF-8. NULL stands for the empty text when `length` is 0.
///
/// # Safety
/// `text` is NULL or points to `length` readable bytes that outlive the result.
pub unsafe fn text_in<'a>(text: *const c_char, length: usize, what: &str) -> Outcome<&'a str> {
    let bytes = slice_in(text.cast::<u8>(), length, what)?;
    std::str::from_utf8(bytes).map_err(|e| {
        format!("{what} is not valid UTF-8: byte {} cannot stand there", e.valid_up_to())
    })
}

/// A C string as UTF-8.
///
/// # Safety
/// `text` is NULL or a terminated string that outlives the result.
pub unsafe fn c_str_in<'a>(text: *const c_char, what: &str) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(format!("{what} is missing (NULL)"));
    }
    CStr::from_ptr(text).to_str().map_err(|_| format!("{what} is not valid UTF-8"))
}

/// # Safety
/// `items` is NULL or points to `count` readable items that outlive the result.
pub unsafe fn slice_in<'a, T>(items: *const T, count: usize, what: &str) -> Outcome<&'a [T]> {
    match (items.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(format!("{what} is missing (NULL)")),
        _ => Ok(std::slice::from_raw_parts(items, count)),
    }
}

/// # Safety
/// `handle` is NULL or a live handle that outlives the result.
pub unsafe fn handle_in<'a, T>(handle: *const T, what: &str) -> Outcome<&'a T> {
    handle.as_ref().ok_or_else(|| format!("{what} is missing (NULL)"))
}

/// A terminated copy from `malloc`; `kvs_string_free` gives it back.
pub fn text_out(text: &str) -> Outcome<*mut c_char> {
    let copy: *mut u8 = allocate(text.len() + 1)?;
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
        *copy.add(text.len()) = 0;
    }
    Ok(copy.cast())
}

/// A copy from `malloc`, never NULL, also when `items` is empty.
pub fn slice_out<T: Copy>(items: &[T]) -> Outcome<*mut T> {
    let copy: *mut T = allocate(items.len())?;
    unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), copy, items.len()) };
    Ok(copy)
}

fn allocate<T>(count: usize) -> Outcome<*mut T> {
    let bytes = count.max(1).checked_mul(std::mem::size_of::<T>());
    let memory = bytes.map_or(std::ptr::null_mut(), |bytes| unsafe { malloc(bytes) });
    match memory.is_null() {
        true => Err(format!("out of memory: {count} items were asked for")),
        false => Ok(memory.cast()),
    }
}

/// # Safety
/// `memory` is NULL or from `text_out` / `slice_out` and not yet given back.
pub unsafe fn give_back<T>(memory: *mut T) {
    free(memory.cast());
}

/// # Safety
/// `text` is NULL or a string of this library, not yet given back.
#[no_mangle]
pub unsafe extern "C" fn kvs_string_free(text: *mut c_char) {
    give_back(text);
}
