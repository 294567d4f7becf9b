//go:build !linux

package state

import (
	"os"
	"time"
)

// changeTime returns zero: the time of the last write has to suffice.
func changeTime(os.FileInfo) time.Time { return time.Time{} }
