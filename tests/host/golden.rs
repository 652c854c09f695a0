// SPDX-License-Identifier: BSD-3-Clause
//! Comparison with a file under `tests/golden`; `UPDATE_GOLDEN=1` writes it instead.

use std::fs;
use std::path::Path;

/// Compares `text` with the golden file of this name.
pub fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if let Some(line) = (0..).zip(expected.lines().zip(text.lines())).find(|(_, (e, t))| e != t) {
        let (n, (expected, got)) = line;
        panic!("{name}, line {}:\n  expected {expected}\n  got      {got}\nUPDATE_GOLDEN=1 accepts", n + 1);
    }
    assert_eq!(expected.lines().count(), text.lines().count(), "{name} has another length; UPDATE_GOLDEN=1 accepts");
}
