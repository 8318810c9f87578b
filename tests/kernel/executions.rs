//! What code can do, and what is told of it.

use std::time::Duration;

use codeinterp::agent::ports::{ExecuteOptions, Sandbox, SandboxError};
use serde_json::{Value, json};

use crate::rig::Rig;

#[tokio::test]
async fn variables_persist_from_cell_to_cell() {
    let rig = Rig::start().await;
    rig.prints("x = 20\ny = 22", "").await;
    rig.prints("print(x + y)", "42\n").await;
    let result = rig.run("x * y").await;
    assert_eq!(result.result.as_deref(), Some("440"));
}

#[tokio::test]
async fn an_exception_is_told_with_the_users_own_frames() {
    let rig = Rig::start().await;
    let failed = rig.run("import json\ndef read(text):\n    return json.loads(text)\nread('{')").await;
    let error = failed.error.unwrap();
    assert_eq!((failed.exit_code, error.ename.as_str()), (1, "JSONDecodeError"));
    assert!(error.traceback.contains("line 3, in read\n    return json.loads(text)"), "{}", error.traceback);
    assert!(!error.traceback.contains("raw_decode"), "{}", error.traceback);
    assert!(!error.traceback.contains('\u{1b}'));
    let syntax = rig.run("x = = 3").await.error.unwrap();
    assert_eq!(syntax.ename, "SyntaxError");
    assert!(syntax.traceback.contains("line 1\n    x = = 3\n        ^"), "{}", syntax.traceback);
    rig.prints("print('still here')", "still here\n").await;
}

#[tokio::test]
async fn errors_of_every_odd_kind_are_told_and_survived() {
    let rig = Rig::start().await;
    for (code, name) in [
        ("raise ExceptionGroup('many', [ValueError(1)])", "ExceptionGroup"),
        ("def f(): f()\nf()", "RecursionError"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "ValueError"),
        ("raise ValueError('x' * 10_000_000)", "ValueError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("%nosuchmagic", "UsageError"),
        ("import ast\nast.parse('(')", "SyntaxError"),
        ("return 3", "SyntaxError"),
        ("raise ValueError('\\ud800 \\x00')", "ValueError"),
        ("class KernelDied(Exception): pass\nraise KernelDied('not really')", "KernelDied"),
        ("class KernelBusy(Exception): pass\nraise KernelBusy", "KernelBusy"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("del __builtins__\nprint(nothing)", "NameError"),
    ] {
        let execution = rig.run(code).await;
        if name == "UsageError" && execution.error.is_none() {
            assert!(execution.stderr.contains("nosuchmagic"), "{execution:?}");
            continue;
        }
        let error = execution.error.unwrap_or_else(|| panic!("no error: {code}"));
        assert_eq!((execution.exit_code, error.ename.as_str()), (1, name), "{code}");
        assert!(error.evalue.len() < 20_000 && error.traceback.len() < 100_000, "{code}");
        assert!(!execution.variables_lost, "{code}");
    }
    rig.prints("print(1)", "1\n").await;
}

#[tokio::test]
async fn sys_exit_gives_its_code_and_the_kernel_lives_on() {
    let rig = Rig::start().await;
    rig.run("x = 7").await;
    for (code, expected) in [
        ("import sys; sys.exit(3)", 3),
        ("exit(4)", 4),
        ("quit()", 0),
        ("raise SystemExit('stop: no data')", 1),
        // More than an exit status of the system holds; 256 would be no success either.
        ("sys.exit(300)", 300),
        ("sys.exit(256)", 256),
        // Told as the system does: -1 means something else here.
        ("sys.exit(-1)", 255),
        ("sys.exit(1 << 100_000)", 1),
    ] {
        let execution = rig.run(code).await;
        assert_eq!(execution.exit_code, expected, "{code}");
        assert_eq!(execution.error.is_some(), expected != 0, "{code}");
        assert!(!execution.variables_lost);
    }
    assert_eq!(rig.run("sys.exit(300)").await.error.unwrap().evalue, "300");
    assert!(rig.run("sys.exit('stop: no data')").await.stderr.contains("stop: no data"));
    rig.prints("print(x)", "7\n").await;
}

#[tokio::test]
async fn asking_for_input_is_refused_with_what_to_do_instead() {
    let rig = Rig::start().await;
    for code in ["input('name? ')", "import getpass; getpass.getpass()"] {
        let error = rig.run(code).await.error.unwrap();
        assert!(error.evalue.contains("without a person at the keyboard"), "{}", error.evalue);
    }
    rig.prints("import sys; print(repr(sys.stdin.read()))", "''\n").await;
}

#[tokio::test]
async fn await_magics_and_shell_commands_work_in_a_cell() {
    let rig = Rig::start().await;
    rig.prints("import asyncio\nawait asyncio.sleep(0)\nprint(await asyncio.gather(asyncio.sleep(0, 'a')))", "['a']\n").await;
    rig.prints("!echo from the shell; exit 3\nprint(_exit_code)", "from the shell\n3\n").await;
    rig.prints("names = !echo a; echo b\nprint(list(names))", "['a', 'b']\n").await;
    rig.prints("%%capture out\nprint('caught')", "").await;
    rig.prints("print(out.stdout, end='')", "caught\n").await;
    let timed = rig.run("%timeit -n1 -r1 1 + 1").await;
    assert!(timed.stdout.contains("1 loop"), "{}", timed.stdout);
    rig.prints("%matplotlib inline\nprint('ok')", "ok\n").await;
}

#[tokio::test]
async fn a_missing_module_is_told_with_what_is_installed() {
    let rig = Rig::start().await;
    let error = rig.run("import torch_geometric_temporal").await.error.unwrap();
    assert_eq!(error.ename, "ModuleNotFoundError");
    assert!(error.evalue.contains("no network") && error.evalue.contains("pandas"), "{}", error.evalue);
}

#[tokio::test]
async fn new_and_changed_variables_are_told_with_type_and_shape() {
    let rig = Rig::start().await;
    let first = rig.run("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3]})\nn = 5\n_hidden = 1").await;
    let told: Vec<_> = first.variables.iter().map(|v| (v.name.as_str(), v.type_name.as_str(), v.shape.clone())).collect();
    assert_eq!(told, [("df", "DataFrame", Some(vec![3, 1])), ("n", "int", None)]);
    let second = rig.run("from math import sqrt\nfrom decimal import Decimal\nfrom textwrap import dedent\ndf['b'] = 0").await;
    let told: Vec<_> = second.variables.iter().map(|v| (v.name.as_str(), v.shape.clone())).collect();
    assert_eq!(told, [("df", Some(vec![3, 2]))]);
    let all = rig.sandbox.variables(None).await.unwrap();
    assert_eq!(all.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["df", "n"]);
    assert!(all[0].bytes.unwrap() > 0 && all[0].repr.contains('b'));
    let one = rig.sandbox.variables(Some("n")).await.unwrap();
    assert_eq!((one.len(), one[0].repr.as_str()), (1, "5"));
    assert!(rig.sandbox.variables(Some("nothing")).await.unwrap().is_empty());
}

#[tokio::test]
async fn variables_with_hostile_descriptions_are_bounded() {
    let rig = Rig::start().await;
    rig.run("class Slow:\n    def __repr__(self):\n        while True: pass\nclass Broken:\n    def __repr__(self): raise ValueError\nclass Huge:\n    def __repr__(self): return 'x' * 10**7\na, b, c, d = Slow(), Broken(), Huge(), [[[['x' * 10**6] * 1000] * 1000]]").await;
    let all = rig.sandbox.variables(None).await.unwrap();
    let repr = |name: &str| all.iter().find(|v| v.name == name).unwrap().repr.clone();
    assert!(repr("a").contains("too long"));
    assert!(repr("b").contains("ValueError"));
    assert!(all.iter().all(|variable| variable.repr.len() < 10_000));
    rig.prints("print(1)", "1\n").await;
}

#[tokio::test]
async fn completion_and_inspection_know_the_live_objects() {
    let rig = Rig::start().await;
    rig.run("import pandas as pd\ndf = pd.DataFrame({'a': [1]})").await;
    let reply: Value = rig.link.ask("complete_request", json!({"code": "df.descr", "cursor_pos": 8})).await.unwrap();
    assert!(reply["matches"].to_string().contains("describe"), "{reply}");
    let reply: Value = rig.link.ask("inspect_request", json!({"code": "df.describe", "cursor_pos": 11})).await.unwrap();
    assert!(reply["data"]["text/plain"].as_str().unwrap().contains("descriptive statistics"), "{reply}");
    let pong: Value = rig.link.ask("ping_request", json!({})).await.unwrap();
    assert_eq!(pong["kernel_state"], "idle");
}

#[tokio::test]
async fn a_busy_kernel_says_so_to_other_questions() {
    let rig = Rig::start().await;
    let marker = rig.workdir().join("marker");
    let options = ExecuteOptions { timeout: Duration::from_secs(120), ..ExecuteOptions::default() };
    let cancel = tokio_util::sync::CancellationToken::new();
    let running = rig.sandbox.execute("open('marker', 'w')\nimport time\ntime.sleep(100)", &options, &|_| {}, &cancel);
    let asking = async {
        crate::rig::appears(&marker).await;
        let asked = rig.sandbox.variables(None).await;
        let files = rig.sandbox.list_files().await.unwrap();
        cancel.cancel();
        (asked, files)
    };
    let (execution, (asked, files)) = tokio::join!(running, asking);
    assert_eq!(asked, Err(SandboxError::Busy));
    assert_eq!(files, [("marker".to_owned(), 0)], "other requests are answered during an execution");
    assert_eq!(execution.unwrap().exit_code, 130);
}

#[tokio::test]
async fn a_restarted_kernel_has_lost_its_variables_and_kept_the_files() {
    let rig = Rig::start().await;
    rig.run("x = 1\nopen('kept.txt', 'w').write('k')").await;
    rig.sandbox.restart_kernel().await.unwrap();
    assert_eq!(rig.run("x").await.error.unwrap().ename, "NameError");
    rig.prints("print(open('kept.txt').read())", "k\n").await;
}
