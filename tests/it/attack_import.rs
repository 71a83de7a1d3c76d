//! Attacks by what is imported: an archive, a folder or a repository brings no more in than plain files below its folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::process::gatekey;

/// What stands outside and must never come.
const SECRET: &str = "s3cret-of-the-house";
const SKILL: &str = "---\nname: found\ndescription: Finds what was lost.\n---\nLook around.\n";

struct Import {
    scratch: tempfile::TempDir,
}

impl Import {
    fn new() -> Self {
        let import = Self { scratch: tempfile::tempdir().unwrap() };
        let config =
            "version = 1\nskills = [{ path = \"imported\", trust = \"untrusted\" }]\nsearch.encoder = \"off\"\n";
        fs::write(import.path("gatekey.toml"), config).unwrap();
        import
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Makes an archive by a few lines of Python, which name it `out`, and imports it.
    fn run(&self, name: &str, lines: &str) -> (i32, String) {
        let out = self.path(name);
        let program = format!(
            "import io, sys, struct, gzip, zlib, tarfile, zipfile\nout = sys.argv[1]\nSKILL = {SKILL:?}\n{lines}"
        );
        assert!(Command::new("python3").args(["-c", &program]).arg(&out).status().unwrap().success());
        self.import(&out)
    }

    fn import(&self, source: &Path) -> (i32, String) {
        let mut command = gatekey();
        command.env("XDG_DATA_HOME", self.path("home")).current_dir(self.scratch.path()).stdin(Stdio::null());
        let output = command.args(["skills", "import", "--yes"]).arg(source).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code().unwrap(), said)
    }

    /// Every file below the scratch folder that no test put there, from there.
    fn written(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.scratch.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    let path = entry.path().strip_prefix(self.scratch.path()).unwrap().to_string_lossy().into_owned();
                    found.push(path);
                }
            }
        }
        found.retain(|path| path.starts_with("imported") || path.contains("evil"));
        found.sort();
        found
    }
}

/// One tar entry after another: name and what else Python says of it.
fn tar(entries: &str) -> String {
    format!(
        "t = tarfile.open(out, 'w', format=tarfile.PAX_FORMAT)\ndef add(name, data=SKILL.encode(), **more):\n    i = tarfile.TarInfo(name); i.size = len(data)\n    for k, v in more.items(): setattr(i, k, v)\n    t.addfile(i, io.BytesIO(data))\n{entries}\nt.close()"
    )
}

#[test]
fn a_tar_whose_extended_header_names_another_path() {
    for path in ["../evil/SKILL.md", "/tmp/evil/SKILL.md", "found/../../evil/SKILL.md", "found\\\\..\\\\evil"] {
        let import = Import::new();
        let (code, said) = import.run(
            "t.tar",
            &tar(&format!("add('found/SKILL.md')\nadd('found/fine.md', pax_headers={{'path': '{path}'}})")),
        );
        assert_eq!((code, import.written()), (3, Vec::new()), "{path}: {said}");
        // The older way to a long name.
        let import = Import::new();
        let long = format!(
            "t = tarfile.open(out, 'w', format=tarfile.GNU_FORMAT)\nd = SKILL.encode()\nl = tarfile.TarInfo('././@LongLink'); l.type = b'L'; n = b'{path}' + bytes(1); l.size = len(n); t.addfile(l, io.BytesIO(n))\nfor n in ('found/fine.md',):\n    i = tarfile.TarInfo(n); i.size = len(d); t.addfile(i, io.BytesIO(d))\nt.close()"
        );
        let (code, said) = import.run("l.tar", &long);
        assert_eq!((code, import.written()), (3, Vec::new()), "{path}: {said}");
    }
}

#[test]
fn a_tar_with_devices_pipes_and_links() {
    let import = Import::new();
    let entries = "add('found/SKILL.md')\nadd('found/null', b'', type=tarfile.CHRTYPE, devmajor=1, devminor=3)\nadd('found/disk', b'', type=tarfile.BLKTYPE, devmajor=8, devminor=0)\nadd('found/pipe', b'', type=tarfile.FIFOTYPE)\nadd('found/link', b'', type=tarfile.SYMTYPE, linkname='/etc/passwd')\nadd('found/hard', b'', type=tarfile.LNKTYPE, linkname='../../gatekey.toml')\nadd('found/run.sh', b'#!/bin/sh', mode=0o6755)";
    let (code, said) = import.run("t.tar", &tar(entries));
    assert_eq!(
        (code, import.written()),
        (0, vec!["imported/found/SKILL.md".into(), "imported/found/run.sh".into()]),
        "{said}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(import.path("imported/found/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7111, 0, "nobody can run it: {mode:o}");
    }
}

#[test]
fn a_tar_that_brings_one_file_twice() {
    for second in ["found/SKILL.md", "./found/SKILL.md", "FOUND/skill.MD", "found/SKILL.md/x", "found/./SKILL.md"] {
        let import = Import::new();
        let (code, said) = import.run("t.tar", &tar(&format!("add('found/SKILL.md')\nadd('{second}', b'Obey.')")));
        assert_eq!((code, import.written()), (3, Vec::new()), "{second}: {said}");
    }
}

#[test]
fn archives_that_unpack_to_more_than_there_is_room_for() {
    for (name, lines) in [
        // Ten gigabytes of zeros in a few kilobytes, a gzip stream behind the other.
        ("a.tar.gz", "z = gzip.compress(bytes(1 << 24))\nopen(out, 'wb').write(z * 640)"),
        // One that goes on behind the end of the tar in it.
        (
            "b.tar.gz",
            "b = io.BytesIO(); t = tarfile.open(fileobj=b, mode='w'); i = tarfile.TarInfo('found/SKILL.md'); i.size = 9 << 30; b.write(i.tobuf())\nopen(out, 'wb').write(gzip.compress(b.getvalue()[:512]) + gzip.compress(bytes(1 << 24)) * 640)",
        ),
        // Many files that are all the same bytes of the archive.
        (
            "c.zip",
            "z = zipfile.ZipFile(out, 'w', 8)\nz.writestr('found/SKILL.md', SKILL)\nz.writestr('found/big', bytes(7 << 20))\nz.close()\nd = open(out, 'rb').read(); at = d.index(b'PK\\x01\\x02', d.index(b'PK\\x01\\x02') + 4); end = d.index(b'PK\\x05\\x06')\nfirst = d[d.index(b'PK\\x01\\x02'):at]; e = d[at:end]\nmore = b''.join(e.replace(b'found/big', b'found/%03d' % n) for n in range(100))\ntail = struct.pack('<4s4H2LH', b'PK\\x05\\x06', 0, 0, 101, 101, len(first + more), d.index(b'PK\\x01\\x02'), 0)\nopen(out, 'wb').write(d[:d.index(b'PK\\x01\\x02')] + first + more + tail)",
        ),
        // An archive in an archive is a file, and no more is unpacked.
        (
            "d.zip",
            "i = io.BytesIO(); z = zipfile.ZipFile(i, 'w', 8); z.writestr('x', bytes(300 << 20)); z.close()\nz = zipfile.ZipFile(out, 'w', 8)\nfor n in range(4097): z.writestr('found/%d.zip' % n, i.getvalue()[:10])\nz.close()",
        ),
    ] {
        let import = Import::new();
        let begun = Instant::now();
        let (code, said) = import.run(name, lines);
        assert_eq!((code, import.written()), (3, Vec::new()), "{name}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{name} took {:?}", begun.elapsed());
    }
}

#[test]
fn a_zip_whose_two_lists_of_names_differ() {
    // Names of the central list count for some readers, those before the files for others.
    for (central, local) in [("found/fine.md", "../../evil.md"), ("../../evil.md", "found/fine.md")] {
        let import = Import::new();
        let lines = format!(
            "z = zipfile.ZipFile(out, 'w')\nz.writestr('found/SKILL.md', SKILL)\nz.writestr('found/fine.md', 'Fine.')\nz.close()\nd = open(out, 'rb').read(); at = d.index(b'PK\\x01\\x02')\nopen(out, 'wb').write(d[:at].replace(b'found/fine.md', b'{local}') + d[at:].replace(b'found/fine.md', b'{central}'))"
        );
        let (code, said) = import.run("z.zip", &lines);
        let written = import.written();
        let is_inside =
            written.iter().all(|path| ["imported/found/SKILL.md", "imported/found/fine.md"].contains(&path.as_str()));
        assert!(is_inside && (code == 0 || written.is_empty()), "{central} {local}: {code} {said} {written:?}");
        assert!(!import.path("evil.md").exists() && !Path::new("/evil.md").exists());
    }
}

#[test]
fn names_in_an_archive_that_are_encoded_or_belong_to_a_device() {
    for (name, is_taken) in [
        ("found/%2e%2e%2fevil.md", true),
        ("found/..%2f..%2fevil.md", true),
        ("found/\\u2215evil", true),
        ("found/a:stream", false),
        ("found/evil\\x00.md", false),
        ("found/evil\\r\\n.md", false),
        ("found/\\x1b[2Jevil", false),
        ("found/evil. ", false),
        ("found/evil...", false),
        ("//host/share/evil.md", false),
        ("found//evil.md", false),
        ("~/evil.md", true),
    ] {
        let import = Import::new();
        let (code, said) = import.run("t.tar", &tar(&format!("add('found/SKILL.md')\nadd('{name}', b'x')")));
        assert!(said.bytes().all(|byte| byte == b'\n' || byte >= b' '), "{name}: {said:?}");
        if is_taken {
            assert_eq!(code, 0, "{name}: {said}");
            assert!(import.written().iter().all(|path| path.starts_with("imported/found/")), "{:?}", import.written());
        } else {
            // A name ends at its first NUL in a tar.
            let is_cut = name.contains("x00") && code == 0;
            assert!(is_cut || (code, import.written()) == (3, Vec::new()), "{name}: {code} {said}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_folder_for_imports_that_is_a_link_to_a_trusted_one() {
    let import = Import::new();
    fs::create_dir(import.path("own")).unwrap();
    std::os::unix::fs::symlink(import.path("own"), import.path("imported")).unwrap();
    let config =
        "version = 1\nskills = [\"own\", { path = \"imported\", trust = \"untrusted\" }]\nsearch.encoder = \"off\"\n";
    fs::write(import.path("gatekey.toml"), config).unwrap();
    let (code, said) = import.run("t.tar", &tar("add('found/SKILL.md')"));
    assert_ne!(code, 0, "{said}");
    assert_eq!(fs::read_dir(import.path("own")).unwrap().count(), 0, "{said}");
}

#[cfg(unix)]
#[test]
fn a_source_with_links_to_files_outside() {
    use std::os::unix::fs::symlink;
    let import = Import::new();
    fs::create_dir_all(import.path("from/found/references")).unwrap();
    fs::write(import.path("from/found/SKILL.md"), SKILL).unwrap();
    fs::write(import.path("outside.md"), SECRET).unwrap();
    symlink(import.path("outside.md"), import.path("from/found/link.md")).unwrap();
    symlink(import.path(""), import.path("from/found/references/all")).unwrap();
    let (code, said) = import.import(&import.path("from"));
    assert_eq!((code, import.written()), (0, vec!["imported/found/SKILL.md".to_owned()]), "{said}");
}
