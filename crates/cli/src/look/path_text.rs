//! A path as text, for output that holds text alone.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serializer;

/// The path; a byte that is no UTF-8 becomes `\xff`, so that no two such paths of a folder look the same.
pub fn path_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text += chunk.valid();
        text += &chunk.invalid().escape_ascii().to_string();
    }
    text
}

/// The path for people: on one line, and nothing that a terminal would obey.
pub fn path_line(path: &Path) -> String {
    crate::out::plain(&path_text(path))
}

/// For `serialize_with`: the library's own way fails for what is no UTF-8.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path_text(path))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn every_path_is_text_and_those_of_people_are_one_line() {
        let odd = |bytes: &'static [u8]| Path::new(OsStr::from_bytes(bytes));
        assert_eq!(
            path_text(odd(b"/a \xc3\xbc/\xff\xfe")),
            "/a \u{fc}/\\xff\\xfe"
        );
        assert_ne!(path_text(odd(b"\xff")), path_text(odd(b"\xfe")));
        assert_eq!(path_text(odd(b"a\nb")), "a\nb");
        assert_eq!(path_line(odd(b"a\nb\x1b[1m")), "a\\nb\\u{1b}[1m");
    }
}
