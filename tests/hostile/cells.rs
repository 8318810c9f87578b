//! The generator: kinds of attacks, and code for each with parameters that dice choose.
//!
//! A cell prints `BREACH` where it gets what it must not get. What it is refused does not matter here: other tests look at that.

use crate::canaries::Canaries;

/// A random sequence (`SplitMix64` of Steele, Lea and Flood, 2014): the same for the same seed everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64, index: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x0001_0000_0001).wrapping_add(index));
        dice.roll();
        dice
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least `low`, below `high`.
    fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.roll() % (high - low)
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[usize::try_from(self.range(0, choices.len() as u64)).unwrap()]
    }
}

/// One piece of hostile code.
pub struct Cell {
    pub kind: &'static str,
    pub code: String,
}

type Generate = fn(&mut Dice, &Canaries) -> String;

/// Every kind; cell number n is of kind n modulo their count.
pub const KINDS: [(&str, Generate); 15] = [
    ("sockets", sockets),
    ("system calls", system_calls),
    ("files of the host", host_files),
    ("secrets", secrets),
    ("forks", forks),
    ("memory", memory),
    ("scratch", scratch),
    ("floods", floods),
    ("ignored interrupts", deaf),
    ("background work", background),
    ("forged frames", frames),
    ("odd files", odd_files),
    ("deaths", deaths),
    ("signals", signals),
    ("broken interpreter", interpreter),
];

impl Cell {
    pub fn generate(index: usize, dice: &mut Dice, canaries: &Canaries) -> Self {
        let (kind, generate) = KINDS[index % KINDS.len()];
        Self { kind, code: format!("{PRELUDE}{}", generate(dice, canaries)) }
    }
}

const PRELUDE: &str = r"import ctypes, os, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def attempt(action):
    try: return action()
    except Exception as error: print(type(error).__name__, str(error)[:200])
";

fn sockets(dice: &mut Dice, canaries: &Canaries) -> String {
    let family = dice.one_of(&["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"]);
    let kind = dice.one_of(&["SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW", "SOCK_SEQPACKET"]);
    let host = dice.one_of(&["127.0.0.1", "172.17.0.1", "0.0.0.0", "localhost", "10.0.0.1", "169.254.169.254"]);
    let (tcp, udp, folder) = (canaries.tcp_port(), canaries.udp_port(), canaries.folder());
    match dice.range(0, 4) {
        0 => format!(
            "made = attempt(lambda: socket.socket(socket.{family}, socket.{kind}))
if made is not None: print('BREACH', made)"
        ),
        1 => format!(
            "if attempt(lambda: socket.create_connection(('{host}', {tcp}), 1)): print('BREACH')
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('{host}', {udp})))"
        ),
        2 => format!(
            "ours, theirs = socket.socketpair()
for name in ('{folder}/canary.sock', '/var/run/docker.sock', '/run/docker.sock'):
    attempt(lambda: ours.connect(name) or print('BREACH', name))
    attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', name) and print('BREACH', name))"
        ),
        // socket(2), connect(2) and io_uring_setup(2) by their numbers, past every wrapper of Python's.
        _ => "for number in (41, 425):
    if libc.syscall(number, 2, 1, 0) >= 0: print('BREACH', number)"
            .to_owned(),
    }
}

fn system_calls(dice: &mut Dice, _canaries: &Canaries) -> String {
    // Names and numbers of x86-64: mount, ptrace, unshare, setns, bpf, keyctl, add_key, perf_event_open, userfaultfd, pivot_root,
    // chroot, init_module, kexec_load, open_by_handle_at, reboot, swapon, iopl, io_uring_setup, process_vm_readv, mknod of a device.
    let number = dice.one_of(&[
        "165", "101", "272", "308", "321", "250", "248", "298", "323", "155", "161", "175", "246", "304", "169", "167", "172", "425", "310",
    ]);
    let (a, b, c) = (dice.range(0, 1 << 31), dice.range(0, 4096), dice.range(0, 8));
    format!(
        "print(libc.syscall({number}, {a}, {b}, {c}, 0, 0) == -1 or 'BREACH')
attempt(lambda: os.mknod('device', 0o600 | 0o60000, os.makedev(8, {c})) or print('BREACH'))
attempt(lambda: os.setuid(0) or (os.getuid() == 0 and print('BREACH')))
attempt(lambda: os.chroot('/tmp') or print('BREACH'))"
    )
}

fn host_files(dice: &mut Dice, canaries: &Canaries) -> String {
    let folder = canaries.folder();
    let name = dice.one_of(&["canary.csv", "canary.sh", "private/key.pem"]);
    let way = dice.one_of(&["", "/proc/1/root", "/proc/self/root", "../../../../../..", "/workspace/../../..", "/proc/1/cwd/../../.."]);
    let mode = dice.one_of(&["r", "w", "a", "r+"]);
    match dice.range(0, 3) {
        0 => format!("attempt(lambda: open('{way}{folder}/{name}', '{mode}') and print('BREACH'))"),
        1 => format!(
            "attempt(lambda: os.symlink('{folder}/{name}', 'chart.png'))
attempt(lambda: os.symlink('{folder}', 'out'))
attempt(lambda: os.link('{folder}/{name}', 'hard.png') or print('BREACH'))
attempt(lambda: open('chart.png', '{mode}') and print('BREACH'))
attempt(lambda: open('out/new', 'w') and os.path.exists('{folder}') and print('BREACH'))"
        ),
        _ => "for path in ('/etc/canary', '/usr/canary', '/sys/canary', '/proc/sys/kernel/hostname', '/dev/canary', '/opt/canary', '/canary'):
    attempt(lambda: open(path, 'w') and print('BREACH', path))
for path in ('/etc/shadow', '/proc/kcore', '/dev/mem', '/dev/sda', '/dev/vda', '/root/.ssh', '/home'):
    attempt(lambda: (os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(1)) and print('BREACH', path))"
            .to_owned(),
    }
}

fn secrets(dice: &mut Dice, canaries: &Canaries) -> String {
    let pid = canaries.pid();
    let file = dice.one_of(&["environ", "cmdline", "maps", "fd/0", "root/etc/hostname", "mem"]);
    format!(
        "for pid in ('self', '1', '2', str(os.getppid()), '{pid}', *[p for p in os.listdir('/proc') if p.isdigit()]):
    text = attempt(lambda: open(f'/proc/{{pid}}/{file}', 'rb').read(1 << 16)) or b''
    print(pid, text[:4000])
print(os.environ, sys.argv)
attempt(lambda: os.kill({pid}, 9))"
    )
}

fn forks(dice: &mut Dice, _canaries: &Canaries) -> String {
    let session = dice.one_of(&["os.setsid()", "pass", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"]);
    let then = dice.one_of(&["time.sleep(60)", "while True: pass", "os.fork(); os.fork(); time.sleep(60)"]);
    let count = dice.range(20, 3000);
    match dice.range(0, 3) {
        0 => format!(
            "for _ in range({count}):
    try:
        if os.fork() == 0:
            {session}
            {then}
            os._exit(0)
    except OSError: break"
        ),
        1 => "while True:
    try: os.fork()
    except OSError: pass"
            .to_owned(),
        _ => format!(
            "started = 0
try:
    for _ in range({count}):
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        started += 1
except RuntimeError as error: print(error)
subprocess.Popen('sh -c \"setsid sleep 60 &\" & setsid sleep 60', shell=True)"
        ),
    }
}

fn memory(dice: &mut Dice, _canaries: &Canaries) -> String {
    let size = dice.range(1, 64);
    match dice.range(0, 4) {
        0 => format!("blocks = []\nwhile True: blocks.append(bytearray(b'x' * ({size} << 20)))"),
        1 => format!("import numpy\nblocks = []\nwhile True: blocks.append(numpy.ones({size} << 17))"),
        2 => "import mmap\nmaps = []\nwhile True:\n    maps.append(mmap.mmap(-1, 64 << 20))\n    for at in range(0, 64 << 20, 4096): maps[-1][at] = 1"
            .to_owned(),
        _ => format!(
            "for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        block = bytearray(b'x' * ({size} + 160 << 20))
        time.sleep(5)
        os._exit(0)
for _ in range(4): os.wait()"
        ),
    }
}

fn scratch(dice: &mut Dice, _canaries: &Canaries) -> String {
    let folder = dice.one_of(&["/workspace", "/tmp", "/dev/shm"]);
    let size = dice.range(1, 16);
    match dice.range(0, 3) {
        0 => format!(
            "try:
    with open('{folder}/full', 'wb') as file:
        while True: file.write(b'x' * ({size} << 20))
except OSError as error: print(error)"
        ),
        1 => format!(
            "try:
    for number in range(100_000): open(f'{folder}/{{number}}', 'w').close()
except OSError as error: print(error)
subprocess.run('rm -rf {folder}/[0-9]*', shell=True)"
        ),
        _ => "attempt(lambda: open('sparse.bin', 'wb').truncate(10 << 30))
deep = '/'.join(['d'] * 200)
attempt(lambda: os.makedirs(deep))
subprocess.run('rm -rf d sparse.bin', shell=True)"
            .to_owned(),
    }
}

fn floods(dice: &mut Dice, _canaries: &Canaries) -> String {
    let fd = dice.range(1, 3);
    let size = dice.range(1, 100_000);
    match dice.range(0, 4) {
        0 => format!("while True: os.write({fd}, b'x' * {size})"),
        1 => format!("for number in range(2_000_000): print(number, end={})", dice.one_of(&["'\\n'", "''", "'\\r'", "'\\x1b[2J'"])),
        2 => "from IPython.display import display, clear_output, update_display
for number in range(5000): display({'text/plain': str(number)}, raw=True, display_id='x')"
            .to_owned(),
        _ => "from IPython.display import display
for number in range(40): display({'text/html': '<script>alert(1)</script>' * 100_000, 'image/png': 'A' * 4_000_000}, raw=True)"
            .to_owned(),
    }
}

fn deaf(dice: &mut Dice, _canaries: &Canaries) -> String {
    let ignore = dice.one_of(&[
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))",
        "signal.signal(signal.SIGINT, lambda *_: None)",
        "pass",
    ]);
    let wait = dice.one_of(&[
        "while True: pass",
        "while True:\n    try: time.sleep(60)\n    except BaseException: pass",
        "libc.sleep(600)",
        "while True: libc.pause()",
        "threading.Lock().acquire() and threading.Event().wait()",
        "sum(range(10**14))",
        "os.kill(os.getpid(), signal.SIGSTOP)",
    ]);
    format!("{ignore}\n{wait}")
}

fn background(dice: &mut Dice, _canaries: &Canaries) -> String {
    let what = dice.one_of(&["print('late')", "os.write(1, b'late\\n')", "open(f'late{time.time_ns()}', 'w')", "[0] * 10**6"]);
    let how = dice.one_of(&[
        "threading.Thread(target=work, daemon=True).start()",
        "import concurrent.futures; concurrent.futures.ThreadPoolExecutor(8).submit(work)",
        "if os.fork() == 0: os.setsid(); work()",
        "if os.fork() == 0:\n    if os.fork() == 0: work()\n    os._exit(0)",
    ]);
    format!(
        "def work():
    for _ in range(20000):
        {what}
        time.sleep(0.0005)
    os._exit(0) if threading.current_thread() is threading.main_thread() else None
{how}"
    )
}

fn frames(dice: &mut Dice, _canaries: &Canaries) -> String {
    let length = dice.one_of(&["len(data)", "0", "1", "0xffffffff", "1 << 26"]);
    let kind = dice.range(0, 5);
    let message = dice.one_of(&["reply", "hello", "display_data", "execute_result", "forked", "exited", "ready", "failed", "shown"]);
    let pid = dice.one_of(&["os.getpid()", "os.getppid()", "1", "2"]);
    format!(
        "data = b'{{\"type\":\"{message}\",\"{message}\":1,\"pid\":1,\"id\":\"x\",\"content\":{{\"status\":\"ok\"}}}}'
frame = struct.pack('>IB', {length}, {kind}) + data
for name in os.listdir('/proc/self/fd'):
    if int(name) > 2: attempt(lambda: os.write(int(name), frame))
for name in attempt(lambda: os.listdir(f'/proc/{{{pid}}}/fd')) or range(16):
    def forge():
        fd = os.open(f'/proc/{{{pid}}}/fd/{{name}}', os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, frame)
    attempt(forge)"
    )
}

fn odd_files(dice: &mut Dice, canaries: &Canaries) -> String {
    let folder = canaries.folder();
    let name = dice.one_of(&[
        ".git/hooks/post-commit",
        ".vscode/settings.json",
        "../../escape.csv",
        "a\\\\nb.png",
        "\\\\x1b]8;;x.png",
        "\\\\u202egnp.exe",
        "-rf.csv",
        "con.png",
        "a:b.csv",
    ]);
    format!(
        "name = '{name}'
attempt(lambda: os.makedirs(os.path.dirname(name) or '.', exist_ok=True))
attempt(lambda: open(name, 'w').write('x'))
attempt(lambda: os.mkfifo('chart.png'))
attempt(lambda: os.symlink('{folder}/canary.csv', 'data.csv'))
attempt(lambda: os.symlink('loop', 'loop'))
attempt(lambda: os.link('chart.png', 'twice.png'))
attempt(lambda: open(b'\\xff\\xfe.csv', 'w').write('x'))
def swap():
    for _ in range(300):
        try:
            open('swap.csv', 'w').write('y' * 100000)
            os.unlink('swap.csv')
            os.symlink('/etc/passwd', 'swap.csv')
            os.unlink('swap.csv')
        except OSError: pass
threading.Thread(target=swap, daemon=True).start()
attempt(lambda: os.chmod('.', {}))",
        dice.one_of(&["0o700", "0", "0o100", "0o500"])
    )
}

fn deaths(dice: &mut Dice, _canaries: &Canaries) -> String {
    let code = dice.range(0, 256);
    dice.one_of(&[
        "os._exit(CODE)",
        "os.abort()",
        "ctypes.string_at(0)",
        "os.kill(os.getpid(), 9)",
        "sys.setrecursionlimit(10**9)\ndef deep(): deep()\ndeep()",
        "os.closerange(0, 4096)",
        "os.execv('/bin/sh', ['sh', '-c', 'echo last; exit CODE'])",
        "os.execv(sys.executable, [sys.executable, '-c', 'while True: pass'])",
        "os.close(1); os.close(2); sys.exit(CODE)",
        "threading.Timer(0.2, os._exit, (CODE,)).start()",
        "raise SystemExit(CODE)",
        "raise KeyboardInterrupt",
    ])
    .replace("CODE", &code.to_string())
}

fn signals(dice: &mut Dice, _canaries: &Canaries) -> String {
    let number = dice.one_of(&["SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGSEGV", "SIGHUP", "SIGCHLD", "SIGCONT", "SIGUSR1"]);
    let target = dice.one_of(&["os.getppid()", "1", "-1", "0", "2", "grand"]);
    let times = dice.range(1, 50);
    format!(
        "grand = attempt(lambda: int(open(f'/proc/{{os.getppid()}}/stat').read().rpartition(')')[2].split()[1])) or 1
for _ in range({times}): attempt(lambda: os.kill({target}, signal.{number}))
time.sleep(0.2)"
    )
}

fn interpreter(dice: &mut Dice, _canaries: &Canaries) -> String {
    dice.one_of(&[
        "sys.modules.clear()",
        "import builtins; vars(builtins).clear()",
        "import gc; gc.disable()\nfor each in gc.get_objects():\n    if isinstance(each, dict) and 'shell' in each: each.clear()",
        "os.environ['LD_PRELOAD'] = '/workspace/x.so'; os.environ.clear(); subprocess.run(['true'])",
        "get_ipython().run_cell = get_ipython().send = None",
        "import json; json.dumps = json.loads = json.JSONEncoder.encode = None",
        "sys.stdout = sys.stderr = sys.__stdout__ = None",
        "sys.settrace(lambda *_: 1 / 0); sys.setprofile(lambda *_: 1 / 0)",
        "threading.Thread.start = None; os.write = os.read = None",
        "import IPython\nfor name in dir(IPython.core.interactiveshell.InteractiveShell):\n    attempt(lambda: setattr(IPython.core.interactiveshell.InteractiveShell, name, None))",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
        "ctypes.memset(id(None), 255, 64)",
        "socket.socket.sendall = socket.socket.recvmsg = lambda *_: b''",
        "os.chdir('/'); sys.path.clear(); del __builtins__",
    ])
    .to_owned()
}
