//! Reads Cursor's own settings file, `cli-config.json`.

use std::io::Read;

use engine::agents::cli_config::{CliConfig, parse};

/// Larger files are not read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Reads the file. Blocks, as the disk may be slow.
pub fn read(path: &std::path::Path) -> CliConfig {
    let mut config = CliConfig {
        path: path.display().to_string(),
        ..CliConfig::default()
    };
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return config,
        Err(error) => {
            config.found = true;
            config.problem = Some(error.to_string());
            return config;
        }
    };
    config.found = true;
    // A pipe or a device might never reach EOF.
    if !meta.is_file() {
        config.problem = Some("not a regular file".to_owned());
        return config;
    }
    let mut bytes = Vec::new();
    let read = crate::disk::open_to_read(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(error) => config.problem = Some(error.to_string()),
        Ok(length) if length as u64 > MAX_BYTES => {
            config.problem = Some(format!("larger than {} MiB", MAX_BYTES >> 20));
        }
        Ok(_) => parse(&mut config, &String::from_utf8_lossy(&bytes)),
    }
    config
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_that_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let missing = read(&dir.path().join("cli-config.json"));
        assert_eq!((missing.found, missing.problem), (false, None));
        let directory = read(dir.path());
        assert_eq!(directory.problem.as_deref(), Some("not a regular file"));
        let huge = dir.path().join("huge");
        std::fs::write(&huge, vec![b' '; 5 << 20]).unwrap();
        assert_eq!(read(&huge).problem.as_deref(), Some("larger than 4 MiB"));
        let binary = dir.path().join("binary");
        std::fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
        assert!(read(&binary).problem.is_some());
    }
}
