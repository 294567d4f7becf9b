package worker

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that has confined itself opens nothing, starts nothing, reaches nobody, and
// cannot undo any of it, in no thread. It goes on all the same.
func TestConfined(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs more than a worker may have")
	}
	cmd := role(t, os.Args[0], "attempts")
	cmd.Env = []string{}
	out, err := cmd.Output()
	if err != nil || !strings.HasSuffix(string(out), "done\n") {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "lacks "); ok {
			t.Logf("this machine lacks %s", rest)
			// Kernels and containers may be without these; what the filter of system calls
			// refuses does not hang on them.
			if !strings.Contains(rest, "Landlock") && !strings.Contains(rest, "oom_score_adj") {
				t.Errorf("lacks %s", rest)
			}
		} else if strings.HasPrefix(line, "could ") {
			t.Error(line)
		}
	}
}

func attempts() {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // someone to reach
	if err != nil {
		fmt.Println("could not listen before", err)
	}
	parent := os.Getppid()
	for _, l := range confine(Limits{Memory: 512 << 20, CPU: time.Minute}) {
		fmt.Println("lacks", l)
	}
	if env := os.Environ(); len(env) != 0 {
		fmt.Println("could see", env)
	}
	tries := map[string]func() error{
		"open a file":         func() error { _, err := os.ReadFile("/etc/passwd"); return err },
		"read its own memory": func() error { _, err := os.ReadFile("/proc/self/mem"); return err },
		"see a file":          func() error { _, err := os.Stat("/etc/passwd"); return err },
		"list a directory":    func() error { _, err := os.ReadDir("/"); return err },
		"write a file":        func() error { return os.WriteFile("/tmp/weir-worker-wrote", nil, 0o600) },
		"remove a file":       func() error { return unix.Unlink("/tmp/weir-worker-nothing") },
		"connect":             func() error { _, err := net.Dial("tcp", listener.Addr().String()); return err },
		"listen":              func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err },
		"make a socket":       func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0); return err },
		"make a pair":         func() error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
		"accept": func() error {
			f, err := listener.(*net.TCPListener).File()
			if err == nil {
				_, _, err = unix.Accept(int(f.Fd()))
			}
			return err
		},
		"start a program":   func() error { return exec.Command("/bin/true").Run() },
		"become a program":  func() error { return unix.Exec("/bin/true", nil, nil) },
		"signal its parent": func() error { return unix.Kill(parent, 0) },
		"signal another":    func() error { return unix.Tgkill(parent, parent, 0) },
		"raise a limit": func() error {
			return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 10, Max: 10})
		},
		"map code": func() error {
			_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
			return err
		},
		"trace":             func() error { return unix.PtraceAttach(parent) },
		"use io_uring":      func() error { _, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); return fault(e) },
		"open by a handle":  func() error { _, err := unix.PidfdOpen(parent, 0); return err },
		"make a process":    func() error { _, _, e := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0); return fault(e) },
		"leave a namespace": func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	}
	for name, try := range tries {
		for range 3 { // in threads that may differ
			done := make(chan error)
			go func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				done <- try()
			}()
			if err := <-done; err == nil {
				fmt.Println("could", name)
			} else {
				fmt.Println("refused to", name+":", err)
			}
		}
	}
	// Memory, threads and timers work as before.
	kept := make([][]byte, 0, 64)
	for range 64 {
		kept = append(kept, make([]byte, 1<<20))
	}
	runtime.GC()
	runtime.KeepAlive(kept)
	time.Sleep(20 * time.Millisecond)
	fmt.Println("done")
}

func fault(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
