//! Profiles are made by a worker, apart from the kernel.

use codeinterp::agent::ports::{ProfileOptions, Sandbox, SandboxError};
use codeinterp::profile::ProfileOutcome;
use tokio_util::sync::CancellationToken;

use crate::rig::Rig;

#[tokio::test]
async fn a_put_file_is_profiled_without_touching_the_kernel() {
    let rig = Rig::start().await;
    rig.put("data/sales.csv", b"region,amount\nnorth,1\nsouth,2\nsouth,\n").await;
    let names = ["data/sales.csv".to_owned(), "missing.csv".to_owned()];
    let outcomes = rig.sandbox.profile(&names, &ProfileOptions::default(), &|_| {}, &CancellationToken::new()).await.unwrap();
    let profile = outcomes[0].profile().unwrap();
    assert_eq!((profile.file.as_str(), profile.rows, profile.columns), ("data/sales.csv", Some(3), Some(2)));
    assert_eq!(profile.columns_detail[1].missing, 1);
    assert!(matches!(&outcomes[1], ProfileOutcome::Failed { file, .. } if file == "missing.csv"), "{:?}", outcomes[1]);
    assert!(rig.sandbox.variables(None).await.unwrap().is_empty());
    rig.prints(&format!("import pandas as pd\ndf = {}\nprint(df.shape)", profile.load.as_deref().unwrap()), "(3, 2)\n").await;
}

#[tokio::test]
async fn a_cancelled_profile_ends_and_the_next_one_works() {
    let rig = Rig::start().await;
    rig.put("a.csv", b"a\n1\n").await;
    let names = ["a.csv".to_owned()];
    let cancel = CancellationToken::new();
    cancel.cancel();
    let cancelled = rig.sandbox.profile(&names, &ProfileOptions::default(), &|_| {}, &cancel).await;
    assert_eq!(cancelled, Err(SandboxError::Cancelled));
    let outcomes = rig.sandbox.profile(&names, &ProfileOptions::default(), &|_| {}, &CancellationToken::new()).await.unwrap();
    assert_eq!(outcomes[0].profile().unwrap().rows, Some(1));
}
