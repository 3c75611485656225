//! Programs that are given a password with one letter, which for others means something else.

/// Where the password stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Nowhere.
    None,
    /// `-p VALUE`.
    Apart,
    /// `-pVALUE`; apart, it is something else.
    Attached,
}

struct Program {
    name: &'static str,
    letter: u8,
    way: Way,
    /// Only behind the word `login`.
    login: bool,
}

const fn program(name: &'static str, letter: u8, way: Way) -> Program {
    Program {
        name,
        letter,
        way,
        login: false,
    }
}

const fn login(name: &'static str) -> Program {
    Program {
        name,
        letter: b'p',
        way: Way::Apart,
        login: true,
    }
}

static PROGRAMS: [Program; 33] = [
    login("docker"),
    login("podman"),
    login("nerdctl"),
    login("buildah"),
    login("skopeo"),
    login("helm"),
    login("oras"),
    login("az"),
    login("oc"),
    login("cf"),
    login("argocd"),
    program("sshpass", b'p', Way::Apart),
    program("mongo", b'p', Way::Apart),
    program("mongosh", b'p', Way::Apart),
    program("mongodump", b'p', Way::Apart),
    program("mongorestore", b'p', Way::Apart),
    program("sqlcmd", b'P', Way::Apart),
    program("zip", b'P', Way::Apart),
    program("unzip", b'P', Way::Apart),
    program("redis-cli", b'a', Way::Apart),
    program("ldapsearch", b'w', Way::Apart),
    program("ldapadd", b'w', Way::Apart),
    program("ldapmodify", b'w', Way::Apart),
    program("mysql", b'p', Way::Attached),
    program("mysqldump", b'p', Way::Attached),
    program("mysqladmin", b'p', Way::Attached),
    program("mysqlimport", b'p', Way::Attached),
    program("mariadb", b'p', Way::Attached),
    program("mariadb-dump", b'p', Way::Attached),
    program("mariadb-admin", b'p', Way::Attached),
    program("7z", b'p', Way::Attached),
    program("7za", b'p', Way::Attached),
    program("7zz", b'p', Way::Attached),
];

/// Whether a letter is one of theirs.
pub fn has(letter: u8) -> bool {
    matches!(letter, b'p' | b'P' | b'a' | b'w')
}

/// What the words of a command, read one by one, run.
#[derive(Clone, Copy, Default)]
pub struct Invocation {
    program: Option<&'static Program>,
    login: bool,
}

impl Invocation {
    /// Reads the next word.
    pub fn word(&mut self, word: &[u8]) {
        /// A longer one is no program of ours.
        const MAX_BYTES: usize = 256;
        self.login |= word == b"login";
        if word.len() > MAX_BYTES {
            return;
        }
        let name = word.rsplit(|b| *b == b'/').next().unwrap_or(word);
        let found = PROGRAMS.iter().find(|one| one.name.as_bytes() == name);
        self.program = found.or(self.program);
    }

    /// Where the password stands that an option of this letter gives.
    pub fn way(&self, letter: u8) -> Way {
        let program = self
            .program
            .filter(|one| one.letter == letter && (!one.login || self.login));
        program.map_or(Way::None, |one| one.way)
    }
}
