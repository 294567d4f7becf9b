package simulate

import (
	"os"
	"runtime"
	"syscall"
)

// alone runs this program once more, without the thread of Go's scheduler that takes the turn
// from a goroutine that has had it for 10 ms or is in a system call: when it does so, the load
// of the machine decides. That thread, which Go calls sysmon, is the first that a process
// starts; it is stopped before its first instruction, by this process, which traces the other
// one until it ends, and ends as that one does. It returns where that is not to be had.
func alone(program string, env []string) error {
	runtime.LockOSThread() // who traces is a thread
	p, err := os.StartProcess(program, os.Args, &os.ProcAttr{Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return err
	}
	const withThis = 1 << 20 // PTRACE_O_EXITKILL
	began := false
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &s, syscall.WALL, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case pid != p.Pid: // the thread, stopped as it begins, or ended with the rest
		case s.Exited():
			os.Exit(s.ExitStatus())
		case s.Signaled():
			os.Exit(128 + int(s.Signal()))
		case s.TrapCause() == syscall.PTRACE_EVENT_CLONE:
			err = syscall.PtraceDetach(pid)
		case !began:
			began = true
			if err = syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACECLONE|withThis); err == nil {
				err = syscall.PtraceCont(pid, 0)
			}
		default:
			err = syscall.PtraceCont(pid, int(s.StopSignal()))
		}
		if err != nil && err != syscall.EINTR {
			_ = p.Kill()
			return err
		}
	}
}

// inMemory is a directory that no disk is slow for, "" for none: each commit of a daemon's
// state is synced, and a power cut is nothing that the world knows.
func inMemory() string {
	const dir, enough = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || int64(fs.Bavail)*fs.Bsize < enough || syscall.Access(dir, 7) != nil {
		return ""
	}
	return dir
}
