//! `analyze` and `profile` on good input.

use crate::support::{SALES, Workspace, code};

#[test]
fn a_table_is_analysed_the_same_on_both_backends() {
    let workspace = Workspace::new();
    workspace.write("data/sales 100%.csv", SALES);
    let runs: Vec<_> = ["docker", "process"]
        .iter()
        .map(|backend| {
            let (code, run) = workspace.json(&["analyze", "data/sales 100%.csv", "--sandbox", backend, "-q", "mean revenue by region"]);
            assert_eq!((code, &run["status"]), (0, &"completed".into()), "{run:#}");
            assert_eq!(run["sandbox"]["backend"], *backend);
            run
        })
        .collect();
    let printed = |run: &serde_json::Value| -> Vec<String> {
        run["steps"].as_array().expect("steps").iter().map(|step| format!("{}{}", step["code"], step["stdout"])).collect()
    };
    assert_eq!(printed(&runs[0]), printed(&runs[1]));
    assert_eq!(runs[0]["final_answer"], runs[1]["final_answer"]);
    assert_eq!(runs[0]["files"][0]["rows"], SALES.lines().count() - 1);
    let answer = runs[0]["final_answer"].as_str().expect("an answer");
    for region in ["North", "South", "East", "West"] {
        assert!(answer.contains(region), "{answer}");
    }
}

#[test]
fn the_object_has_every_field_and_artifacts_are_files() {
    let workspace = Workspace::new();
    workspace.write("sales.csv", SALES);
    let (code, run) = workspace.json(&["analyze", "sales.csv", "--sandbox", "process", "--out", "out"]);
    assert_eq!(code, 0);
    for field in
        ["run", "status", "error", "question", "final_answer", "total_steps", "steps", "files", "artifacts", "model", "usage", "sandbox"]
    {
        assert!(run.get(field).is_some(), "{field} is missing");
    }
    let steps = run["steps"].as_array().expect("steps");
    assert_eq!(run["total_steps"], steps.len());
    for step in steps {
        for field in ["step", "code", "stdout", "stderr", "result", "exit_code", "error", "duration_ms", "artifacts", "truncated"] {
            assert!(step.get(field).is_some(), "{field} is missing in a step");
        }
    }
    let artifacts = run["artifacts"].as_array().expect("artifacts");
    assert!(!artifacts.is_empty());
    for artifact in artifacts {
        let path = std::path::Path::new(artifact["path"].as_str().expect("a path"));
        let data = std::fs::read(path).expect("it is there");
        assert!(path.is_absolute() && path.starts_with(workspace.path("out")), "{}", path.display());
        assert_eq!(artifact["bytes"], data.len());
        assert!(data.starts_with(b"\x89PNG"), "{artifact}");
    }
    let report = std::fs::read_to_string(workspace.path("out/report.md")).expect("a report");
    assert!(report.lines().take(8).any(|line| line.contains("No language model was used")), "{report}");
    assert!(report.contains("](artifacts/chart-1.png)"), "{report}");
}

#[test]
fn a_chinese_question_is_answered_in_chinese() {
    let workspace = Workspace::new();
    workspace.write("销售.csv", SALES);
    let (code, run) = workspace.json(&["analyze", "销售.csv", "--sandbox", "process", "-q", "按 region 统计 revenue 的平均值"]);
    assert_eq!(code, 0);
    assert!(run["final_answer"].as_str().is_some_and(|answer| answer.contains("未使用语言模型") && answer.contains("North")), "{run:#}");
}

#[test]
fn a_profile_is_one_object_for_one_file_and_an_array_for_several() {
    let workspace = Workspace::new();
    workspace.write("a.csv", "x;y\n1,5;a\n2,5;\n");
    workspace.write("b.json", r#"[{"a": 1}, {"a": 2}, {"a": 2}]"#);
    let (code, one) = workspace.json(&["profile", "a.csv", "--sandbox", "process"]);
    assert_eq!((code, &one["rows"], &one["delimiter"], &one["decimal"]), (0, &2.into(), &";".into(), &",".into()), "{one:#}");
    let (code, two) = workspace.json(&["profile", "a.csv", "b.json", "--sandbox", "process"]);
    assert_eq!((code, &two[1]["rows"], &two[1]["duplicate_rows"]), (0, &3.into(), &1.into()), "{two:#}");
}

#[test]
fn a_link_is_followed_and_the_profile_named_as_the_person_named_it() -> std::io::Result<()> {
    let (workspace, elsewhere) = (Workspace::new(), tempfile::tempdir()?);
    let kept = elsewhere.path().join("3f9a0c");
    std::fs::write(&kept, "x;y\n1;a\n2;b\n")?;
    workspace.write("beside.csv", "a\n1\n");
    std::os::unix::fs::symlink(&kept, workspace.path("orders.csv"))?;
    let (code, one) = workspace.json(&["profile", "orders.csv", "--sandbox", "process"]);
    assert_eq!((code, &one["file"], &one["rows"]), (0, &"orders.csv".into(), &2.into()), "{one:#}");
    Ok(())
}

#[test]
fn a_dry_run_of_the_playbook_says_that_nothing_is_sent() {
    let workspace = Workspace::new();
    workspace.write("a.csv", "x\n1\n");
    let output = workspace.run(&["analyze", "a.csv", "--sandbox", "process", "--dry-run"]);
    assert_eq!((code(&output), output.stdout.len()), (0, 0));
}
