package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributes make the kernel kill a worker when the thread that started it ends. Go's threads end with the
// process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// usedCPU returns the CPU time of this process.
func usedCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// confine permanently removes from this process everything that a build does not need. It returns the
// restrictions that could not be set.
func confine(l Limits) (lacks []string) {
	time.Sleep(time.Nanosecond) // the runtime opens its wait descriptors at the first timer
	lack := func(what string, err error) {
		if err != nil {
			lacks = append(lacks, fmt.Sprintf("%s: %v", what, err))
		}
	}
	lack("to be ended first if memory is short (oom_score_adj)", os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0))
	fence, err := landlock()
	limit := func(what string, resource int, most uint64) {
		lack(what, unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}))
	}
	seconds := uint64(2 * l.CPU / time.Second)                                   //nolint:gosec // It is positive.
	limit("a bound on memory (RLIMIT_DATA)", unix.RLIMIT_DATA, uint64(l.Memory)) //nolint:gosec // It is positive.
	limit("a bound on CPU time (RLIMIT_CPU)", unix.RLIMIT_CPU, seconds)
	limit("no core files (RLIMIT_CORE)", unix.RLIMIT_CORE, 0)
	limit("no files (RLIMIT_NOFILE)", unix.RLIMIT_NOFILE, 0)
	if err == nil {
		err = enclose(fence)
	}
	lack("no files and sockets (Landlock)", err)
	lack("few system calls (seccomp)", filter())
	return lacks
}

// landlock returns a rule set that denies everything that the kernel can deny.
func landlock() (fd int, err error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	files := 13 // number of file access rights in the first version
	switch {
	case abi >= 5:
		files = 16
	case abi >= 3:
		files = 15
	case abi >= 2:
		files = 14
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: 1<<files - 1}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(attr.Handled_access_net)
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size += unsafe.Sizeof(attr.Scoped)
	}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// enclose applies a rule set to every thread, and forbids new privileges.
func enclose(fd int) error {
	defer func() { _ = unix.Close(fd) }()
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// machines are the architectures for which the filter was checked.
var machines = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// needed lists the system calls of Go's runtime and of reading and writing open files. They are permitted
// unconditionally. All others fail.
var needed = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_FCNTL,
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRUSAGE,
	unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_GETRANDOM, unix.SYS_MEMBARRIER,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// filter makes the kernel refuse all system calls that are not needed, for every thread.
func filter() error {
	machine, ok := machines[runtime.GOARCH]
	if !ok {
		return errors.New("not known for " + runtime.GOARCH)
	}
	program := filterFor(machine, uint32(os.Getpid())) //nolint:gosec // It is positive.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]} //nolint:gosec // There are some sixty.
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	if r != 0 {
		return fmt.Errorf("thread %d has another filter", r)
	}
	return nil
}

// filterFor returns the filter's program. The offsets are from struct seccomp_data. Its arguments have
// eight bytes, the lower four first.
func filterFor(machine, self uint32) []unix.SockFilter {
	const number, architecture, arg0, arg2 = 0, 4, 16, 32
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		any    = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K

		allow  = unix.SECCOMP_RET_ALLOW
		refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		kill   = unix.SECCOMP_RET_KILL_PROCESS
	)
	stmt := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }
	jump := func(code uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no}
	}
	p := []unix.SockFilter{
		stmt(load, architecture), jump(equal, machine, 1, 0), stmt(answer, kill),
		stmt(load, number),
	}
	for _, n := range needed {
		p = append(p, jump(equal, n, 0, 1), stmt(answer, allow))
	}
	// when decides about a call by one of its arguments.
	when := func(n uint32, argument uint32, test uint16, k uint32, yes, no uint32) {
		p = append(p, jump(equal, n, 0, 4), stmt(load, argument), jump(test, k, 0, 1), stmt(answer, yes), stmt(answer, no))
	}
	when(unix.SYS_CLONE, arg0, any, unix.CLONE_THREAD, allow, refuse) // threads, but no processes
	when(unix.SYS_TGKILL, arg0, equal, self, allow, refuse)           // to itself
	when(unix.SYS_MMAP, arg2, any, unix.PROT_EXEC, refuse, allow)     // no new executable memory
	when(unix.SYS_MPROTECT, arg2, any, unix.PROT_EXEC, refuse, allow)
	return append(p, jump(equal, unix.SYS_CLONE3, 0, 1), stmt(answer, absent), stmt(answer, refuse))
}
