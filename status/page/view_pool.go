package page

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/report"
)

// poolPage contains all data about one pool.
type poolPage struct {
	layout
	poolRow
	Target        string
	AccountRegion string
	AsOf          moment    // set if the pool's data is older than the last pass
	Fault         string    // the reason why the last pass could not read it
	HeldTo        *heldView // set if the followed commit of the target cannot be rendered
	LastEnded     *rolloutView
	ByVersion     []share
	ByZone        []share
	Types         []linkedCount
	Draining      []drainingView
	Machines      []instanceRow
	MachinePager  pager
	Facts         factsView
	Selected      *selectedView // nil if the reader searched for no instance of the pool
	Versions      []versionView
	Configs       []string // the AWSLaunchConfigs that its template is based on
	Plan          []stepView
	Faults        []faultView
	Events        []eventView
	Activity      string
	EventError    string
	Governing     []governed
	// source is the target's source. held says that weir does not correct the pool now.
	source string
	held   bool
}

type linkedCount struct {
	Name  string
	Count int
}

// drainingView is a machine that is being drained.
type drainingView struct {
	plan.Draining
	Began, Ends moment
	More        int // number of pods that are not named
}

// versionView is a version of the launch template, from AWS's data and from the event of its creation.
type versionView struct {
	Number  string
	Default bool
	Current bool
	Count   int // number of instances with this version
	Commit  commitView
	Made    moment
	Why     string
	Changes []changeView
	More    bool // there were more changes than are stored
}

const (
	shownMachines   = 60
	shownPoolEvents = 40
	shownVersions   = 20
)

// findPool returns a pool of a target.
func findPool(t *current.TargetState, namespace, name string) (*plan.PoolStatus, bool) {
	i := slices.IndexFunc(t.Pools, func(p plan.PoolStatus) bool { return p.Namespace == namespace && p.Name == name })
	if i < 0 {
		return nil, false
	}
	return &t.Pools[i], true
}

// poolPage prepares the page of a pool.
func (w *views) poolPage(ctx context.Context, t current.TargetState, p *plan.PoolStatus, q url.Values) poolPage {
	key := report.PoolKey(*p)
	tv := w.targetView(t)
	v := poolPage{
		layout: w.layout("fleet", p.Name+" in "+t.Name), poolRow: w.poolRow(poolItemOf(&t, p, report.StepsByPool(t.Last))),
		Target: t.Name, AccountRegion: tv.AccountRegion, AsOf: tv.PoolsAt, HeldTo: tv.HeldTo, Activity: keyActivity(t.Name, key),
		Governing: w.governing(t.Name, key),
	}
	v.source, v.held = t.Source, v.Held || t.Last != nil && (t.Last.ReportOnly || t.Last.Suspended)
	v.About, v.JSON = t.Name, "/api/v1/pools"
	if v.Stale {
		fault, more := report.FirstFault(t.Last)
		v.Fault = report.AndMore(fault, more)
	}
	l := linksOf(w.current, t.Source)
	if r := p.LastRollout; r != nil && p.Rollout == nil {
		last := rolloutViewOf(w.current, *p, *r)
		v.LastEnded = &last
	}
	v.addInstances(p)
	instanceViews{w}.addRows(ctx, &v, &t, p, q)
	for _, d := range p.Draining[:min(len(p.Draining), shownMachines)] {
		v.Draining = append(v.Draining, drainingView{Draining: d, Began: momentOf(w.current, d.Since), Ends: momentOf(w.current, d.Until), More: d.PodsLeft - len(d.Pods)})
	}
	v.addReport(t, key, l)
	for _, c := range t.LaunchConfigs {
		if slices.Contains(c.Pools, key) {
			v.Configs = append(v.Configs, c.Namespace+"/"+c.Name)
		}
	}
	events, err := w.current.Activity.QueryEvents(history.Filter{Target: t.Name, Pool: key, Limit: 200})
	if err != nil {
		w.o.Logger.Error("history cannot be read", "error", err)
		v.EventError = "weir cannot read the history. See weir's log."
	}
	v.Events = w.events(events, shownPoolEvents)
	for _, c := range v.Configs {
		shared, err := w.current.Activity.QueryEvents(history.Filter{Target: t.Name, Pool: c, Kinds: versionKinds})
		if err == nil {
			events = append(events, shared...)
		}
	}
	v.Versions = versionViews(w.current, p, events, l)
	return v
}

// addInstances adds the numbers of instances of a pool by version, zone and type.
func (v *poolPage) addInstances(p *plan.PoolStatus) {
	counts := plan.CountInstances(p.Instances)
	versions, zones := keysOf(counts, versionName), keysOf(counts, func(c plan.InstanceCount) string { return c.Zone })
	slices.SortStableFunc(versions, func(x, y string) int { return versionNumber(y) - versionNumber(x) })
	v.ByVersion, v.ByZone = sharesOf(counts, versions, versionName), sharesOf(counts, zones, func(c plan.InstanceCount) string { return c.Zone })
	for i := range v.ByVersion {
		v.ByVersion[i].Current = v.ByVersion[i].Name == v.Template
	}
	for _, kind := range keysOf(counts, func(c plan.InstanceCount) string { return c.Type }) {
		n := linkedCount{Name: kind}
		for _, c := range counts {
			if c.Type == kind {
				n.Count += int(c.Count)
			}
		}
		v.Types = append(v.Types, n)
	}
}

// addReport adds the parts of the target's last report that are about the pool.
func (v *poolPage) addReport(t current.TargetState, key string, l forge.Links) {
	r := t.Last
	if r == nil {
		return
	}
	v.Faults = faultViews(slices.DeleteFunc(slices.Clone(r.Diagnostics), func(d faultDiag) bool { return events.ObjectPool(r, d.Object) != key }), l, r.Revision)
	if r.Plan != nil {
		v.Plan = stepViews(slices.DeleteFunc(slices.Clone(r.Plan.Steps), func(s step.Step) bool { return s.Pool != key && !slices.Contains(s.Pools, key) }), l, t.Name, r.Revision)
	}
}

func keyActivity(target, pool string) string {
	return "/activity?" + history.Filter{Target: target, Pool: pool}.Query().Encode()
}

// versionKinds are the kinds of events that create a version of a template.
var versionKinds = []string{"version-created", "template-created"}

// versionViews combines AWS's data about the template's versions with the events of their creation.
func versionViews(b *current.State, p *plan.PoolStatus, list []events.Event, l forge.Links) []versionView {
	by := map[int]*versionView{}
	at := func(n int) *versionView {
		if by[n] == nil {
			by[n] = &versionView{Number: strconv.Itoa(n)}
		}
		return by[n]
	}
	for _, note := range p.TemplateVersions {
		v := at(int(note.Number))
		v.Default = note.Default
		v.Commit = commitView{Short: note.Revision, Subject: note.Subject, Link: l.Commit(note.Revision)}
	}
	for _, c := range plan.CountInstances(p.Instances) {
		if n := versionNumber(versionName(c)); n > 0 {
			at(n).Count += int(c.Count)
		}
	}
	if n, err := strconv.Atoi(p.LaunchTemplateVersion); err == nil {
		at(n).Current = true
	}
	for _, e := range list { // newest first; an earlier event with the same number is about an earlier template
		n, err := strconv.Atoi(e.Facts["version"])
		if e.Kind == "template-created" && err != nil {
			n, err = 1, nil
		}
		if err != nil || !slices.Contains(versionKinds, e.Kind) || !at(n).blank() {
			continue
		}
		v := at(n)
		v.Made, v.Why, v.More = momentOf(b, e.Time), e.Reason, len(e.Changes) == events.EventChanges
		if e.Kind == "template-created" {
			v.Why = "the first version" // the reason of the event would be that the template did not exist
		}
		if v.Commit.Short == "" {
			v.Commit = commitOf(l, e.Revision, "")
		}
		if l.Commit(e.Revision) != "" {
			v.Commit.Link = l.Commit(e.Revision)
		}
		v.Changes = eventChangesOf(e, l)
	}
	out := make([]versionView, 0, len(by))
	for _, v := range by {
		out = append(out, *v)
	}
	slices.SortFunc(out, func(x, y versionView) int { return versionNumber("v"+y.Number) - versionNumber("v"+x.Number) })
	return out[:min(len(out), shownVersions)]
}

func (v *versionView) blank() bool { return v.Made.Exact == "" }

func versionName(c plan.InstanceCount) string {
	if c.TemplateVersion == "" {
		return "unknown version"
	}
	return "v" + c.TemplateVersion
}

func versionNumber(name string) int {
	n, err := strconv.Atoi(name[min(1, len(name)):])
	if err != nil {
		return -1
	}
	return n
}

// keysOf returns the distinct results of by, sorted.
func keysOf(list []plan.InstanceCount, by func(plan.InstanceCount) string) []string {
	var out []string
	for _, c := range list {
		out = append(out, by(c))
	}
	slices.SortFunc(out, cmp.Compare[string])
	return slices.Compact(out)
}
