package servicemanager

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestWatchdog(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	for name, tc := range map[string]struct {
		socket, usec, pid string
		fault             string
		want              time.Duration
	}{
		"nobody":               {},
		"watchdog alone":       {usec: "soon"},
		"no watchdog":          {socket: "/run/x"},
		"watchdog of all":      {socket: "/run/x", usec: "1000", want: time.Millisecond},
		"watchdog of this":     {socket: "@x", usec: "30000000", pid: self, want: 30 * time.Second},
		"watchdog of another":  {socket: "/run/x", usec: "1000", pid: "1"},
		"no number":            {socket: "/run/x", usec: "soon", fault: "WATCHDOG_USEC"},
		"never":                {socket: "/run/x", usec: "0", fault: "WATCHDOG_USEC"},
		"more than time holds": {socket: "/run/x", usec: "9223372036854775807", fault: "WATCHDOG_USEC"},
		"no process":           {socket: "/run/x", usec: "1000", pid: "me", fault: "WATCHDOG_PID"},
		"no address":           {socket: "vsock:2:9", fault: "NOTIFY_SOCKET"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NOTIFY_SOCKET", tc.socket)
			t.Setenv("WATCHDOG_USEC", tc.usec)
			t.Setenv("WATCHDOG_PID", tc.pid)
			every, err := watchdog()
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) || every != tc.want {
				t.Errorf("%v, %v", every, err)
			}
		})
	}
}
