//! Which file names and contents are taken over from the sandbox as artifacts.

use std::io::Cursor;

/// Largest artifact that is kept, in bytes.
pub const MAX_ARTIFACT_BYTES: usize = 64 << 20;

/// Largest picture that is kept, in pixels: decoding takes four bytes each in every viewer.
pub const MAX_PIXELS: u64 = 50_000_000;

/// The plain file name under which a file of the sandbox is kept, or why it is refused.
///
/// Folders are dropped (`out/chart.png` → `chart.png`). Names that would mean something to a shell, an editor or
/// `git` are refused and not mended: a hidden file or folder, `..`, an absolute path, control characters.
pub fn artifact_name(wish: &str) -> Result<String, String> {
    if wish.is_empty() || wish.len() > 1024 {
        return Err("the name is empty or too long".to_owned());
    }
    if wish.starts_with('/') || wish.contains('\\') || wish.as_bytes().get(1) == Some(&b':') {
        return Err("the name is not a relative path".to_owned());
    }
    if wish.chars().any(|c| c.is_control() || is_bidi_control(c)) {
        return Err("the name holds control characters".to_owned());
    }
    if wish.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        return Err("the path holds a hidden, empty or parent folder".to_owned());
    }
    let name = wish.rsplit('/').next().unwrap_or(wish);
    if name.len() > 200 {
        return Err("the name is longer than 200 bytes".to_owned());
    }
    if name.ends_with([' ', '.']) || name.contains(['<', '>', ':', '"', '|', '?', '*']) {
        // Not valid on every system that a workspace may be shared with.
        return Ok(name.trim_end_matches([' ', '.']).replace(['<', '>', ':', '"', '|', '?', '*'], "_"));
    }
    Ok(name.to_owned())
}

/// Characters that make text look other than it is; see Unicode's UAX #9.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `name` with `-2`, `-3`, … before its ending.
pub fn numbered(name: &str, number: u32) -> String {
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{number}.{ending}"),
        _ => format!("{name}-{number}"),
    }
}

/// The MIME type of `data` by its contents; the name only chooses among text formats.
/// An error says why the contents are refused: a picture that is not one, or has too many pixels.
pub fn checked_mime(name: &str, data: &[u8]) -> Result<&'static str, String> {
    if data.len() > MAX_ARTIFACT_BYTES {
        return Err(format!("it has {} bytes, more than {MAX_ARTIFACT_BYTES}", data.len()));
    }
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    if let Ok(format) = image::guess_format(data) {
        let mime = match format {
            image::ImageFormat::Png => "image/png",
            image::ImageFormat::Jpeg => "image/jpeg",
            image::ImageFormat::Gif => "image/gif",
            image::ImageFormat::WebP => "image/webp",
            _ => "application/octet-stream",
        };
        if mime != "application/octet-stream" {
            let size = image::ImageReader::with_format(Cursor::new(data), format).into_dimensions();
            return match size {
                Ok((width, height)) if u64::from(width) * u64::from(height) <= MAX_PIXELS => Ok(mime),
                Ok((width, height)) => Err(format!("the picture has {width} × {height} pixels, more than {MAX_PIXELS}")),
                Err(error) => Err(format!("the picture is broken: {error}")),
            };
        }
    }
    if matches!(ending.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp") {
        return Err(format!("it is named .{ending} but its contents are no such picture"));
    }
    if data.starts_with(b"%PDF-") {
        return Ok("application/pdf");
    }
    if data.starts_with(b"PAR1") {
        return Ok("application/vnd.apache.parquet");
    }
    if data.starts_with(b"PK\x03\x04") {
        return Ok(match ending.as_str() {
            "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            _ => "application/zip",
        });
    }
    if std::str::from_utf8(data).is_ok() && !data.contains(&0) {
        return Ok(match ending.as_str() {
            "csv" => "text/csv",
            "tsv" => "text/tab-separated-values",
            "html" | "htm" => "text/html",
            "svg" => "image/svg+xml",
            "md" => "text/markdown",
            "json" => "application/json",
            "ipynb" => "application/x-ipynb+json",
            _ => "text/plain",
        });
    }
    Ok("application/octet-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_kept_and_folders_dropped() {
        assert_eq!(artifact_name("chart.png").as_deref(), Ok("chart.png"));
        assert_eq!(artifact_name("out/图表 1.png").as_deref(), Ok("图表 1.png"));
    }

    #[test]
    fn names_that_could_do_harm_are_refused() {
        for name in [
            "../x.png",
            "/etc/passwd",
            "a\0b",
            "a\nb",
            ".git/hooks/pre-commit",
            ".vscode/settings.json",
            "a//b",
            "C:x",
            "a\\b",
            "\u{202e}gnp.exe",
        ] {
            assert!(artifact_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn collisions_are_numbered_before_the_ending() {
        assert_eq!(numbered("chart.png", 2), "chart-2.png");
        assert_eq!(numbered("README", 3), "README-3");
    }

    #[test]
    fn a_picture_is_known_by_its_contents() {
        assert!(checked_mime("x.png", b"<svg onload=alert(1)>").is_err());
        assert_eq!(checked_mime("x.svg", b"<svg/>"), Ok("image/svg+xml"));
        assert_eq!(checked_mime("x.bin", &[0, 1, 2, 255]), Ok("application/octet-stream"));
    }
}
