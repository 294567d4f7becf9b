// Package embedded runs the embedded AWS as a server on a listener. It stores the state in a file, so that
// it survives a restart.
package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	"github.com/weir-gitops/weir/reconciler/state/files"
)

// saveEvery is the time between two checks for changes of the state.
const saveEvery = 3 * time.Second

// Options configures a server.
type Options struct {
	// Listen is host:port; port 0 chooses a free one.
	Listen string
	// State is a file from which the state is read, if it exists, and to which it is saved. If it is empty,
	// the state is in memory only.
	State string
	// Seed is a JSON file with additional resources; empty for none.
	Seed string
	// Faults is a JSON file with faults to inject, which need not exist. It is read again at each request;
	// empty for none.
	Faults string
	// Realtime uses AWS's real durations instead of seconds.
	Realtime bool
	// Throttle enables AWS's throttling errors when a token bucket is empty.
	Throttle bool
	// Quotas overrides AWS's quotas by name.
	Quotas map[string]int
	Logger *slog.Logger
}

// Server is an emulator with a listener. It serves requests after Run is called.
type Server struct {
	// AWS is the emulator.
	AWS *awsemu.Server

	state    string
	logger   *slog.Logger
	listener net.Listener
	server   *http.Server
	saved    [sha256.Size]byte
	calls    int
}

// New opens the listener and restores the state. It starts no goroutine.
func New(ctx context.Context, o Options) (*Server, error) {
	timings := world.Fast()
	if o.Realtime {
		timings = world.Realistic()
	}
	emu, err := awsemu.New(awsemu.Options{Timings: timings, Throttle: o.Throttle, Quotas: o.Quotas})
	if err != nil {
		return nil, fmt.Errorf("start the embedded AWS: %w", err)
	}
	if o.State != "" {
		if err := readFile(o.State, emu.Load); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load the state of the embedded AWS: %w", err)
		}
	}
	if o.Seed != "" {
		if err := readFile(o.Seed, emu.Seed); err != nil {
			return nil, fmt.Errorf("seed the embedded AWS: %w", err)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	handler := http.Handler(emu)
	if o.Faults != "" {
		file := &faultFile{name: o.Faults, faults: emu.Faults(), next: emu, logger: o.Logger}
		if err := file.read(); err != nil {
			return nil, fmt.Errorf("start the embedded AWS: %w", err)
		}
		handler = file
	}
	handler = withCallCounts(emu, handler)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("start the embedded AWS: %w", err)
	}
	return &Server{
		AWS: emu, state: o.State, logger: o.Logger, listener: l, calls: -1,
		server: &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		},
	}, nil
}

func readFile(name string, read func(io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	return read(f)
}

// URL returns the address for --endpoint-url.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Run serves until ctx ends. It saves the state when it changes, and once at the end.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(s.listener) }()
	ticker := time.NewTicker(saveEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-served:
			return errors.Join(fmt.Errorf("serve the embedded AWS: %w", err), s.save())
		case <-ticker.C:
			if err := s.save(); err != nil {
				s.logger.Error("state of the embedded AWS not saved", "error", err)
			}
		case <-ctx.Done():
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			err := s.server.Shutdown(stop)
			if errors.Is(err, context.DeadlineExceeded) {
				err = s.server.Close() // clients open spare connections; requests had their time
			} else if err != nil {
				err = errors.Join(fmt.Errorf("stop the embedded AWS: %w", err), s.server.Close())
			}
			if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
				err = errors.Join(err, serveErr)
			}
			return errors.Join(err, s.save())
		}
	}
}

// Close closes the listener if Run is never called.
func (s *Server) Close() error { return s.listener.Close() }

// save writes the state if a call has changed it.
func (s *Server) save() error {
	if s.state == "" {
		return nil
	}
	calls := 0
	for _, n := range s.AWS.CallCounts() {
		calls += n
	}
	if calls == s.calls {
		return nil
	}
	var b bytes.Buffer
	if err := s.AWS.Save(&b); err != nil {
		return fmt.Errorf("save the state of the embedded AWS: %w", err)
	}
	sum := sha256.Sum256(b.Bytes())
	if sum != s.saved {
		if err := files.Write(s.state, b.Bytes()); err != nil {
			return fmt.Errorf("save the state of the embedded AWS: %w", err)
		}
	}
	s.calls, s.saved = calls, sum
	return nil
}
