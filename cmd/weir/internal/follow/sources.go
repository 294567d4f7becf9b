package follow

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
)

// Sources keep the views of the sources of a configuration, by name.
type Sources map[string]*Source

// New makes the sources of a configuration. It reads nothing.
func New(sources []config.Source, o Options) (Sources, error) {
	out := Sources{}
	for _, of := range sources {
		f, err := open(of, o)
		if err != nil {
			return nil, err
		}
		out[of.Name] = f
	}
	return out, nil
}

// Inherit gives sources that stay as they are the last commit of another generation, until
// they say something themselves: where Git does not answer, that one is still applied.
func (s Sources) Inherit(old Sources) {
	for name, f := range s {
		from := old[name]
		if from == nil || from.view.ID != f.view.ID || from.view.Verify != f.view.Verify || from.Config.Ref != f.Config.Ref {
			continue
		}
		from.mu.Lock()
		f.view.Snapshot, f.view.Seq = from.view.Snapshot, from.view.Seq
		from.mu.Unlock()
		f.view.Err = fault.Unavailable(name, fault.New(fault.Unreachable, "it was not read since the reload"))
	}
}

// Held returns the store in which the owner of a source writes its statuses, or nil if this member
// is not the owner.
func (s Sources) Held(source string) state.Store {
	f := s[source]
	if f == nil {
		return nil
	}
	return f.Member.Held(f.Key())
}

// HeldBy is held with several daemons.
func (s Sources) HeldBy(c *membership.Member) func(string) state.Store {
	if c == nil {
		return nil
	}
	return s.Held
}

// CloseConnections closes the connections to forges. Nothing must use them any more.
func (s Sources) CloseConnections() {
	for _, f := range s {
		for _, client := range f.forgeClients {
			client.CloseIdleConnections()
		}
	}
}

// FirstSource bounds the time that the first pass waits for the first source, OtherSources the time
// that it then waits for all other sources: a source that does not answer delays only its own
// targets.
const (
	FirstSource  = 15 * time.Second
	OtherSources = time.Second
)

// Views are the sources as they stand, once each has said something or has had the time
// for it since asked. news wakes it when one does.
func (s Sources) Views(ctx context.Context, asked time.Time, news <-chan struct{}) (map[string]fleet.View, error) {
	for {
		wait := s.patience() - time.Since(asked)
		if wait <= 0 {
			break
		}
		timer := time.NewTimer(wait)
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
	out := map[string]fleet.View{}
	for name, f := range s {
		out[name] = f.Now()
	}
	return out, nil
}

// patience returns how long a pass waits, from its request, for the sources that have not answered
// yet.
func (s Sources) patience() time.Duration {
	heard := 0
	for _, f := range s {
		select {
		case <-f.heard:
			heard++
		default:
		}
	}
	switch heard {
	case len(s):
		return 0
	case 0:
		return FirstSource
	default:
		return OtherSources
	}
}

// RefText returns the followed ref as text, such as "branch main".
func RefText(r source.Ref) string {
	switch {
	case r.Branch != "":
		return "branch " + r.Branch
	case r.Tag != "":
		return "tag " + r.Tag
	case r.SemVer != "":
		return "versions " + r.SemVer
	case r.Name != "":
		return r.Name
	case r.Commit != "":
		return "commit " + r.Commit[:min(12, len(r.Commit))]
	default:
		return "default branch"
	}
}
