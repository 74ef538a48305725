//! C interface of `tensors`.

use std::ffi::c_char;

use crate::ffi::{c_str_in, guard, handle_in};
use crate::tensors::{KvsSafetensors, KvsTensor};

/// # Safety
/// See kvsweep_rs.h.
#[no_mangle]
pub unsafe extern "C" fn kvs_safetensors_open(
    path: *const c_char,
    error: *mut *mut c_char,
) -> *mut KvsSafetensors {
    guard(error, std::ptr::null_mut(), || {
        let file = KvsSafetensors::open(c_str_in(path, "the path of the safetensors file")?)?;
        Ok(Box::into_raw(Box::new(file)))
    })
}

/// # Safety
/// `file` is NULL or a live handle; it and all pointers from it are dead afterwards.
#[no_mangle]
pub unsafe extern "C" fn kvs_safetensors_free(file: *mut KvsSafetensors) {
    guard(std::ptr::null_mut(), (), || {
        if !file.is_null() {
            drop(Box::from_raw(file));
        }
        Ok(())
    })
}

/// # Safety
/// `file` is NULL (the result is 0) or a live handle.
#[no_mangle]
pub unsafe extern "C" fn kvs_safetensors_count(file: *const KvsSafetensors) -> usize {
    guard(std::ptr::null_mut(), 0, || Ok(handle_in(file, "the file")?.entries().len()))
}

/// # Safety
/// `file` is NULL or a live handle; `tensor` is NULL or writable.
#[no_mangle]
pub unsafe extern "C" fn kvs_safetensors_tensor(
    file: *const KvsSafetensors,
    index: usize,
    tensor: *mut KvsTensor,
) -> i32 {
    guard(std::ptr::null_mut(), -1, || {
        let file = handle_in(file, "the file")?;
        let entry = file.entries().get(index).ok_or("the index is out of range")?;
        let place = tensor.as_mut().ok_or("the place for the tensor is missing (NULL)")?;
        *place = KvsTensor::of(file, entry);
        Ok(0)
    })
}
