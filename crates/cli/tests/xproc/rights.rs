//! Other users, and file systems without room.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bumpless_heartbeat::{HeartbeatTable, Observed};
use bumpless_substrate::region::Access;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use crate::child::Child;
use crate::layout::TableFile;
use crate::roles;
use crate::scene::Scene;

/// 26.
pub fn full_file_system_is_an_error_and_no_signal(_scene: &Scene) {
    // In a child: what may not happen would kill the process that it happens to.
    let mut child = Child::start("full disk", &[]);
    let made = roles::number(&child.done("go"));
    assert!((1..16).contains(&made), "{made} of 16 tables had room");
}

/// Makes tables on file systems with fewer and fewer free pages, and uses every byte of those that it
/// gets. Answers with their number.
pub fn full_disk() {
    const SLOTS: usize = 64;
    let mut commands = roles::commands();
    let _ = commands.next(None);
    let mut made = 0;
    for pages_taken in 0..16 {
        // Never mounted anywhere: it goes with its descriptor.
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).expect("a tmpfs");
        fsconfig_set_string(&context, "size", "64k").expect("a size");
        fsconfig_create(&context).expect("a tmpfs");
        let flags = (FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty());
        let root = fsmount(&context, flags.0, flags.1).expect("a detached mount");
        let folder = PathBuf::from(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&root)
        ));
        fill(&folder.join("filler"), pages_taken);
        let path = folder.join("table");
        match HeartbeatTable::create(&path, SLOTS) {
            Ok(table) => {
                fill(&folder.join("rest"), 16);
                use_all_of(&table);
                made += 1;
            }
            Err(error) => {
                let text = error.to_string();
                let refusal = roles::Refusal::from(error);
                assert!(text.contains("table"), "{text}");
                assert_eq!(refusal.kind(), "Region.NoSpace", "{text}");
                assert!(!path.exists(), "half made");
            }
        }
    }
    roles::answer(&Ok(made.to_string()));
    let _ = commands.next(None);
}

/// Writes pages until there is no room for more.
fn fill(path: &Path, pages: usize) {
    let mut file = std::fs::File::create(path).expect("an empty file");
    for _ in 0..pages {
        if std::io::Write::write_all(&mut file, &[1; 4096]).is_err() {
            return;
        }
    }
}

fn use_all_of(table: &HeartbeatTable) {
    let us = std::process::id();
    let handles = (0..table.capacity()).map(|_| table.register(us).expect("a slot"));
    for handle in handles.collect::<Vec<_>>() {
        for unit in 0..128_u8 {
            table.mark_in_flight(handle, unit).expect("our slot");
            table.clear_in_flight(handle, unit).expect("our slot");
        }
        table.beat(handle).expect("our slot");
        let cells = table.cells(handle.slot()).expect("a slot");
        assert!(cells.verdict.record_death(cells.slot.peek_claim()));
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("ours");
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").mode() & 0o7777
}

/// A child that is nobody.
fn nobody() -> Child {
    let mut nobody = Child::start("member", &[]);
    nobody.done("become 65534");
    nobody
}

/// 27.
pub fn other_user_is_refused_with_the_mode(scene: &Scene) {
    let path = scene.table_path();
    set_mode(scene.folder(), 0o700);
    let mut maker = Child::start("member", &[]);
    maker.done("umask 0");
    maker.done(&format!("create {} 4", path.display()));
    let lock = path.with_file_name("table.lock");
    assert_eq!(
        (mode_of(&path), mode_of(&lock)),
        (0o600, 0o600),
        "whatever the umask"
    );
    let mut nobody = nobody();
    let refused = |nobody: &mut Child, command: &str, wanted: &str| {
        let text = nobody.refused(command, "Region.Denied");
        assert!(
            text.contains(wanted) && text.contains("we are uid 65534"),
            "{text}"
        );
    };
    let (attach, look) = (
        format!("attach {}", path.display()),
        format!("look {}", path.display()),
    );
    for command in [&attach, &look] {
        refused(&mut nobody, command, "has mode 0700 and owner uid 0");
    }
    set_mode(scene.folder(), 0o755);
    for command in [&attach, &look] {
        refused(&mut nobody, command, "has mode 0600 and owner uid 0");
    }
    let beside = format!("create {} 4", scene.path("beside").display());
    refused(&mut nobody, &beside, "has mode 0755 and owner uid 0");
    set_mode(&path, 0o644);
    refused(&mut nobody, &attach, "has mode 0644 and owner uid 0");
    nobody.done(&look);
    the_default_folder_is_private(&mut nobody);
}

/// Nobody's own: no run of this program uses it.
fn the_default_folder_is_private(nobody: &mut Child) {
    let folder = PathBuf::from(nobody.done("default-folder"));
    let found = std::fs::symlink_metadata(&folder).expect("a folder");
    assert_eq!((found.mode() & 0o7777, found.uid()), (0o700, 65_534));
    let table = folder.join("table");
    nobody.done(&format!("create {} 4", table.display()));
    assert_eq!(mode_of(&table), 0o600);
    // Root may write there, and does not trust what a stranger has made.
    let error = HeartbeatTable::attach(&table).expect_err("a stranger's");
    assert!(error.to_string().contains("owner uid 65534"), "{error}");
    set_mode(&folder, 0o777);
    let text = nobody.refused("default-folder", "Folder");
    assert!(text.contains("mode 0777"), "{text}");
    std::fs::remove_dir_all(&folder).expect("ours to remove");
}

/// 33.
pub fn observer_sees_all_and_writes_nothing(scene: &Scene) {
    const WORKERS: usize = 16;
    let path = scene.table_path();
    let table = HeartbeatTable::create_with_access(&path, 64, Access::ReadForOthers);
    let table = table.expect("a table");
    set_mode(scene.folder(), 0o755);
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| scene.worker()).collect();
    for (unit, worker) in workers.iter_mut().enumerate() {
        worker.done(&format!("mark {unit} 127"));
        worker.done("beat");
        worker.stop();
    }
    let file = TableFile::open(&path, 64);
    let before = file.bytes();
    let mut observer = nobody();
    observer.done(&format!("look {}", path.display()));
    for slot in 0..64 {
        let seen = observer.done(&format!("see {slot}"));
        assert_eq!(seen, format!("{:?}", table.observe(slot)));
        let is_taken = matches!(table.observe(slot), Observed::Consistent(_));
        assert_eq!(is_taken, slot < WORKERS, "slot {slot}: {seen}");
    }
    assert_eq!(observer.done("count"), WORKERS.to_string());
    observer.refused("register", "ReadOnly");
    observer.refused("tick", "ReadOnly");
    observer.done("watch 3");
    assert_eq!(observer.done("scan"), "Standby");
    observer.done("wait");
    // With a handle of its own, too: whoever has the table open twice.
    assert!(file.bytes() == before, "something was written");
    let mut both = scene.worker();
    both.done(&format!("look {}", path.display()));
    let with_its_slot = file.bytes();
    for command in ["beat", "mark 5", "complete 5", "unregister"] {
        both.refused(command, "ReadOnly");
    }
    assert!(file.bytes() == with_its_slot, "something was written");
    drop(both);
    let workers_slots = file.slot(0) as usize..file.slot(WORKERS as u64) as usize;
    assert!(file.bytes()[workers_slots.clone()] == before[workers_slots]);
    workers.iter().for_each(Child::resume);
    workers.iter_mut().for_each(|worker| {
        worker.done("complete 127");
    });
}
