package main

import (
	"net"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdNotify listens as a service manager does, puts the socket's address into
// NOTIFY_SOCKET, and writes what it is told to a file, a line each.
func cmdNotify(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: notify FILE")
	}
	dir, err := os.MkdirTemp("", "sd") // a socket's path is bounded to some hundred bytes
	ts.Check(err)
	ts.Defer(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			if _, err := f.Write(append(buf[:n:n], '\n')); err != nil {
				return
			}
		}
	}()
	ts.Defer(func() {
		_ = l.Close()
		<-done
		_ = f.Close()
	})
	ts.Setenv("NOTIFY_SOCKET", socket)
}
