package fill

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
)

const (
	// shortGrace is the time that a group may be short of machines before weir asks AWS for the reason. A
	// normal launch takes less, and so costs no call.
	shortGrace = 15 * time.Second
	// shortSoonest and shortLatest bound the time between two reads for one group. It doubles while the
	// answer stays the same.
	shortSoonest, shortLatest = time.Minute, 16 * time.Minute
	// gateEvery is the time between two reads for a group that a gate needs.
	gateEvery = 30 * time.Second
	// allGroupsFrom is the minimum number of groups for which one call reads the activities of the whole
	// account.
	allGroupsFrom = 4
	// failureAge is the maximum age of a failed launch that may explain a machine that is missing now.
	failureAge = time.Hour
)

// shortLog remembers which groups are short of machines, and AWS's reasons.
type shortLog struct {
	mu    sync.Mutex
	began time.Time // start of the process
	known map[string]*shortGroup
}

type shortGroup struct {
	// lacking is the time since which the group is short of machines, or zero if all are starting. still is
	// the time since which no machine came into service. serving has the machines in service at that time.
	lacking, still time.Time
	serving        map[string]bool
	coming         map[string]bool // starting machines
	// old says that the group was short before the process started. The process then asks at once.
	old      bool
	asked    time.Time
	wait     time.Duration
	launches observed.Launches
	// alone makes the next read be for this group only, because the account's newest activities contained
	// none of it.
	alone bool
	// gate says that a gate needs its failed launches.
	gate bool
	// hooksNext makes the next read be for the group's lifecycle hooks.
	hooksNext bool
}

// update stores the state of a group in this pass.
func (g *shortGroup) update(have observed.Group, now, clock time.Time) {
	if g.still.IsZero() {
		if g.still = now; g.old {
			g.still = now.Add(-launch.PendingLate)
		}
	}
	serving, coming := map[string]bool{}, map[string]bool{}
	came, gone := false, maps.Clone(g.coming)
	for _, i := range have.Instances {
		switch {
		case i.Coming():
			coming[i.ID] = true
			delete(gone, i.ID)
		case !i.Leaving():
			serving[i.ID] = true
			came = came || g.serving != nil && !g.serving[i.ID]
		}
	}
	if g.serving, g.coming = serving, coming; came {
		g.still = now
	}
	if len(gone) > 0 && !g.launches.Since.IsZero() { // may have been the oldest launch
		if clock.Sub(g.launches.Since) >= launch.PendingLate {
			g.wait = shortSoonest
		}
		g.launches.Since = time.Time{}
	}
	switch {
	case !have.BelowDesired():
		g.lacking = time.Time{}
	case g.lacking.IsZero():
		if g.lacking = now; g.old {
			g.lacking = now.Add(-shortGrace)
		}
	}
	g.old = false
}

// due reports whether to ask AWS now.
func (g *shortGroup) due(now time.Time) bool {
	if g.gate && (g.asked.IsZero() || now.Sub(g.asked) >= gateEvery) {
		return true
	}
	late := !g.lacking.IsZero() && now.Sub(g.lacking) >= shortGrace || now.Sub(g.still) >= launch.PendingLate
	return late && (g.asked.IsZero() || now.Sub(g.asked) >= g.wait)
}

// due notes which groups are short of machines, and forgets all others. It returns the groups to ask AWS
// about: why machines are missing, or which hooks delay them.
func (l *shortLog) due(groups map[string]observed.Group, names, gate []string, now, clock time.Time) (why, hooks []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, before := now.Sub(l.began) < shortSoonest, l.known
	l.known = make(map[string]*shortGroup, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(names, gate)))) {
		g := before[name]
		if g == nil {
			g = &shortGroup{wait: shortSoonest, old: first && clock.Sub(groups[name].CreatedAt) >= shortSoonest}
		}
		_, g.gate = slices.BinarySearch(gate, name)
		g.update(groups[name], now, clock)
		l.known[name] = g
		switch {
		case !g.due(now):
		case g.hooksNext && !g.gate:
			hooks = append(hooks, name)
		default:
			why = append(why, name)
		}
	}
	for _, list := range [][]string{why, hooks} {
		slices.SortFunc(list, func(a, b string) int { return l.known[a].asked.Compare(l.known[b].asked) })
	}
	return why, hooks
}

// recordActivities stores AWS's answer about a group.
func (l *shortLog) recordActivities(name string, list []read.Activity, now, clock time.Time) {
	l.changeGroup(name, func(g *shortGroup) {
		said := launchesOf(list, clock)
		said.Failed, said.Read = joined(said.Failed, g.launches.Failed, clock), clock
		if said.Failure.Message == "" && len(said.Failed) > 0 {
			said.Failure = said.Failed[0]
		}
		if g.asked.IsZero() || said.Failure.Message != g.launches.Failure.Message || !said.Since.Equal(g.launches.Since) {
			g.wait = shortSoonest
		} else {
			g.wait = min(2*g.wait, shortLatest)
		}
		g.asked, g.launches = now, said
	})
}

// unanswered notes that AWS did not answer or denied the read. The known facts stay.
func (l *shortLog) unanswered(names []string, now time.Time) {
	for _, name := range names {
		l.changeGroup(name, func(g *shortGroup) { g.asked, g.wait = now, min(2*g.wait, shortLatest) })
	}
}

// changeGroup changes the facts about a group, unless another read has forgotten the group meanwhile.
func (l *shortLog) changeGroup(name string, change func(*shortGroup)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.known[name]; g != nil {
		change(g)
	}
}

// joined returns failed launches from the current and the previous read, because a page of an account's
// newest activities may not contain all earlier ones.
func joined(now, before []observed.LaunchFailure, clock time.Time) []observed.LaunchFailure {
	for _, f := range before {
		if clock.Sub(f.At) < failureAge && !slices.Contains(now, f) {
			now = append(now, f)
		}
	}
	slices.SortFunc(now, func(a, b observed.LaunchFailure) int { return b.At.Compare(a.At) })
	return now[:min(len(now), observed.MostFailed)]
}

// launchesOf returns the recent failed launches, and the start of the oldest launch in progress.
func launchesOf(list []read.Activity, clock time.Time) (out observed.Launches) {
	for _, a := range list { // newest first
		at, message := a.Started, a.Message
		if !strings.HasPrefix(a.Description, "Launching") {
			continue
		}
		if !a.Ended.IsZero() {
			at = a.Ended
		}
		started := a.Status == "Cancelled" && (strings.Contains(message, "Termination Reason:") || strings.Contains(message, "Lifecycle Action"))
		switch {
		case a.Status == "Failed", started:
			if clock.Sub(at) >= failureAge {
				continue
			}
			f := observed.LaunchFailure{Message: message, At: at, Started: started}
			if out.Failed = append(out.Failed, f); out.Failure.Message == "" {
				out.Failure = f
			}
		case a.Status != "Successful" && a.Status != "Cancelled":
			out.Since = at
		}
	}
	return out
}

// fillShort reads why groups have too few machines, from their scaling activities, and which lifecycle
// hooks delay machines. The report needs the groups in names. Rollout gates need the groups in gate, more
// often. It asks only about groups that are due, and only if AWS's limits allow it. If allGroupsFrom or
// more groups are due, one account-wide call reads them, except those that need their own call.
func (f *Filler) fillShort(ctx context.Context, s *observed.State, names, gate []string) error {
	if len(names)+len(gate) == 0 {
		return nil
	}
	due, hooks := f.short.due(s.Groups, names, gate, f.client.Now(), f.client.Clock())
	if err := f.readHooks(ctx, s, hooks); err != nil {
		return err
	}
	oneByOne := due
	if len(due) >= allGroupsFrom {
		var together []string
		oneByOne = nil
		for _, name := range due {
			if f.short.needsOwnCall(name) {
				oneByOne = append(oneByOne, name)
			} else {
				together = append(together, name)
			}
		}
		if err := sdk.PollSpare(ctx, f.client, "autoscaling", "DescribeScalingActivities", [][]string{together}, f.askTogether); err != nil {
			return err
		}
	}
	if err := sdk.PollSpare(ctx, f.client, "autoscaling", "DescribeScalingActivities", oneByOne, func(ctx context.Context, name string) error {
		list, err := f.reader.Activities(ctx, name, false)
		if err != nil {
			f.short.unanswered([]string{name}, f.client.Now())
			return err
		}
		f.short.recordActivities(name, list, f.client.Now(), f.client.Clock())
		return nil
	}); err != nil {
		return err
	}
	s.Launches = f.short.launches()
	for _, name := range due {
		_, known := s.Hooks[name]
		waits := !known && slices.ContainsFunc(s.Groups[name].Instances, observed.Instance.AwaitsHook)
		f.short.changeGroup(name, func(g *shortGroup) { g.hooksNext = waits })
		if IsMissingVersion(s.Launches[name].Failure.Message) {
			// The version was deleted, but is still cached. The next pass reads the existing versions, and
			// makes it again.
			f.memory.Versions.Forget(s.Groups[name].Template.ID)
		}
	}
	return nil
}

// IsMissingVersion reports whether a launch failed because the version of the launch template does not exist. A
// wrong result only costs an additional read.
// Assumed of AWS: deleted-version-texts.
func IsMissingVersion(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "launch template") && strings.Contains(m, "version") && (strings.Contains(m, "not find") || strings.Contains(m, "not exist") || strings.Contains(m, "not found"))
}

// readHooks reads the lifecycle hooks of groups that have machines in a wait state and declare no hooks in
// Git, as far as spare calls allow. The next passes read the rest. After each read, with or without an answer,
// the next read about the group is for its scaling activities again.
func (f *Filler) readHooks(ctx context.Context, s *observed.State, names []string) error {
	if len(names) == 0 {
		return nil
	}
	s.Hooks = read.Copied(s.Hooks)
	var mu sync.Mutex
	return sdk.PollSpare(ctx, f.client, "autoscaling", "DescribeLifecycleHooks", names, func(ctx context.Context, name string) error {
		hooks, err := f.reader.Hooks(ctx, name)
		f.short.changeGroup(name, func(g *shortGroup) { g.asked, g.hooksNext = f.client.Now(), false })
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s.Hooks[name] = observed.GroupHooks{Hooks: hooks, ReadAtPass: true}
		f.memory.Hooks.Put(name, s.Groups[name].ARN, hooks, f.client.Now())
		return nil
	})
}

// askTogether reads the account's newest activities.
func (f *Filler) askTogether(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	list, err := f.reader.Activities(ctx, "", false)
	if err != nil {
		f.short.unanswered(names, f.client.Now())
		return err
	}
	of := map[string][]read.Activity{}
	for _, a := range list {
		of[a.Group] = append(of[a.Group], a)
	}
	for _, name := range names {
		if len(of[name]) == 0 && !f.short.nothingSince(name, list) {
			f.short.setAlone(name)
		} else {
			f.short.recordActivities(name, of[name], f.client.Now(), f.client.Clock())
		}
	}
	return nil
}

// nothingSince reports whether the account's newest activities, none of them the group's, reach back to the
// previous read. A gate can then conclude that nothing has failed since.
func (l *shortLog) nothingSince(name string, list []read.Activity) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.known[name]
	return g != nil && g.gate && !g.launches.Read.IsZero() && len(list) > 0 && list[len(list)-1].Started.Before(g.launches.Read.Add(-gateEvery))
}

func (l *shortLog) needsOwnCall(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.known[name]
	return g != nil && g.alone
}

func (l *shortLog) setAlone(name string) {
	l.changeGroup(name, func(g *shortGroup) { g.alone = true })
}

func (l *shortLog) launches() map[string]observed.Launches {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]observed.Launches{}
	for name, g := range l.known {
		if !g.launches.Read.IsZero() {
			out[name] = g.launches
		}
	}
	return out
}
