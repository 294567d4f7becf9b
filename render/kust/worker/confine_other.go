//go:build !linux

package worker

import (
	"syscall"
	"time"
)

func attributes() *syscall.SysProcAttr { return nil }

// usedCPU returns 0, because the time is unknown here: the worker is kept as long as it is small.
func usedCPU() time.Duration { return 0 }

// confine can take nothing from this process here: a build is ended by its time alone.
func confine(Limits) (lacks []string) {
	return []string{"bounds on memory and CPU time, and refusals of files, sockets and programs: this system has none that weir knows"}
}
