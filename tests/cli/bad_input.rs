//! Bad input: what happened, why, what to do; the right exit code; nothing left running.

use crate::support::{Workspace, code, stderr};

fn check(arguments: &[&str], expect_code: i32, expect_words: &[&str]) {
    let workspace = Workspace::new();
    workspace.write("empty.csv", "");
    workspace.write("ok.csv", "a\n1\n");
    workspace.write("folder/x.txt", "x");
    let output = workspace.run(arguments);
    let text = stderr(&output);
    assert_eq!(code(&output), expect_code, "{text}");
    for word in expect_words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn a_missing_file_is_named() {
    check(&["analyze", "none.csv"], 2, &["none.csv", "no such file", "hint"]);
}

#[test]
fn a_directory_is_refused_with_what_to_do() {
    check(&["analyze", "folder"], 2, &["directory", "hint"]);
}

#[test]
fn no_file_is_wrong_use() {
    check(&["analyze"], 2, &["Usage"]);
    check(&["analyze", "ok.csv", "--sandbox", "cloud"], 2, &["cloud"]);
}

#[test]
fn an_engine_that_is_not_there_is_told() {
    let workspace = Workspace::new();
    workspace.write("ok.csv", "a\n1\n");
    let output = workspace
        .command(&["analyze", "ok.csv", "--sandbox", "docker"])
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .output()
        .expect("it runs");
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("/nowhere/docker.sock"), "{}", stderr(&output));
}

#[test]
fn an_unreachable_model_is_told_as_such() {
    let workspace = Workspace::new();
    workspace.write("ok.csv", "a\n1\n");
    let (code, run) = {
        let output = workspace
            .command(&["analyze", "ok.csv", "--sandbox", "process", "--model", "some-model", "--format", "json"])
            // Port 1 of loopback: nothing listens there.
            .env("CODEINTERP_ENDPOINT", "http://127.0.0.1:1/v1")
            .output()
            .expect("it runs");
        (code(&output), serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("an object"))
    };
    assert_eq!((code, &run["status"], &run["error"]["kind"]), (3, &"failed".into(), &"model".into()), "{run:#}");
    assert!(run["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
}

#[test]
fn a_file_without_a_table_fails_in_the_profile_and_the_others_are_profiled() {
    let workspace = Workspace::new();
    workspace.write("ok.csv", "a\n1\n");
    workspace.write("broken.parquet", "PAR1 this is no parquet PAR1");
    let (code, outcomes) = workspace.json(&["profile", "ok.csv", "none.csv", "broken.parquet", "--sandbox", "process"]);
    assert_eq!(code, 2);
    assert_eq!(outcomes[0]["rows"], 1, "{outcomes:#}");
    assert_eq!(outcomes[1]["error"]["kind"], "unreadable", "{outcomes:#}");
    assert!(outcomes[2]["error"]["message"].is_string(), "{outcomes:#}");
}

#[test]
fn a_table_without_rows_is_answered() {
    let workspace = Workspace::new();
    workspace.write("header.csv", "a,b\n");
    let (code, run) = workspace.json(&["analyze", "header.csv", "--sandbox", "process"]);
    assert_eq!((code, &run["files"][0]["rows"]), (0, &0.into()), "{run:#}");
}

#[test]
fn a_file_that_holds_nothing_readable_is_refused_and_said_why() {
    let workspace = Workspace::new();
    workspace.write("empty.csv", "");
    // The high bytes of a linear congruential generator: all values, in no order.
    let noise = (0..3000).scan(1_u32, |state, _| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(state.to_be_bytes()[0])
    });
    std::fs::write(workspace.write("garbage.csv", ""), noise.collect::<Vec<u8>>()).expect("it is written");
    for (file, word) in [("empty.csv", "empty"), ("garbage.csv", "binary")] {
        let (code, run) = workspace.json(&["analyze", file, "--sandbox", "process"]);
        assert_eq!((code, &run["status"], &run["error"]["kind"]), (2, &"failed".into(), &"input".into()), "{run:#}");
        assert!(run["error"]["message"].as_str().is_some_and(|said| said.contains(file) && said.contains(word)), "{run:#}");
    }
}

#[test]
fn a_file_that_cannot_be_read_does_not_stop_the_analysis_of_the_others() {
    let workspace = Workspace::new();
    workspace.write("sums, of a day.csv", "shop,sum\nA,1\nB,2\nA,4\n");
    workspace.write("empty.csv", "");
    let (code, run) = workspace.json(&["analyze", "sums, of a day.csv", "empty.csv", "-q", "total sum by shop", "--sandbox", "process"]);
    let answer = run["final_answer"].as_str().unwrap_or_default();
    assert_eq!(code, 0, "{run:#}");
    assert!(answer.contains("A: 5") && answer.contains("empty.csv can't be read"), "{answer}");
}

#[cfg(unix)]
#[test]
fn a_fifo_is_refused_at_once() {
    let workspace = Workspace::new();
    let path = workspace.write("x", "").with_file_name("pipe.csv");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("a fifo");
    let output = workspace.run(&["analyze", "pipe.csv"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("not a regular file"));
}

#[test]
fn a_wrong_setting_names_its_place() {
    let workspace = Workspace::new();
    workspace.write("ok.csv", "a\n1\n");
    let config = workspace.folder.path().join("config/codeinterp");
    std::fs::create_dir_all(&config).expect("a folder");
    std::fs::write(config.join("config.toml"), "[sandbox]\nbackend = \"cloud\"\n").expect("it is written");
    let output = workspace.run(&["analyze", "ok.csv"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("config.toml") && stderr(&output).contains("cloud"), "{}", stderr(&output));
}

#[test]
fn a_setting_that_does_not_exist_is_warned_of() {
    let workspace = Workspace::new();
    let config = workspace.folder.path().join("config/codeinterp");
    std::fs::create_dir_all(&config).expect("a folder");
    std::fs::write(config.join("config.toml"), "[privacy]\nsned = \"schema\"\n").expect("it is written");
    let output = workspace.run(&["doctor"]);
    assert!(stderr(&output).contains("privacy.sned"), "{}", stderr(&output));
}

#[test]
fn wrong_use_is_one_object_too_where_json_is_asked_for() {
    let workspace = Workspace::new();
    for arguments in [&["analyze"][..], &["analyze", "x.csv", "--max-steps", "0"]] {
        let (code, run) = workspace.json(arguments);
        assert_eq!((code, &run["status"], &run["error"]["kind"]), (2, &"failed".into(), &"usage".into()), "{run:#}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_anything_runs() {
    let workspace = Workspace::new();
    workspace.write("ok.csv", "a\n1\n");
    let (code, run) = workspace.json(&["analyze", "ok.csv", "--sandbox", "process", "--out", "ok.csv"]);
    assert_eq!((code, &run["error"]["kind"], &run["total_steps"]), (2, &"usage".into(), &0.into()), "{run:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_goes_away_is_no_fault_and_a_full_disk_is() {
    let workspace = Workspace::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = workspace.command(&["runs", "list"]).stdout(writer).output().expect("it runs");
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full disk");
    let output = workspace.command(&["runs", "list"]).stdout(full).output().expect("it runs");
    assert_eq!(code(&output), 1, "{}", stderr(&output));
}
