package main

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// relay is the network between a process and the engine.
type relay struct {
	address, to string

	mu     sync.Mutex
	broken bool
	open   map[net.Conn]bool
}

func newRelay(t testing.TB, to string) *relay {
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: l.Addr().String(), to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = l.Close(); r.cut(true) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(conn)
		}
	}()
	return r
}

// cut loses what is on the wire, and everything after it, until it is mended.
func (r *relay) cut(broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = broken
	if broken {
		for conn := range r.open {
			_ = conn.Close()
		}
		clear(r.open)
	}
}

func (r *relay) hold(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range conns {
		if r.broken {
			_ = conn.Close()
			continue
		}
		r.open[conn] = true
	}
	return !r.broken
}

func (r *relay) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	dialer := net.Dialer{Timeout: time.Second}
	other, err := dialer.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer func() { _ = other.Close() }()
	if !r.hold(conn, other) {
		return
	}
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{conn, other}, {other, conn}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = pair[0].Close(), pair[1].Close()
		})
	}
	both.Wait()
}
