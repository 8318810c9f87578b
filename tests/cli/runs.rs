//! Earlier runs, their export, and what the machine offers.

use std::process::Command;

use crate::support::{SALES, Workspace, code, stderr};

#[test]
fn runs_are_listed_shown_and_exported_and_exports_run_as_they_are() {
    let workspace = Workspace::new();
    workspace.write("sales.csv", SALES);
    let (_, run) = workspace.json(&["analyze", "sales.csv", "--sandbox", "process", "-q", "mean units by product"]);
    let id = run["run"].as_str().expect("an id");

    let (_, list) = workspace.json(&["runs", "list"]);
    assert_eq!((&list[0]["run"], &list[0]["status"]), (&id.into(), &"completed".into()));
    let (_, shown) = workspace.json(&["runs", "show", id]);
    assert_eq!(shown["final_answer"], run["final_answer"]);
    let missing = workspace.run(&["runs", "show", "20000101-000000-aaaaaa"]);
    assert_eq!(code(&missing), 2);

    for (to, name) in [("notebook", "a.ipynb"), ("script", "a.py"), ("markdown", "a.md")] {
        let output = workspace.run(&["runs", "export", id, "--to", to, "--out", name]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let notebook: serde_json::Value = serde_json::from_slice(&std::fs::read(workspace.path("a.ipynb")).expect("a notebook")).expect("json");
    assert_eq!(notebook["nbformat"], 4);
    assert!(notebook["cells"].as_array().is_some_and(|cells| cells.len() >= 3));
    let compiled =
        Command::new("python3").args(["-m", "py_compile", "a.py"]).current_dir(workspace.path("")).output().expect("python runs");
    assert!(compiled.status.success(), "{}", stderr(&compiled));
    assert!(std::fs::read_to_string(workspace.path("a.md")).expect("markdown").contains("](a-artifacts/"));
}

#[test]
fn doctor_says_what_works_here() {
    let workspace = Workspace::new();
    let (code, diagnosis) = workspace.json(&["doctor"]);
    assert_eq!((code, &diagnosis["ready"]), (0, &true.into()), "{diagnosis:#}");
    let areas: Vec<&str> = diagnosis["checks"].as_array().expect("checks").iter().filter_map(|check| check["area"].as_str()).collect();
    for area in ["docker", "process", "model", "folders"] {
        assert!(areas.contains(&area), "{area} is missing in {areas:?}");
    }
}

#[test]
fn doctor_looks_at_what_an_editor_has_set() {
    let workspace = Workspace::new();
    let of = |settings: &str| workspace.json(&["doctor", "--settings", settings]);
    let (code, diagnosis) = of(r#"{"sandbox": {"backend": "process"}, "model": "editor", "virtualDocuments": true}"#);
    assert_eq!(code, 0, "{diagnosis:#}");
    assert!(diagnosis["sandbox"].as_str().is_some_and(|text| text.contains("local process")), "{diagnosis:#}");
    let checks = diagnosis["checks"].as_array().expect("checks");
    let model = checks.iter().find(|check| check["area"] == "model").expect("the model");
    assert_eq!((&model["ok"], model["detail"].as_str().is_some_and(|text| text.starts_with("the editor's own"))), (&true.into(), true));
    let (code, _) = of(r#"{"sandbox": {"backend": 3}}"#);
    assert_eq!(code, 0, "a setting of the wrong kind stops nothing");
}

#[test]
fn standard_output_holds_the_version_alone() {
    let output = Workspace::new().run(&["--version"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("codeinterp {}\n", env!("CARGO_PKG_VERSION")));
}
