//! What stands on the host for hostile code to find: files, listeners, a secret in the environment, a process.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command};

use tempfile::TempDir;

const FILES: [&str; 3] = ["canary.csv", "canary.sh", "private/key.pem"];

/// Set up once for each trial; whoever touches one is seen by [`Canaries::check`].
pub struct Canaries {
    /// Stands in files and in the environment of a process.
    pub secret: String,
    folder: TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    process: Child,
    /// What `state` said at first.
    before: Vec<(PathBuf, Vec<u8>, [i64; 4])>,
}

impl Canaries {
    pub fn set() -> Self {
        let secret = format!("canary-{}", uuid::Uuid::new_v4().simple());
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("private")).unwrap();
        for name in FILES {
            fs::write(folder.path().join(name), &secret).unwrap();
        }
        let (tcp, udp) = (TcpListener::bind("0.0.0.0:0").unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
        let unix = UnixListener::bind(folder.path().join("canary.sock")).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        let process = Command::new("sleep").arg("86400").env("CANARY", &secret).spawn().unwrap();
        let mut canaries = Self { secret, folder, tcp, udp, unix, process, before: Vec::new() };
        canaries.before = canaries.state();
        canaries
    }

    /// Where the files lie.
    pub fn folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    pub fn tcp_port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    pub fn udp_port(&self) -> u16 {
        self.udp.local_addr().unwrap().port()
    }

    /// Id of a process of the same user as the server.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Names, contents, and what would show that a file was written and put back: device, inode, times of change.
    fn state(&self) -> Vec<(PathBuf, Vec<u8>, [i64; 4])> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let status = fs::symlink_metadata(&path).unwrap();
                if status.is_dir() {
                    folders.push(path.clone());
                }
                let contents = if status.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                found.push((path, contents, [status.ino().cast_signed(), i64::from(status.mode()), status.ctime(), status.ctime_nsec()]));
            }
        }
        found.sort();
        found
    }

    /// Fails where anything was touched.
    pub fn check(&mut self, place: &str) {
        assert!(self.state() == self.before, "{place}: canary files were changed");
        let nobody = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        assert!(self.tcp.accept().is_err_and(nobody), "{place}: somebody connected by TCP");
        assert!(self.unix.accept().is_err_and(nobody), "{place}: somebody connected by a path");
        assert!(self.udp.recv(&mut [0; 8]).is_err_and(nobody), "{place}: a datagram came");
        assert!(self.process.try_wait().unwrap().is_none(), "{place}: the canary process was ended");
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
