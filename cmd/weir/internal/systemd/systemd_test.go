package systemd

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestTell(t *testing.T) {
	dir, err := os.MkdirTemp("", "sd") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	sockets := map[string]string{"path": filepath.Join(dir, "s")}
	if runtime.GOOS == "linux" {
		sockets["abstract"] = "@weir-test-" + filepath.Base(dir)
	}
	for name, socket := range sockets {
		t.Run(name, func(t *testing.T) {
			l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			m, err := Open(environment("NOTIFY_SOCKET", socket, "WATCHDOG_USEC", "30000000", "WATCHDOG_PID", strconv.Itoa(os.Getpid())))
			if err != nil || !m.Listens() || m.Watchdog() != 30*time.Second {
				t.Fatalf("%+v, %v", m, err)
			}
			if err := m.Tell(Ready, "STATUS=two\nMAINPID=1"); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 1024)
			n, err := l.Read(buf)
			if got, want := string(buf[:n]), "READY=1\nSTATUS=two MAINPID=1"; got != want || err != nil {
				t.Errorf("told %q, want %q, %v", got, want, err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	for name, tc := range map[string]struct {
		env      []string
		fault    string
		listens  bool
		watchdog time.Duration
	}{
		"nobody":               {},
		"watchdog alone":       {env: []string{"WATCHDOG_USEC", "1000"}},
		"no watchdog":          {env: []string{"NOTIFY_SOCKET", "/run/x"}, listens: true},
		"watchdog of all":      {env: []string{"NOTIFY_SOCKET", "/run/x", "WATCHDOG_USEC", "1000"}, listens: true, watchdog: time.Millisecond},
		"watchdog of another":  {env: []string{"NOTIFY_SOCKET", "/run/x", "WATCHDOG_USEC", "1000", "WATCHDOG_PID", "1"}, listens: true},
		"no number":            {env: []string{"NOTIFY_SOCKET", "/run/x", "WATCHDOG_USEC", "soon"}, fault: "WATCHDOG_USEC"},
		"never":                {env: []string{"NOTIFY_SOCKET", "/run/x", "WATCHDOG_USEC", "0"}, fault: "WATCHDOG_USEC"},
		"more than time holds": {env: []string{"NOTIFY_SOCKET", "/run/x", "WATCHDOG_USEC", "9223372036854775807"}, fault: "WATCHDOG_USEC"},
		"no address":           {env: []string{"NOTIFY_SOCKET", "vsock:2:9"}, fault: "NOTIFY_SOCKET"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Open(environment(tc.env...))
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || m.Listens() != tc.listens || m.Watchdog() != tc.watchdog {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

// A manager that is gone is an error and nothing worse; none at all is no error.
func TestTellNobody(t *testing.T) {
	if err := (Manager{}).Tell(Ready); err != nil {
		t.Error(err)
	}
	m, err := Open(environment("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone")))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Tell(Ready); err == nil {
		t.Error("a socket that is not there took something")
	}
}
