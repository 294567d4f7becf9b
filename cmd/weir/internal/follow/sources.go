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

// Sources contains the sources of a configuration, by name.
type Sources map[string]*Source

// New returns the sources of a configuration. It reads nothing.
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

// Inherit gives the last commit in another generation to unchanged sources. They use it until they have
// read a commit themselves, so that it stays applied if Git does not answer.
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

// Held returns the store to which the owner of a source writes its statuses. It returns nil if this member
// is not the owner.
func (s Sources) Held(source string) state.Store {
	f := s[source]
	if f == nil {
		return nil
	}
	return f.Member.Held(f.Key())
}

// HeldBy returns Held if there are several daemons.
func (s Sources) HeldBy(c *membership.Member) func(string) state.Store {
	if c == nil {
		return nil
	}
	return s.Held
}

// CloseConnections closes the connections to forges. They must not be used any more.
func (s Sources) CloseConnections() {
	for _, f := range s {
		for _, client := range f.forgeClients {
			client.CloseIdleConnections()
		}
	}
}

// FirstSource is the time that the first pass waits for the first source. OtherSources is the time that it
// then waits for all other sources. A source that does not answer therefore delays only its own targets.
const (
	FirstSource  = 15 * time.Second
	OtherSources = time.Second
)

// Views returns the views of the sources as soon as each has a result, or has had its time since asked.
// news wakes it after a result.
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

// patience returns the time that a pass waits, from its request, for sources without a result.
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

// RefText describes the followed ref, such as "branch main".
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
