//! Reads protobuf messages field by field, without a schema: what is not known is skipped.

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    /// A number.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Bytes, a text or a message.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

/// The fields of a message in order; None when it is none.
pub fn fields(mut message: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let field = match tag & 7 {
            0 => Field::Varint(varint(&mut message)?),
            1 => Field::Fixed64(u64::from_le_bytes(take(&mut message, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                Field::Bytes(take(&mut message, length)?)
            }
            5 => Field::Fixed32(u32::from_le_bytes(take(&mut message, 4)?.try_into().ok()?)),
            _ => return None,
        };
        let number = tag >> 3;
        if number == 0 {
            return None;
        }
        found.push((number, field));
    }
    Some(found)
}

/// The last field of a number that is bytes.
pub fn bytes<'a>(fields: &[(u64, Field<'a>)], number: u64) -> Option<&'a [u8]> {
    fields.iter().rev().find_map(|(of, field)| match field {
        Field::Bytes(bytes) if *of == number => Some(*bytes),
        _ => None,
    })
}

/// The last field of a number that is a number.
pub fn number(fields: &[(u64, Field<'_>)], number: u64) -> Option<u64> {
    fields.iter().rev().find_map(|(of, field)| match field {
        Field::Varint(value) if *of == number => Some(*value),
        _ => None,
    })
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (piece, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(piece)
}

fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let part = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_of_all_kinds_are_read_and_the_last_counts() {
        let message = [
            0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x08, 0x01, 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0,
            0, 0, 0, 0, 0,
        ];
        let fields = fields(&message).unwrap();
        assert_eq!(number(&fields, 1), Some(1));
        assert_eq!(bytes(&fields, 2), Some(b"hi".as_slice()));
        assert_eq!(fields[3], (3, Field::Fixed32(1)));
        assert_eq!(fields[4], (4, Field::Fixed64(2)));
        assert_eq!(bytes(&fields, 9), None);
    }

    #[test]
    fn what_is_no_message_is_none() {
        for broken in [
            &[0x08][..],
            &[0x12, 0x05, b'x'],
            &[0x0b],
            &[0x00, 0x01],
            &[
                0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
            ],
        ] {
            assert_eq!(fields(broken), None, "{broken:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = fields(&bytes);
        }
    }
}
