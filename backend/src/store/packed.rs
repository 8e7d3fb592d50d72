//! JSON as columns store it: long JSON is compressed with Zstandard (RFC 8878) and a dictionary of the common parts of
//! most rows, and written as base64 after a mark that no JSON begins with. Columns stay text, so that both databases
//! and all tools treat them like others.

use std::cell::RefCell;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};

use super::driver_error::DriverError;

/// The prefix of compressed text. Its number is that of the dictionary.
pub(super) const MARK: &str = "z1:";
/// The dictionary, trained on rows of the log, reviews and states of the example flows and of a flow of one node (`zstd
/// --train --maxdict=16384`). It never changes: another dictionary gets another number, and is added.
const DICTIONARY: &[u8] = include_bytes!("packed/1.dict");
/// The compression level: with the dictionary, higher levels take more time and gain little.
const LEVEL: i32 = 1;
/// Texts shorter than this are not compressed, in bytes.
const SHORT: usize = 512;
/// Texts longer than this are not decompressed, in bytes; no stored row comes near it.
const MAX_UNPACKED: usize = 1 << 30;

static ENCODER: LazyLock<EncoderDictionary<'static>> = LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> =
        RefCell::new(Compressor::with_prepared_dictionary(&ENCODER).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> =
        RefCell::new(Decompressor::with_prepared_dictionary(&DECODER).ok());
}

/// Encodes JSON for a column.
pub fn pack(json: String) -> String {
    if json.len() < SHORT {
        return json;
    }
    let packed = COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(json.as_bytes()).ok());
    let Some(packed) = packed else { return json };
    // At most this long: base64 is not padded.
    let length = MARK.len() + packed.len().div_ceil(3) * 4;
    if length >= json.len() {
        return json;
    }
    let mut text = String::with_capacity(length);
    text.push_str(MARK);
    BASE64.encode_string(packed, &mut text);
    text
}

/// Decodes JSON from a column.
///
/// # Errors
///
/// [`DriverError::Packed`] if it is not what [`pack`] wrote.
pub fn unpack(stored: String) -> Result<String, DriverError> {
    let Some(packed) = stored.strip_prefix(MARK) else { return Ok(stored) };
    let unpacked = BASE64.decode(packed).ok().and_then(|packed| decompress(&packed));
    unpacked.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(DriverError::Packed)
}

fn decompress(packed: &[u8]) -> Option<Vec<u8>> {
    let length = zstd::zstd_safe::get_frame_content_size(packed).ok()??;
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_UNPACKED)?;
    DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.as_mut()?.decompress(packed, length).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_comes_back(word in "\\PC{1,40}", times in 0_usize..200) {
            let json = serde_json::json!({ "text": word.repeat(times) }).to_string();
            let stored = pack(json.clone());
            prop_assert!(stored.len() <= json.len());
            prop_assert_eq!(unpack(stored).expect("it was packed"), json);
        }
    }

    #[test]
    fn what_the_first_dictionary_packed_can_be_read_for_ever() {
        let review = r#"{"kind":"approval","status":"pending","title":"Go on?","requested_by":"ada"}"#;
        let json = format!("[{}]", [review; 9].join(","));
        let stored = "z1:KLUv/WOHNrJKtgHtAAAYYSJdCPxbIBpwYgRnJO5tQu0l/STnCNsZWECEBw";
        assert_eq!(unpack(stored.to_owned()).expect("it was packed"), json);
        assert!(pack(json.clone()).len() < json.len() / 4);
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let stored = pack(format!("[{}]", ["\"the same\""; 99].join(",")));
        assert!(stored.starts_with(MARK));
        for damaged in [&stored[..stored.len() / 2], "z1:", "z1:%", "z1:AAAA"] {
            assert!(matches!(unpack(damaged.to_owned()), Err(DriverError::Packed)), "{damaged}");
        }
    }
}
