//! Starting, and what is seen from inside.

use crate::support::{block_on, printed, run, start};

#[test]
fn a_cell_is_executed_and_variables_persist() {
    block_on(async {
        let sandbox = start().await;
        let execution = run(&sandbox, "x = 1 + 1\nx").await;
        assert_eq!((execution.exit_code, execution.result.as_deref()), (0, Some("2")));
        assert_eq!(printed(&sandbox, "print(x + 1)").await.trim(), "3");
        sandbox.stop().await;
    });
}

#[test]
fn the_working_directory_is_workspace_and_the_host_is_not_there() {
    block_on(async {
        let sandbox = start().await;
        let code = "import os\nprint(os.getcwd(), sorted(os.listdir('/')), os.getuid(), os.environ.get('HOME'))";
        let text = printed(&sandbox, code).await;
        assert!(text.starts_with("/workspace "), "{text}");
        for absent in ["'sys'", "'run'", "'boot'", "'srv'", "'mnt'", "'opt'"] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
        assert_eq!(sandbox.info().workdir, "/workspace");
        sandbox.stop().await;
    });
}
