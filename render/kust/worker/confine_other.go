//go:build !linux

package worker

import (
	"syscall"
	"time"
)

func attributes() *syscall.SysProcAttr { return nil }

// usedCPU returns 0, because the CPU time is not available on this system. A worker is then kept as long as
// it is small.
func usedCPU() time.Duration { return 0 }

// confine cannot restrict the process on this system. Only a build's duration limits it.
func confine(Limits) (lacks []string) {
	return []string{"bounds on memory and CPU time, and refusals of files, sockets and programs: this system has none that weir knows"}
}
