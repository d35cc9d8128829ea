//! What files and folders do when they are right, wrong or hostile.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_written_file_has_its_bytes_and_its_mode_and_leaves_nothing_beside_it() {
    let folder = folder();
    let secret = folder.path().join("secret");
    let open = folder.path().join("open");
    write(&secret, b"one", Audience::Owner).unwrap();
    write(&secret, b"two", Audience::Owner).unwrap();
    write(&open, b"three", Audience::Everyone).unwrap();
    assert_eq!(read_private(&secret, 100).unwrap(), b"two");
    assert_eq!((mode(&secret), mode(&open)), (0o600, 0o644));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn what_a_crash_left_behind_does_not_stop_the_next_write() {
    let folder = folder();
    let path = folder.path().join("key");
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, "untouched").unwrap();
    symlink(&elsewhere, folder.path().join(".key.new")).unwrap();
    write(&path, b"fresh", Audience::Owner).unwrap();
    assert_eq!(read_private(&path, 100).unwrap(), b"fresh");
    assert_eq!(fs::read(&elsewhere).unwrap(), b"untouched");
}

#[test]
fn a_private_file_that_others_may_read_is_refused_with_the_command_that_helps() {
    let folder = folder();
    let path = folder.path().join("key");
    for exposed in [0o640, 0o604, 0o644, 0o620] {
        fs::write(&path, "secret").unwrap();
        set_mode(&path, exposed);
        let refused = read_private(&path, 100).unwrap_err();
        assert!(
            matches!(refused, Error::Exposed { mode, .. } if mode == exposed),
            "{refused}"
        );
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
    }
}

#[test]
fn a_file_at_the_limit_is_read_and_one_byte_more_is_refused() {
    let folder = folder();
    let path = folder.path().join("file");
    fs::write(&path, [7; 11]).unwrap();
    assert_eq!(read(&path, 11).unwrap().len(), 11);
    assert!(matches!(
        read(&path, 10),
        Err(Error::TooLarge { max: 10, .. })
    ));
    assert!(matches!(
        read(Path::new("/dev/zero"), 10),
        Err(Error::NotAFile(_))
    ));
}

#[test]
fn folders_pipes_and_missing_files_are_told_apart_and_never_waited_for() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    assert!(matches!(read(&pipe, 10), Err(Error::NotAFile(_))));
    assert!(matches!(read(folder.path(), 10), Err(Error::NotAFile(_))));
    assert!(matches!(
        read(&folder.path().join("no"), 10),
        Err(Error::Missing(_))
    ));
}

#[test]
fn a_link_is_followed_for_people_and_refused_for_secrets() {
    let folder = folder();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    write(&file, b"bytes", Audience::Owner).unwrap();
    symlink(&file, &link).unwrap();
    assert_eq!(read(&link, 10).unwrap(), b"bytes");
    assert!(matches!(read_private(&link, 10), Err(Error::Link(_))));
}

#[test]
fn a_secret_that_a_person_names_may_be_a_link_but_not_open_to_others() {
    let folder = folder();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    write(&file, b"bytes", Audience::Owner).unwrap();
    symlink(&file, &link).unwrap();
    assert_eq!(read_secret(&link, 10).unwrap(), b"bytes");
    write(&file, b"bytes", Audience::Everyone).unwrap();
    let refused = read_secret(&link, 10).unwrap_err();
    assert!(matches!(refused, Error::Exposed { .. }), "{refused}");
}

#[test]
fn folders_are_made_private_and_kept_if_they_are_there() {
    let folder = folder();
    let deep = folder.path().join("a/b");
    create_dir(&deep).unwrap();
    create_dir(&deep).unwrap();
    assert_eq!(
        (mode(&deep), mode(&folder.path().join("a"))),
        (0o700, 0o700)
    );
    set_mode(&deep, 0o755);
    create_dir(&deep).unwrap();
    assert_eq!(mode(&deep), 0o755);
}

#[test]
fn a_folder_that_is_a_file_or_open_to_everyone_is_refused() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(create_dir(&file), Err(Error::NotADirectory(_))));
    assert!(create_dir(&file.join("below")).is_err());
    let open = folder.path().join("open");
    create_dir(&open).unwrap();
    set_mode(&open, 0o777);
    assert!(matches!(
        create_dir(&open),
        Err(Error::Open { mode: 0o777, .. })
    ));
}

#[test]
fn a_folder_has_one_holder_at_a_time() {
    let folder = folder();
    let path = folder.path().join("lock");
    let held = lock(&path).unwrap();
    assert!(matches!(lock(&path), Err(Error::Locked(at)) if at == folder.path()));
    drop(held);
    lock(&path).unwrap();
}
