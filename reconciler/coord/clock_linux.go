package coord

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot includes the time in which the machine slept.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0 // the other clocks must do
	}
	return time.Duration(ts.Nano())
}
