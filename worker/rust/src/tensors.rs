//! A safetensors file: mapped, and its header checked before anything is handed out.

use std::ffi::{c_char, CString};
use std::fs::File;

use memmap2::Mmap;
use safetensors::SafeTensors;

use crate::ffi::{io_reason, Outcome};
use crate::tensors_explain::explain;

/// Where one tensor lies, in the words of the C interface.
pub struct Entry {
    pub name: CString,
    pub dtype: CString,
    pub shape: Vec<u64>,
    begin: usize,
    end: usize,
}

pub struct KvsSafetensors {
    map: Mmap,
    /// By position in the file.
    entries: Vec<Entry>,
}

impl KvsSafetensors {
    pub fn open(path: &str) -> Outcome<Self> {
        let map = map_file(path)?;
        let entries = read_entries(&map).map_err(|reason| format!("{path}: {reason}"))?;
        Ok(Self { map, entries })
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn data(&self, entry: &Entry) -> &[u8] {
        &self.map[entry.begin..entry.end]
    }
}

fn map_file(path: &str) -> Outcome<Mmap> {
    let cannot = |e: std::io::Error| format!("cannot read {path}: {}", io_reason(&e));
    // Before it is opened: opening a pipe that nobody writes would wait for ever.
    let about = std::fs::metadata(path).map_err(cannot)?;
    if !about.is_file() {
        return Err(format!("cannot read {path}: it is not a file"));
    }
    let file = File::open(path).map_err(cannot)?;
    if about.len() == 0 {
        return Err(format!("{path} is empty; a safetensors file has at least 10 bytes"));
    }
    // SAFETY: read only. Someone who cuts the file short while it is mapped kills the process, as
    // with every mapped file; model folders are replaced as a whole, never written in place.
    unsafe { Mmap::map(&file) }.map_err(cannot)
}

fn read_entries(bytes: &[u8]) -> Outcome<Vec<Entry>> {
    let (header, metadata) =
        SafeTensors::read_metadata(bytes).map_err(|error| explain(bytes, &error))?;
    let data_start = std::mem::size_of::<u64>() + header;
    let mut entries = Vec::new();
    for name in metadata.offset_keys() {
        let info = metadata.info(&name).ok_or_else(|| format!("tensor '{name}' has no entry"))?;
        let (begin, end) = info.data_offsets;
        let c_name = CString::new(name.as_str());
        entries.push(Entry {
            name: c_name.map_err(|_| format!("the name {name:?} contains a zero byte"))?,
            dtype: CString::new(info.dtype.to_string()).map_err(|e| e.to_string())?,
            shape: info.shape.iter().map(|&n| n as u64).collect(),
            begin: data_start + begin,
            end: data_start + end,
        });
    }
    Ok(entries)
}

/// One tensor as kvsweep_rs.h declares it.
#[repr(C)]
pub struct KvsTensor {
    name: *const c_char,
    dtype: *const c_char,
    shape: *const u64,
    rank: usize,
    data: *const u8,
    bytes: u64,
}

impl KvsTensor {
    pub fn of(file: &KvsSafetensors, entry: &Entry) -> Self {
        let data = file.data(entry);
        Self {
            name: entry.name.as_ptr(),
            dtype: entry.dtype.as_ptr(),
            shape: entry.shape.as_ptr(),
            rank: entry.shape.len(),
            data: data.as_ptr(),
            bytes: data.len() as u64,
        }
    }
}
