package state

import (
	"os"
	"syscall"
	"time"
)

// changeTime returns the time of the last change of a file's content or attributes. Unlike the time of the last write,
// a program cannot set it.
func changeTime(info os.FileInfo) time.Time {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return time.Unix(s.Ctim.Unix())
	}
	return time.Time{}
}
