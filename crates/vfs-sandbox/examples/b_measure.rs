//! Scratch measurement.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use std::time::Instant;
use vfs_core::*;
use vfs_sandbox::os::*;
use vfs_shell::*;
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dir = tempfile::tempdir().unwrap();
    let bare = LocalShellBackend::open(dir.path(), ShellConfig::new()).unwrap();
    let t = Instant::now();
    let sandbox = OsSandbox::open(SandboxConfig::new(dir.path()).helper(Helper::At(std::env::args().nth(1).unwrap().into()))).await.unwrap();
    println!("open {:?}\n{}", t.elapsed(), sandbox.report());
    let nohelper = OsSandbox::open(SandboxConfig::new(dir.path()).helper(Helper::Unused)).await.unwrap().into_backend().unwrap();
    let sandbox = sandbox.into_backend().unwrap();
    let mut times = [vec![], vec![], vec![]];
    for _ in 0..100 {
        for (i, (b, cwd)) in [(&bare as &dyn Backend, "/"), (&sandbox, "/workspace"), (&nohelper, "/workspace")].iter().enumerate() {
            let t = Instant::now();
            let r = b.as_shell().unwrap().execute(&OpContext::new(), ExecuteRequest::new("true").cwd(VfsPath::parse(cwd).unwrap())).await.unwrap();
            assert_eq!(r.exit_code, Some(0));
            times[i].push(t.elapsed());
        }
    }
    for t in &mut times { t.sort(); println!("min {:?} median {:?} max {:?}", t[0], t[50], t[99]); }
}
