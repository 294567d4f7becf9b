// Package systemd tells the service manager that started the process how it is
// doing, over the datagram socket that the environment names. The protocol is a few
// lines of text, as sd_notify(3) has it; other managers speak it as well.
package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What is told. A status is added as STATUS=text.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)

// Reloading are the lines that say that a reload begins now. A manager that waits for
// reloads (Type=notify-reload) asks for the time, to know which of them is meant.
func Reloading() []string {
	lines := []string{"RELOADING=1"}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err == nil {
		lines = append(lines, "MONOTONIC_USEC="+strconv.FormatInt(now.Nano()/1000, 10))
	}
	return lines
}

// Extend asks for more time for what is under way, a start or a stop: d from now on.
func Extend(d time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(d.Microseconds(), 10)
}

// Status is a line for people.
func Status(text string) string { return "STATUS=" + text }

// Manager is the service manager. Its zero value stands for none: what it is told
// goes nowhere.
type Manager struct {
	socket   string
	watchdog time.Duration
}

// Open reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and opens nothing.
// A watchdog that is meant for another process is none.
func Open(getenv func(string) string) (Manager, error) {
	m := Manager{socket: getenv("NOTIFY_SOCKET")}
	if m.socket == "" {
		return m, nil
	}
	// An address that begins with @ is in the abstract name space, which net knows.
	if !strings.HasPrefix(m.socket, "/") && !strings.HasPrefix(m.socket, "@") {
		return Manager{}, fmt.Errorf("read NOTIFY_SOCKET: %q is neither a path nor an abstract name; unset it where no service manager listens", m.socket)
	}
	usec := getenv("WATCHDOG_USEC")
	if pid := getenv("WATCHDOG_PID"); usec == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m, nil
	}
	n, err := strconv.ParseUint(usec, 10, 63)
	if err != nil || n == 0 || n > uint64(24*time.Hour/time.Microsecond) {
		return Manager{}, fmt.Errorf("read WATCHDOG_USEC: %q is no number of microseconds up to a day", usec)
	}
	m.watchdog = time.Duration(n) * time.Microsecond
	return m, nil
}

// Listens reports whether there is a manager to tell.
func (m Manager) Listens() bool { return m.socket != "" }

// Watchdog is how often Alive is to be told at least, 0 where nobody waits for it.
// Half of it is a good pace.
func (m Manager) Watchdog() time.Duration { return m.watchdog }

// Tell sends lines in one datagram. Line breaks inside of one become spaces.
func (m Manager) Tell(lines ...string) error {
	if m.socket == "" {
		return nil
	}
	for i := range lines {
		lines[i] = strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, lines[i])
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell service manager: %w", err)
	}
	_, err = conn.Write([]byte(strings.Join(lines, "\n")))
	if closed := conn.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("tell service manager: %w", err)
	}
	return nil
}
