package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/members"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/report"
)

// peers connects the daemon with the other members of its instance. It is nil for a single daemon.
type peers struct {
	member  *membership.Member
	version string
	log     *slog.Logger
	peerLinks
	// news announces changes of owners.
	news *members.News
	// lastRead contains the requests of users at the last read.
	lastRead gates.Records
}

// peerLinks contains the parts of the daemon to which members give work. They are opened after the member,
// and before it runs.
type peerLinks struct {
	now      *currentGeneration
	passes   *passes
	reporter *reporter
	rollouts *rollouts
	recorder *gates.Recorder
	requests *requests
	current  *current.State
	metrics  *metrics.Metrics
}

// keys returns the keys that should be owned: the sources, and the known accounts and regions for which Git
// wants something.
func (a *peers) keys() (out []coord.Scope) {
	if a.now == nil || a.now.Load() == nil {
		return nil
	}
	weights := map[string]int{}
	for _, f := range a.now.followers() {
		weights[f.Key()] = 1
	}
	a.passes.addWeights(weights)
	for key, weight := range weights {
		out = append(out, coord.Scope{Key: key, Weight: weight})
	}
	slices.SortFunc(out, func(x, y coord.Scope) int { return cmp.Compare(x.Key, y.Key) })
	return out
}

// wanted returns the keys that should be owned, with their targets and sources.
func (a *peers) wanted() []members.Wanted {
	about := map[string][]string{}
	for name, f := range a.now.followers() {
		about[f.Key()] = append(about[f.Key()], name)
	}
	a.passes.inPlaces(func(place string, d *reconciler.Desired) { about[place] = append(about[place], d.Policy.Target) })
	out := make([]members.Wanted, 0, len(about))
	for key, names := range about {
		slices.Sort(names)
		out = append(out, members.Wanted{Key: key, Targets: names})
	}
	slices.SortFunc(out, func(x, y members.Wanted) int { return cmp.Compare(x.Key, y.Key) })
	return out
}

// startKey starts the work on a key that this daemon now owns.
func (a *peers) startKey(l *coord.Lease) {
	if membership.IsSource(l.Owner.Key) {
		a.speak(l.Owner.Key)
	} else {
		a.passes.own(l.Owner.Key)
	}
}

// speak makes this daemon write the statuses for the sources of a repository. It continues from the state
// of the previous owner.
func (a *peers) speak(key string) {
	for name, f := range a.now.followers() {
		if f.Key() != key {
			continue
		}
		for _, err := range a.now.publisher().takeOver(name) {
			if err != nil {
				a.log.Error("cannot read the statuses to write of a source", "source", name, "error", err)
			}
		}
		a.requests.speak(name)
	}
	a.requests.wake()
}

// progressEvery is the interval at which the daemon checks that passes make progress.
const progressEvery = 5 * time.Second

// watchKey returns when the lease has ended; work in progress then ends by itself.
func (a *peers) watchKey(l *coord.Lease) {
	look := time.NewTicker(progressEvery)
	defer look.Stop()
	for {
		if a.progresses(l.Owner.Key, time.Now()) {
			l.Progress()
		}
		select {
		case <-l.Context().Done():
			return
		case <-look.C:
		}
	}
}

// progresses reports whether the work under the lease of a key makes progress: reading a source, or passes in an
// account and region. Without progress this member gives up the lease, because another member may have better
// connectivity.
func (a *peers) progresses(key string, now time.Time) bool {
	if !membership.IsSource(key) {
		return a.passes.progresses(key, now) && a.upToDate(key)
	}
	for _, f := range a.now.followers() {
		if f.Key() == key && !f.Reads() {
			return false
		}
	}
	return true
}

// upToDate reports whether this member has the commits to apply in an account and region. If it does not,
// another member may be able to reach the Git server.
func (a *peers) upToDate(place string) bool {
	sources := map[string]bool{}
	a.passes.inPlaces(func(at string, d *reconciler.Desired) {
		if at == place {
			sources[d.Source] = true
		}
	})
	for name, f := range a.now.followers() {
		if head, known := a.member.Heads.Get(f.ID(), name); sources[name] && known && head.Commit != f.At() {
			return false
		}
	}
	return true
}

// processOthers processes data that other members wrote, as soon as the mirror has read it.
func (a *peers) processOthers(ctx context.Context) error {
	for {
		synced := a.member.Mirror.Synced()
		a.handleNews()
		select {
		case <-ctx.Done():
			return nil
		case <-synced:
		}
	}
}

// handleNews processes news of other members. Only the goroutine of processOthers calls it.
func (a *peers) handleNews() {
	a.member.Reports.Read(a.reporter.receive)
	a.member.Pulls.Read(a.showsPulls(a.now.Load()), a.takePull)
	a.member.Requests.Read(a.handleRequest)
	a.rollouts.handleNews()
	records := a.recorder.Read()
	if !reflect.DeepEqual(a.lastRead, records) {
		a.endWithdrawn(newSuspensions(a.lastRead, records), records)
		a.lastRead = records
		a.requests.passAll()
	}
}

// endWithdrawn ends passes over targets that were suspended, or whose approval was withdrawn.
func (a *peers) endWithdrawn(list []gates.Suspension, now gates.Records) {
	a.passes.end(func(l *loop) bool {
		return l.withdrawnGrant(now) != nil || slices.ContainsFunc(list, func(s gates.Suspension) bool { return s.Target == "" || slices.Contains(l.targets, s.Target) })
	})
}

// handleRequest executes a request to all members, if it concerns this one.
func (a *peers) handleRequest(r membership.Request) {
	if r.Source == "" {
		a.requests.readSources()
		return
	}
	if r.Pulls {
		if w := a.now.publisher().review.watcher(r.Source); w != nil {
			if r.Heard != nil {
				w.Heard(r.Pull, forge.Heard(*r.Heard))
			}
			w.Changed(r.Pull)
		}
	} else if f := a.now.followers()[r.Source]; f != nil && f.Leads() {
		f.Git.Nudge()
	}
}

// showsPulls returns a function that reports whether this member itself reads a source's pull requests, or
// does not have the source.
func (a *peers) showsPulls(g *generation) func(source string) bool {
	return func(source string) bool {
		return g.publisher.review.watcher(source) == nil || g.followers[source].Leads()
	}
}

// takePull processes a pull request from the member that owns its source.
func (a *peers) takePull(source string, number int64, data []byte) {
	p, err := report.ReadPull(data)
	if err != nil || p.Source != source || p.Number != number {
		a.log.Warn("cannot read a pull request of another member", "source", source, "number", number, "error", err)
		return
	}
	a.current.Pulls.Update(p)
}

// tell counts and announces moves of leases.
func (a *peers) tell(e coord.Event) {
	if kind, event, ok := members.MoveOf(e); ok {
		a.metrics.Move(kind, event)
	}
	if !a.news.Add(e) && e.Err != nil && !errors.Is(e.Err, context.Canceled) {
		a.log.Warn("coordination: the engine refused or did not answer", "what", e.Kind, "key", e.Key, "error", e.Err)
	}
}

// describe publishes the configuration of this member to the other members.
func (a *peers) describe(ctx context.Context) {
	if err := a.member.Keeper.Describe(ctx, a.now.common()); err != nil {
		a.log.Warn("coordination: other members see the new configuration after the next renewal of the lease", "error", err)
	}
}

// kept returns the reason why nothing is deleted while another member might keep it. A member with an older
// configuration, or another path, must not end machines based on it. The result is empty if all living
// members have the same configuration. The first pass after a reload already uses the new configuration,
// which the engine does not have yet.
func (a *peers) kept() string {
	now := a.member.Mirror.Snapshot()
	for _, m := range members.Differing(coord.Member{Name: a.member.Name, Version: a.version, Config: a.now.common()}, now.Alive) {
		for _, section := range []string{"sources", "targets", "limits", "aws"} {
			if slices.Contains(m.Differs, section) {
				return "the configuration of the member " + m.Name + " differs in " + section
			}
		}
	}
	return ""
}

// addressOf returns the address of this daemon's own page. It is empty if it is unknown before the daemon
// listens.
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

// reportMove adds the event of a move.
func (a *peers) reportMove(e events.Event) { a.current.Activity.Add(e) }
