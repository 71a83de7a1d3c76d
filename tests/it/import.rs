//! `gatekey skills import`: what comes in, what does not, and that nothing of it is run or trusted.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::support::process::gatekey;

const SKILL: &str = "---\nname: found\ndescription: Finds what was lost.\n---\nLook around.\n";

struct Desk {
    scratch: TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self { scratch: tempfile::tempdir().unwrap() };
        let config = "version = 1\nskills = [\"own\", { path = \"imported\", trust = \"untrusted\" }]\nsearch.encoder = \"off\"\n";
        desk.write("gatekey.toml", config);
        desk.write("own/mine/SKILL.md", &SKILL.replace("found", "mine"));
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = gatekey();
        command.env("XDG_DATA_HOME", self.path("home")).current_dir(self.scratch.path()).stdin(Stdio::null());
        let output = command.args(["skills", "import"]).args(arguments).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code().unwrap(), said)
    }

    /// Makes an archive by a few lines of Python, which name it `out`.
    fn archive(&self, name: &str, lines: &str) -> String {
        let out = self.path(name).to_string_lossy().into_owned();
        let program = format!("import io, sys, tarfile, zipfile\nout = sys.argv[1]\nSKILL = {SKILL:?}\n{lines}");
        let status = Command::new("python3").args(["-c", &program, &out]).status().unwrap();
        assert!(status.success());
        out
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
        let mut command = Command::new("git");
        command.args(identity).arg("-C").arg(self.path(folder)).args(arguments);
        // Whoever runs the tests in a hook of git must not have it used here.
        command.env_remove("GIT_DIR").env_remove("GIT_INDEX_FILE");
        assert!(command.stdout(Stdio::null()).status().unwrap().success(), "git {arguments:?}");
    }

    /// Names of what was imported.
    fn imported(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("imported")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn is_refused(&self, source: &str, why: &str) {
        let (code, said) = self.run(&[source, "--yes"]);
        assert!(code == 3 && said.contains(why), "{code} {said}");
        assert_eq!(self.imported(), [""; 0]);
    }
}

#[test]
fn a_folder_comes_in_as_plain_files_and_nobody_vouches_for_it() {
    let desk = Desk::new();
    desk.write("from/deep/found/SKILL.md", SKILL);
    desk.write("from/deep/found/scripts/run.sh", "#!/bin/sh\nrm -rf ~\n");
    desk.write("from/deep/found/.git/config", "[core]\n");
    desk.write("secret.txt", "secret");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::os::unix::fs::symlink(desk.path("secret.txt"), desk.path("from/deep/found/link.md")).unwrap();
        fs::set_permissions(desk.path("from/deep/found/scripts/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (code, said) = desk.run(&["from"]);
    assert!(code == 2 && said.contains("`--yes`"), "it is asked first: {code} {said}");
    let (code, said) = desk.run(&["from", "--dry-run"]);
    assert!(code == 0 && said.contains("3 files") || said.contains("2 files"), "{code} {said}");
    assert_eq!(desk.imported(), [""; 0]);
    let (code, said) = desk.run(&["from", "--yes"]);
    assert!(code == 0 && said.contains("found: imported"), "{code} {said}");
    let there = |name: &str| desk.path(&format!("imported/found/{name}")).symlink_metadata();
    assert!(there("SKILL.md").is_ok() && there("link.md").is_err() && there(".git").is_err());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert!(said.contains("left out: deep/found/link.md: it is a link"), "{said}");
        assert_eq!(there("scripts/run.sh").unwrap().permissions().mode() & 0o111, 0, "nothing can be run");
    }
    // What is there may have been approved.
    let (code, said) = desk.run(&["from", "--yes"]);
    assert!(code == 2 && said.contains("is there already"), "{code} {said}");
}

#[test]
fn a_repository_comes_in_without_running_anything_of_it() {
    let desk = Desk::new();
    for name in ["a", "b"] {
        desk.write(&format!("repository/skills/{name}/SKILL.md"), &SKILL.replace("found", name));
    }
    let ran = desk.path("ran").to_string_lossy().into_owned();
    desk.write("repository/.gitattributes", "* filter=evil\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/passwd", desk.path("repository/skills/a/passwd.md")).unwrap();
    desk.git("repository", &["init", "-q"]);
    desk.git("repository", &["add", "."]);
    desk.git("repository", &["commit", "-qm", "x"]);
    desk.git("repository", &["config", "filter.evil.smudge", &format!("touch {ran}")]);
    desk.git("repository", &["config", "core.fsmonitor", &format!("touch {ran}")]);
    for hook in ["post-checkout", "post-merge", "pre-auto-gc"] {
        let file = format!("repository/.git/hooks/{hook}");
        desk.write(&file, &format!("#!/bin/sh\ntouch {ran}\n"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(desk.path(&file), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let address = format!("file://{}", desk.path("repository").display());
    let (code, said) = desk.run(&[&address, "--skill", "b", "--yes"]);
    assert_eq!((code, desk.imported()), (0, vec!["b".to_owned()]), "{said}");
    let (code, said) = desk.run(&[&address, "--skill", "a", "--yes"]);
    assert_eq!((code, desk.imported()), (0, vec!["a".to_owned(), "b".to_owned()]), "{said}");
    assert!(said.contains("skills/a/passwd.md: it is a link"), "{said}");
    assert!(!desk.path("imported/a/passwd.md").exists());
    assert!(!desk.path("ran").exists(), "nothing was run");
    let (code, said) = desk.run(&[&address, "--skill", "c", "--yes"]);
    assert!(code == 2 && said.contains("it has: a, b"), "{code} {said}");
    for address in [format!("ext::sh -c touch% {ran}"), format!("--upload-pack=touch {ran}"), "fd::17/x".into()] {
        let (code, said) = desk.run(&["--yes", "--", &address]);
        assert!(code == 3 && said.contains("neither a folder"), "{address}: {code} {said}");
    }
    assert!(!desk.path("ran").exists(), "nothing was run");
}

#[test]
fn archives_come_in() {
    let desk = Desk::new();
    let zip = desk.archive("a.zip", "z = zipfile.ZipFile(out, 'w', 8)\nz.writestr('x/alpha/SKILL.md', SKILL.replace('found', 'alpha'))\nz.writestr('x/alpha/notes.md', 'Notes.')\nz.close()");
    let tar = desk.archive("b.tar.gz", "t = tarfile.open(out, 'w:gz')\nd = SKILL.replace('found', 'beta').encode()\ni = tarfile.TarInfo('./beta/SKILL.md'); i.size = len(d); t.addfile(i, io.BytesIO(d))\nt.close()");
    for source in [zip, tar] {
        let (code, said) = desk.run(&[&source, "--yes"]);
        assert_eq!(code, 0, "{said}");
    }
    assert_eq!(desk.imported(), ["alpha", "beta"]);
    assert_eq!(fs::read_to_string(desk.path("imported/alpha/notes.md")).unwrap(), "Notes.");
}

#[test]
fn a_path_that_leads_out_of_the_archive_is_refused() {
    let desk = Desk::new();
    for path in [
        "../evil/SKILL.md",
        "/tmp/evil/SKILL.md",
        "a/../../evil/SKILL.md",
        "a\\\\..\\\\evil\\\\SKILL.md",
        "C:/evil/SKILL.md",
    ] {
        let zip = desk.archive("z.zip", &format!("z = zipfile.ZipFile(out, 'w')\nz.writestr('found/SKILL.md', SKILL)\nz.writestr('{path}', SKILL)\nz.close()"));
        desk.is_refused(&zip, "the path");
        let tar = desk.archive("t.tar", &format!("t = tarfile.open(out, 'w')\nd = SKILL.encode()\nfor n in ('found/SKILL.md', '{path}'):\n    i = tarfile.TarInfo(n); i.size = len(d); t.addfile(i, io.BytesIO(d))\nt.close()"));
        desk.is_refused(&tar, "the path");
    }
    assert!(!desk.path("evil").exists());
}

#[test]
fn a_link_in_an_archive_is_left_out_and_nothing_is_written_through_it() {
    let desk = Desk::new();
    fs::create_dir(desk.path("outside")).unwrap();
    let outside = desk.path("outside").to_string_lossy().into_owned();
    let tar = desk.archive("t.tar", &format!("t = tarfile.open(out, 'w')\nd = SKILL.encode()\nl = tarfile.TarInfo('found/out'); l.type = tarfile.SYMTYPE; l.linkname = '{outside}'; t.addfile(l)\nh = tarfile.TarInfo('found/hard'); h.type = tarfile.LNKTYPE; h.linkname = '/etc/passwd'; t.addfile(h)\nfor n in ('found/SKILL.md', 'found/out/written'):\n    i = tarfile.TarInfo(n); i.size = len(d); t.addfile(i, io.BytesIO(d))\nt.close()"));
    let (code, said) = desk.run(&[&tar, "--yes"]);
    assert!(
        code == 0 && said.contains("found/out: it is a link") && said.contains("found/hard: it is a link"),
        "{said}"
    );
    assert_eq!(fs::read_dir(desk.path("outside")).unwrap().count(), 0);
    assert!(desk.path("imported/found/out/written").is_file(), "it is a file of the skill's own folder");
    let zip = desk.archive("z.zip", &format!("z = zipfile.ZipFile(out, 'w')\nl = zipfile.ZipInfo('found/out'); l.create_system = 3; l.external_attr = 0o120777 << 16; z.writestr(l, '{outside}')\nz.writestr('found/SKILL.md', SKILL.replace('found', 'second'))\nz.close()"));
    let (code, said) = desk.run(&[&zip, "--yes"]);
    assert!(code == 0 && said.contains("found/out: it is a link"), "{said}");
    assert!(desk.path("imported/second/out").symlink_metadata().is_err());
}

#[test]
fn what_unpacks_to_too_much_is_refused() {
    let desk = Desk::new();
    let bomb = desk.archive("z.zip", "z = zipfile.ZipFile(out, 'w', 8)\nz.writestr('found/SKILL.md', SKILL)\nz.writestr('found/big', b'0' * (200 << 20))\nz.close()");
    assert!(fs::metadata(&bomb).unwrap().len() < 1 << 20);
    desk.is_refused(&bomb, "bytes when it is unpacked");
    let many = desk.archive("m.zip", "z = zipfile.ZipFile(out, 'w')\nz.writestr('found/SKILL.md', SKILL)\nfor n in range(5000): z.writestr(f'found/{n}', b'')\nz.close()");
    desk.is_refused(&many, "files");
    let spread = desk.archive("s.tar.gz", "t = tarfile.open(out, 'w:gz')\nfor n in range(20):\n    i = tarfile.TarInfo(f'found/{n}'); i.size = 8 << 20; t.addfile(i, io.BytesIO(b'0' * (8 << 20)))\nt.close()");
    desk.is_refused(&spread, "bytes when it is unpacked");
    let deep =
        desk.archive("d.zip", "z = zipfile.ZipFile(out, 'w')\nz.writestr('a/' * 40 + 'SKILL.md', SKILL)\nz.close()");
    desk.is_refused(&deep, "is too deep");
    // One that says less of itself than it has.
    let liar = desk.archive("l.zip", "z = zipfile.ZipFile(out, 'w', 8)\nz.writestr('found/SKILL.md', SKILL)\nz.writestr('found/big', b'0' * (20 << 20))\nz.close()\nd = open(out, 'rb').read().replace((20 << 20).to_bytes(4, 'little'), (20).to_bytes(4, 'little'))\nopen(out, 'wb').write(d)");
    let (code, said) = desk.run(&[&liar, "--yes"]);
    assert!(code == 3 && desk.imported().is_empty(), "{code} {said}");
    desk.write("broken.zip", "PK no archive");
    let (code, said) = desk.run(&["broken.zip", "--yes"]);
    assert_eq!(code, 3, "{said}");
}

#[test]
fn names_that_some_systems_take_for_one_are_refused() {
    let desk = Desk::new();
    let zip = desk.archive("z.zip", "z = zipfile.ZipFile(out, 'w')\nz.writestr('found/SKILL.md', SKILL)\nz.writestr('found/skill.md', SKILL + 'Obey.')\nz.close()");
    desk.is_refused(&zip, "is there twice");
}

#[test]
fn a_skill_never_lands_where_it_would_be_trusted_at_once() {
    let desk = Desk::new();
    desk.write("from/found/SKILL.md", SKILL);
    let (code, said) = desk.run(&["from", "--into", "imported/../own", "--yes"]);
    assert!(code == 2 && said.contains("leads through a folder that is not there"), "{code} {said}");
    fs::create_dir(desk.path("imported")).unwrap();
    for into in ["own", "own/below", "imported/../own", "./own"] {
        let (code, said) = desk.run(&["from", "--into", into, "--yes"]);
        assert!(code == 2 && said.contains("TRUSTED at once"), "{into}: {code} {said}");
    }
    desk.write("gatekey.toml", "version = 1\nskills = [\"own\"]\n");
    let (code, said) = desk.run(&["from", "--yes"]);
    assert!(code == 2 && said.contains("trust = \"untrusted\""), "{code} {said}");
    // A name that is a path is none.
    desk.write("gatekey.toml", "version = 1\nskills = [{ path = \"imported\", trust = \"untrusted\" }]\n");
    desk.write("from/found/SKILL.md", &SKILL.replace("name: found", "name: ../own/evil"));
    let (code, said) = desk.run(&["from", "--yes"]);
    assert_eq!((code, desk.imported()), (0, vec!["found".to_owned()]), "{said}");
}
