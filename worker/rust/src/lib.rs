//! The Rust side of kvsweep-worker: tokenizers, chat templates and safetensors behind the C
//! interface of `kvsweep_rs.h`. One static library, because two would clash on Rust's own symbols.
//!
//! Every `extern "C"` function goes through `ffi::guard`: arguments are checked for NULL, panics are
//! caught, and failures come back as one sentence. Memory that crosses the border is from `malloc`.

mod dates;
mod ffi;
mod limits;
mod python;
mod template;
mod template_ffi;
mod tensors;
mod tensors_explain;
mod tensors_ffi;
mod tojson;
mod tokenizer;
mod tokenizer_check;
mod tokenizer_memory;
mod tokenizer_settings;
