package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/files"
	"github.com/weir-gitops/weir/reconciler/state/keys"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/members"
)

// How long a daemon that starts waits for an engine that is away, how long one try may take, and the pause between two.
const (
	reachWithin = 2 * time.Minute
	reachTry    = 30 * time.Second
	reachPause  = 3 * time.Second
)

// reach opens the engine and the records in it. It retries if the engine is unreachable, as when
// machines start together, but not if the engine refuses.
func (a peers) reach(ctx context.Context) error {
	for began := time.Now(); ; {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, reachTry)
			defer cancel()
			if err := a.openEngine(ctx); err != nil {
				return err
			}
			return a.openCrew(ctx)
		}()
		var away *coord.AwayError
		if err == nil || !errors.As(err, &away) && !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > reachWithin {
			return err
		}
		a.log.Warn("coordination: the engine does not answer, and weir waits for it", "error", err)
		a.starting("waits for the engine of coordination")
		select {
		case <-time.After(reachPause):
		case <-ctx.Done():
			return err
		}
	}
}

// openEngine opens the engine that the configuration names.
func (a peers) openEngine(ctx context.Context) (err error) {
	if a.o.Engine != nil || !a.o.Config.Several() {
		return nil
	}
	a.o.Engine, err = engine.Open(ctx, a.o.Config, a.o.LeaseClock, func(operation, result string, took time.Duration) {
		if a.metrics != nil { // made after the first calls
			a.metrics.EngineCall(operation, result, took)
		}
	})
	if err == nil {
		a.onStop("coordination", 0, func(context.Context) error { return a.o.Engine.Close() })
	}
	return err
}

// readKeys reads the keys that all daemons of the instance share, or makes them from those that this one had alone. Those then lie plain in no state
// directory any more: to go back to one daemon, weir state move writes them there.
func (a peers) readKeys(ctx context.Context, records *state.Shared) error {
	if !a.o.Config.Several() {
		return nil
	}
	ring, err := engine.Keys(a.o.Config, records)
	if err != nil {
		return err
	}
	a.shared = map[string][]byte{}
	for _, use := range []string{keys.Digest, keys.Session} {
		file := a.state.path(use + ".key")
		first, err := files.ReadKey(file, use+" key", "the daemons share another one")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if a.shared[use], err = ring.Key(ctx, use, first); err != nil {
			return err
		}
		if first != nil && bytes.Equal(first, a.shared[use]) {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove the plain copy of a key that is encrypted in the engine: %w", err)
			}
			a.log.Info("coordination: the key is encrypted in the engine, and its plain copy is removed", "file", file)
		}
	}
	return nil
}

// keyOf is the key of a use: the instance's, or, for a daemon alone, the state directory's.
func (a peers) keyOf(use string, own func(dir string) ([]byte, error)) ([]byte, error) {
	if key := a.shared[use]; key != nil {
		return key, nil
	}
	return own(a.state.Dir)
}

// addressOf is the address of this daemon's own page, empty if unknown before it listens.
func addressOf(c *config.Config) string {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil || port == "0" {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return ""
		}
	}
	scheme := "http://"
	if c.TLS.CertFile != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

// moved counts and reports moves of leases.
func (a peers) moved(self string) func(coord.Event) {
	a.news = members.NewNews(self, func(e events.Event) { a.board.Event(e) })
	return func(e coord.Event) {
		if kind, event, ok := members.MoveOf(e); ok {
			a.metrics.Move(kind, event)
		}
		if !a.news.Add(e) && e.Err != nil && !errors.Is(e.Err, context.Canceled) {
			a.log.Warn("coordination: the engine refused or did not answer", "what", e.Kind, "key", e.Key, "error", e.Err)
		}
	}
}

// describe publishes the configuration of this member to the other members.
func (a peers) describe(ctx context.Context) {
	if a.crew == nil {
		return
	}
	if err := a.crew.Keeper().Describe(ctx, a.gen.Load().common); err != nil {
		a.log.Warn("coordination: the others hear of the new configuration with the next renewal of the lease", "error", err)
	}
}

// kept explains why nothing is deleted while another member might keep it. A member with an older
// configuration, or with another path, must not end machines based on it. The result is empty if
// all members that are alive have the same configuration. The first pass after a reload already
// uses the new configuration, which the engine does not know yet.
func (a peers) kept() string {
	if a.crew == nil {
		return ""
	}
	now, g := a.crew.Mirror().Snapshot(), a.gen.Load()
	for _, m := range members.Differing(coord.Member{Name: a.crew.Name(), Version: a.o.Version, Config: g.common}, now.Alive) {
		for _, section := range []string{"sources", "targets", "limits", "aws"} {
			if slices.Contains(m.Differs, section) {
				return "the configuration of the member " + m.Name + " differs in " + section
			}
		}
	}
	return ""
}

// wanted returns what somebody should own, with its targets and sources.
func (a peers) wanted() []members.Wanted {
	about := map[string][]string{}
	if g := a.gen.Load(); g != nil {
		for name, f := range g.followers {
			about[f.key()] = append(about[f.key()], name)
		}
	}
	a.passes.mu.Lock()
	for key, b := range a.passes.memory.batches {
		place, known := a.passes.place(key)
		for i := range b.Targets {
			if known {
				about[place] = append(about[place], b.Targets[i].Policy.Target)
			}
		}
	}
	a.passes.mu.Unlock()
	out := make([]members.Wanted, 0, len(about))
	for key, names := range about {
		slices.Sort(names)
		out = append(out, members.Wanted{Key: key, Targets: names})
	}
	slices.SortFunc(out, func(x, y members.Wanted) int { return cmp.Compare(x.Key, y.Key) })
	return out
}
