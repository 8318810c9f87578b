//! Files across the pipe, and what executions do to the working directory.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use codeinterp::agent::ports::{FileSource, Sandbox, SandboxError};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::rig::Rig;

fn hex(data: &[u8]) -> String {
    Sha256::digest(data).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[tokio::test]
async fn what_is_put_is_what_the_code_reads_and_what_comes_back() {
    let rig = Rig::start().await;
    let data: Vec<u8> = (0..3_500_000u32).flat_map(u32::to_le_bytes).take(3_500_000).collect();
    for name in ["a.bin", "deep/er/file name.bin", "数据/100 % 😀.bin"] {
        rig.put(name, &data).await;
        assert_eq!(rig.sandbox.get_file(name, 4_000_000).await.unwrap(), data, "{name}");
        rig.prints(
            &format!("import hashlib\nprint(hashlib.sha256(open({name:?}, 'rb').read()).hexdigest())"),
            &format!("{}\n", hex(&data)),
        )
        .await;
    }
    rig.put("empty", b"").await;
    assert_eq!(rig.sandbox.get_file("empty", 0).await.unwrap(), b"");
    let names: Vec<String> = rig.sandbox.list_files().await.unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    let execution = rig.run("1").await;
    assert!(execution.files.is_empty(), "put files are not the work of the next step: {:?}", execution.files);
}

#[tokio::test]
async fn names_that_lead_outside_are_refused_at_both_ends() {
    let rig = Rig::start().await;
    for name in ["../x", "/etc/passwd", "a/../../x", "", "a//b", "a\0b", "a\nb", "./x"] {
        let source = FileSource::Bytes(Arc::from(&b"x"[..]));
        let put = rig.sandbox.put_file(name, &source, &|_| {}, &CancellationToken::new()).await;
        assert!(matches!(put, Err(SandboxError::RefusedName { .. })), "{name:?}");
        assert!(matches!(rig.sandbox.get_file(name, 100).await, Err(SandboxError::RefusedName { .. })), "{name:?}");
        assert!(rig.link.get_file(name, 100).await.is_err(), "the supervisor refuses {name:?} too");
    }
}

#[tokio::test]
async fn links_pipes_and_devices_are_neither_read_nor_written_through() {
    let rig = Rig::start().await;
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("canary"), "secret").unwrap();
    symlink(outside.path().join("canary"), rig.workdir().join("link.png")).unwrap();
    symlink(outside.path(), rig.workdir().join("folder")).unwrap();
    let made = rig
        .run("import os\nos.mkfifo('chart.png')\nopen('one', 'w').write('1')\nos.link('one', 'two')\nos.symlink('/dev/zero', 'zero')")
        .await;
    for (name, reason) in [("chart.png", "named pipe"), ("one", "hard links"), ("two", "hard links"), ("zero", "symbolic link")] {
        let told = made.skipped_files.iter().any(|skipped| skipped.starts_with(name) && skipped.contains(reason));
        assert!(told, "{name}: {:?}", made.skipped_files);
        assert!(matches!(rig.sandbox.get_file(name, 1 << 20).await, Err(SandboxError::File { .. })), "{name}");
    }
    assert!(made.files.is_empty(), "{:?}", made.files);
    for name in ["link.png", "folder/canary"] {
        assert!(matches!(rig.sandbox.get_file(name, 100).await, Err(SandboxError::File { .. })), "{name}");
    }
    let source = FileSource::Bytes(Arc::from(&b"changed"[..]));
    assert!(rig.sandbox.put_file("folder/new", &source, &|_| {}, &CancellationToken::new()).await.is_err());
    rig.put("link.png", b"replaced").await;
    assert_eq!(std::fs::read_to_string(outside.path().join("canary")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_above_the_limit_is_refused_whole() {
    let rig = Rig::start().await;
    rig.run("f = open('big', 'wb'); f.truncate(10 * 2**30); f.close()").await;
    let refused = rig.sandbox.get_file("big", 1000).await;
    assert!(matches!(&refused, Err(SandboxError::File { reason, .. }) if reason.contains("limit")), "{refused:?}");
}

/// Tells another thread to stop when it is dropped.
struct Stops<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_swapped_or_changed_while_it_is_read_is_consistent_or_an_error() {
    const BYTES: usize = 8 << 20;
    let rig = Rig::start().await;
    let (file, next) = (rig.workdir().join("moving"), rig.workdir().join("next"));
    for swapped in [true, false] {
        std::fs::write(&file, vec![b'a'; BYTES]).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let change = || {
            for letter in (b'a'..=b'z').cycle() {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                if swapped {
                    std::fs::write(&next, vec![letter; BYTES]).unwrap();
                    std::fs::rename(&next, &file).unwrap();
                } else {
                    std::os::unix::fs::FileExt::write_all_at(&std::fs::File::options().write(true).open(&file).unwrap(), &[letter], 7)
                        .unwrap();
                }
            }
        };
        let read = async {
            let (mut whole, mut refused) = (0, 0);
            while refused == 0 || (swapped && whole + refused < 20) {
                match rig.sandbox.get_file("moving", 2 * BYTES as u64).await {
                    Ok(data) => {
                        let first = data[0];
                        assert!(!swapped || data.iter().all(|letter| *letter == first), "a mixture of two files");
                        assert_eq!(data.len(), BYTES);
                        whole += 1;
                    }
                    Err(SandboxError::File { reason, .. }) => {
                        assert!(reason.contains("changed") || reason.contains("replaced"), "{reason}");
                        refused += 1;
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
        };
        let reading = tokio::time::timeout(std::time::Duration::from_secs(120), read);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(change);
            // Also where an assertion fails, which would wait for the other thread else.
            let _stops = Stops(&stop);
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(reading))
        });
        outcome.expect("a change was never noticed");
    }
}

#[tokio::test]
async fn a_source_that_is_no_regular_file_or_changes_is_refused_and_leaves_nothing() {
    let rig = Rig::start().await;
    for path in ["/dev/zero", "/proc/self/fd", "/nowhere"] {
        let put = rig.sandbox.put_file("x", &FileSource::Path(path.into()), &|_| {}, &CancellationToken::new()).await;
        assert!(matches!(put, Err(SandboxError::File { .. })), "{path}: {put:?}");
    }
    for (announced, data) in [(10, &b"short"[..]), (3, &b"longer than said"[..])] {
        assert!(rig.link.put_file("y", announced, data, |_| {}).await.is_err());
    }
    rig.prints("import os\nprint(os.listdir('.'))", "[]\n").await;
}

#[tokio::test]
async fn files_made_changed_and_removed_by_a_step_are_told_by_contents() {
    let rig = Rig::start().await;
    rig.put("data.csv", b"a\n1\n").await;
    let made = rig
        .run("import os, pathlib\nos.makedirs('out/deep')\npathlib.Path('out/deep/r.csv').write_text('x')\nprint(open('data.csv').read())")
        .await;
    let told: Vec<_> = made.files.iter().map(|file| (file.path.as_str(), file.bytes, file.created)).collect();
    assert_eq!(told, [("out/deep/r.csv", 1, true)]);
    assert_eq!(made.files[0].sha256.as_deref(), Some(hex(b"x").as_str()));
    // The same size and a time set back do not hide a change; a touched file is no change.
    let hidden = rig.run("s = os.stat('data.csv')\nopen('data.csv', 'w').write('b\\n2\\n')\nos.utime('data.csv', ns=(s.st_atime_ns, s.st_mtime_ns))\npathlib.Path('out/deep/r.csv').touch()").await;
    let told: Vec<_> = hidden.files.iter().map(|file| (file.path.as_str(), file.created)).collect();
    assert_eq!(told, [("data.csv", false)]);
    let mapped = rig.run("import mmap\nf = open('data.csv', 'r+b')\nm = mmap.mmap(f.fileno(), 0)\nm[0:1] = b'Z'").await;
    assert_eq!(mapped.files.len(), 1, "a change through mapped memory is seen");
}

#[tokio::test]
async fn too_many_files_are_counted_and_odd_names_are_told() {
    let rig = Rig::start().await;
    let code =
        "import os\nfor i in range(12_000): open(f'f{i}', 'w').close()\nopen(b'bad\\xff.png', 'w').close()\nopen('a\\nline', 'w').close()";
    let execution = rig.run(code).await;
    assert_eq!(execution.exit_code, 0);
    assert!(execution.files.len() <= 500);
    let skipped = execution.skipped_files.join("\n");
    assert!(skipped.contains("more files"), "{skipped}");
    assert!(skipped.contains("UTF-8") && skipped.contains("control characters"), "{skipped}");
}

#[tokio::test]
async fn what_background_work_writes_between_two_steps_is_kept_and_not_called_the_second_steps_doing() {
    let rig = Rig::start().await;
    let code = "import threading, time, os
def later():
    while not os.path.exists('go'): time.sleep(0.01)
    open('late.csv', 'w').write('a')
    open('both.csv', 'w').write('a')
    open('done', 'w')
threading.Thread(target=later).start()";
    assert!(rig.run(code).await.files.is_empty());
    rig.put("go", b"").await;
    crate::rig::appears(&rig.workdir().join("done")).await;
    let next = rig.run("open('own.csv', 'w').write('b')\nopen('both.csv', 'w').write('b')").await;
    let names: Vec<_> = next.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names, ["both.csv", "done", "late.csv", "own.csv"]);
    let told: Vec<_> = next.skipped_files.iter().filter(|line| line.contains("before this step began")).collect();
    assert!(told.len() == 2 && told[0].starts_with("done: ") && told[1].starts_with("late.csv: "), "{told:?}");
    assert!(rig.run("1").await.skipped_files.is_empty());
}

#[tokio::test]
async fn files_of_a_step_beside_which_earlier_work_went_on_are_told_as_possibly_not_its_own() {
    let shared = "background work of an earlier step went on during this step";
    for (start, end) in [
        (
            "import threading, time, os\ndef later():\n    while not os.path.exists('go'): time.sleep(0.01)\n    open('theirs.csv', 'w').write('a')\nwork = threading.Thread(target=later)\nwork.start()",
            "work.join()",
        ),
        (
            "import subprocess\nwork = subprocess.Popen('while ! [ -e go ]; do sleep 0.01; done; echo a > theirs.csv', shell=True)",
            "work.wait()",
        ),
        // Of an ended process that nobody waits for, only its number is left.
        (
            "import subprocess\nwork = subprocess.Popen('while ! [ -e go ]; do sleep 0.01; done; echo a > theirs.csv', shell=True)",
            "while ') Z ' not in open(f'/proc/{work.pid}/stat').read(): pass",
        ),
    ] {
        let rig = Rig::start().await;
        assert!(rig.run(start).await.files.is_empty());
        let beside = rig.run(&format!("open('own.csv', 'w').write('b')\nimport os\nos.mkdir('go')\n{end}")).await;
        assert_eq!(beside.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["own.csv", "theirs.csv"], "{start}");
        let told = beside.skipped_files.iter().any(|line| line.starts_with("own.csv, theirs.csv: ") && line.contains(shared));
        assert!(told, "{start}: {:?}", beside.skipped_files);
        let alone = rig.run("open('own.csv', 'w').write('c')").await;
        assert_eq!((alone.files.len(), alone.skipped_files.len()), (1, 0), "{start}: {:?}", alone.skipped_files);
    }
}
