package simulate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
)

// Host is the address of a simulation's calls. No such host exists, because the emulator answers in this
// process.
const Host = "simulated.invalid"

// replica is an emulator with the recorded state of an account and region.
type replica struct {
	account, region string
	srv             *awsemu.Server
	clock           *awsemu.ManualClock
	mu              sync.Mutex
	// waited receives each wait for AWS's rates. It is nil while the replica is made.
	waited func(time.Duration)
	// left lists what could not be copied. leftPools has the affected pools, by "namespace/name".
	left      []string
	leftPools map[string]bool
}

// before is the simulated age of the machines at the read of AWS.
const before = 24 * time.Hour

// newReplica makes an emulator with the state that a pass recorded.
func newReplica(ctx context.Context, s observed.State, answers []observed.Answer, now time.Time, a Assumptions) (*replica, error) {
	clock := awsemu.NewManualClock(now.Add(-before))
	quotas := map[string]int{}
	for _, name := range world.QuotaNames() {
		if strings.HasPrefix(name, "vcpus-") || slices.Contains([]string{"launch-templates", "launch-template-versions", "auto-scaling-groups", "nodegroups-per-cluster", "nodes-per-nodegroup", "clusters"}, name) {
			quotas[name] = 1 << 30
		}
	}
	srv, err := awsemu.New(awsemu.Options{Clock: clock, Throttle: true, Account: s.Account, Quotas: quotas, Timings: a.timings()})
	if err != nil {
		return nil, err
	}
	srv.Faults().Hooks.Add(asg.HookListener{})
	r := &replica{account: s.Account, region: s.Region, srv: srv, clock: clock, leftPools: map[string]bool{}}
	cloud, err := r.open(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cloud.Close()
	s.Groups, s.Nodegroups, s.Templates = maps.Clone(s.Groups), maps.Clone(s.Nodegroups), maps.Clone(s.Templates)
	m := &maker{replica: r, cloud: cloud, seen: s, now: now}
	if err := m.make(ctx, answers); err != nil {
		return nil, fmt.Errorf("copy account %s, region %s: %w", s.Account, s.Region, err)
	}
	srv.ResetCalls()
	return r, nil
}

// open returns a client of the replica that uses its clock, including for waits for AWS's rates.
func (r *replica) open(ctx context.Context, share float64) (*awscloud.Cloud, error) {
	return awscloud.Open(ctx, sdk.Options{
		Region: r.region, EndpointURL: "http://" + Host, Embedded: true, Transport: inProcess{r.srv}, Now: r.clock.Now,
		Limits: sdk.NewLimits(sdk.LimitOptions{Share: share, Now: r.clock.Now, Sleep: r.sleep}),
	})
}

// sleep advances the replica's time. Concurrent waits run in order, so time advances to the end of the last
// one.
func (r *replica) sleep(ctx context.Context, d time.Duration) error {
	until := r.clock.Now().Add(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := until.Sub(r.clock.Now()); left > 0 {
		r.clock.Set(until)
		if r.waited != nil {
			r.waited(left)
		}
	}
	return ctx.Err()
}

// inProcess passes requests to a handler, without a network.
type inProcess struct{ handler http.Handler }

// Do implements httpbody.Doer.
func (p inProcess) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := &answer{header: http.Header{}, status: http.StatusOK}
	p.handler.ServeHTTP(w, r)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// answer collects a handler's response.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// maker makes a replica: with API calls where possible, and with grafts for everything else.
type maker struct {
	*replica
	cloud *awscloud.Cloud
	seen  observed.State
	now   time.Time
}

func (m *maker) graft(g awsemu.Graft) error {
	g.Account, g.Region = m.account, m.region
	return m.srv.Graft(g)
}

func (m *maker) execute(ctx context.Context, what string, a step.Action) (step.Result, error) {
	res, err := m.cloud.Execute(ctx, a)
	if err != nil {
		return res, fmt.Errorf("%s: %w", what, err)
	}
	return res, nil
}

// leave notes that a resource could not be copied. It is then missing in the copy, together with the pool in
// its tag. It returns an error only if ctx ended.
func (m *maker) leave(ctx context.Context, pool string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.left = append(m.left, "not in the simulation: "+err.Error())
	if pool != "" {
		m.leftPools[pool] = true
	}
	return nil
}

// make fills the emulated AWS with the recorded state: networks, templates, nodegroups, groups and refreshes.
func (m *maker) make(ctx context.Context, answers []observed.Answer) error {
	if err := m.graft(awsemu.Graft{Subnets: m.subnets(answers), Clusters: m.clusters(answers)}); err != nil {
		return err
	}
	if err := m.templates(ctx, answers); err != nil {
		return err
	}
	if err := m.nodegroups(ctx); err != nil {
		return err
	}
	if err := m.convergeAll(ctx); err != nil {
		return err
	}
	groups, err := m.groups(ctx)
	if err != nil {
		return err
	}
	m.clock.Set(m.now)
	if err := m.graft(awsemu.Graft{Groups: groups}); err != nil {
		return err
	}
	return m.refreshes(ctx)
}

// clusters returns the existing EKS clusters, with their versions if available.
func (m *maker) clusters(answers []observed.Answer) (out []eks.ClusterGraft) {
	clusters := map[string]string{}
	for name, exists := range m.seen.Clusters {
		if exists {
			clusters[name] = ""
		}
	}
	for name, n := range m.seen.Nodegroups {
		if clusters[name.Cluster] < n.Version { // if the cluster was not read
			clusters[name.Cluster] = n.Version
		}
	}
	for _, a := range answers {
		if a.Cluster != nil && a.Cluster.Version != "" {
			clusters[a.Cluster.Name] = a.Cluster.Version
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		out = append(out, eks.ClusterGraft{Name: name, Version: cmp.Or(clusters[name], ec2.NewestKubernetes())})
	}
	return out
}

// nodegroups copies the nodegroups, and notes those that cannot be copied.
func (m *maker) nodegroups(ctx context.Context) error {
	for _, name := range slices.SortedFunc(maps.Keys(m.seen.Nodegroups), func(a, b observed.NodegroupName) int { return strings.Compare(a.String(), b.String()) }) {
		n := m.seen.Nodegroups[name]
		if err := m.nodegroup(ctx, n); err != nil {
			if err := m.leave(ctx, n.Tags[observed.TagPool], err); err != nil {
				return err
			}
			delete(m.seen.Nodegroups, name)
		}
	}
	return nil
}

// groups copies the groups that do not belong to EKS, and notes those that cannot be copied.
func (m *maker) groups(ctx context.Context) (out []asg.GroupGraft, err error) {
	for _, name := range slices.Sorted(maps.Keys(m.seen.Groups)) {
		g := m.seen.Groups[name]
		if _, ofEKS := g.Tags["eks:nodegroup-name"]; ofEKS || g.Deleting || g.Template == (observed.TemplateRef{}) {
			continue
		}
		if err := m.group(ctx, g); err != nil {
			if err := m.leave(ctx, g.Tags[observed.TagPool].Value, err); err != nil {
				return nil, err
			}
			delete(m.seen.Groups, name)
			continue
		}
		out = append(out, m.groupGraft(g))
	}
	return out, nil
}

// subnets returns all referenced subnets. It places them in the zones of their groups' machines. The exact
// assignment does not matter for the simulation.
func (m *maker) subnets(answers []observed.Answer) (out []ec2.SubnetGraft) {
	zones := map[string]string{}
	place := func(ids, in []string) {
		if len(in) == 0 {
			in = []string{m.region + "a", m.region + "b", m.region + "c"}
		}
		for i, id := range ids {
			if zones[id] == "" {
				zones[id] = in[i%len(in)]
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.seen.Groups)) {
		g, in := m.seen.Groups[name], map[string]bool{}
		for _, i := range g.Instances {
			in[i.Zone] = true
		}
		place(g.SubnetIDs, slices.Sorted(maps.Keys(in)))
	}
	for _, n := range m.seen.Nodegroups {
		place(n.SubnetIDs, nil)
	}
	for _, a := range answers {
		place(a.Subnets, nil)
		place(a.Lapsed, nil)
		if a.Cluster != nil {
			place(a.Cluster.SubnetIDs, nil)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(zones)) {
		out = append(out, ec2.SubnetGraft{ID: id, Zone: zones[id]})
	}
	return out
}

// own returns the tags that are not AWS's.
func own[V any](tags map[string]V) map[string]V {
	out := maps.Clone(tags)
	maps.DeleteFunc(out, func(key string, _ V) bool { return strings.HasPrefix(key, "aws:") })
	return out
}

// group makes a group without machines.
func (m *maker) group(ctx context.Context, g observed.Group) error {
	empty := g
	empty.MinSize, empty.DesiredCapacity, empty.Instances, empty.Tags = 0, 0, nil, own(g.Tags)
	for _, member := range field.GroupMembers() {
		if !member.OfCreation() {
			member.Of(&empty.GroupSettings).SetZero()
		}
	}
	empty.Options.DeleteWarmPool = false
	what := "group " + g.Name
	actions := []step.Action{step.CreateGroup{Group: empty, LifecycleHooks: m.seen.Hooks[g.Name].Hooks}}
	if len(g.SuspendedProcesses) > 0 {
		actions = append(actions, step.SetProcesses{Group: g.Name, Suspend: g.SuspendedProcesses})
	}
	if w := g.Options.WarmPool; w != nil && !g.Options.DeleteWarmPool {
		actions = append(actions, step.PutWarmPool{Group: g.Name, WarmPool: *w, New: true})
	}
	if c := g.Options.MetricsCollection; c != nil && len(c.Metrics) > 0 {
		actions = append(actions, step.SetMetrics{Group: g.Name, Granularity: c.Granularity, Enable: c.Metrics})
	}
	for _, a := range actions {
		if _, err := m.execute(ctx, what, a); err != nil {
			return err
		}
	}
	return nil
}

// groupGraft returns a group with its machines, and its last refresh if that has ended, for the emulator.
func (m *maker) groupGraft(g observed.Group) asg.GroupGraft {
	out := asg.GroupGraft{Name: g.Name, Created: g.CreatedAt, Min: int64(g.MinSize), Desired: int64(g.DesiredCapacity)}
	for _, i := range g.Instances {
		served := m.now.Add(-before)
		if at := m.seen.Launched[i.ID]; !at.IsZero() {
			served = at
		}
		out.Members = append(out.Members, asg.MemberGraft{
			ID: i.ID, Type: i.Type, Zone: i.Zone, Template: asg.TemplateSpec{ID: i.Template.ID, Name: i.Template.Name, Version: i.Template.Version},
			Lifecycle: i.LifecycleState, Health: i.Health, Protected: i.Protected, Served: served,
		})
	}
	if f, known := m.seen.Refreshes[g.Name]; known && f.ID != "" && !f.Active() {
		out.Refresh = &asg.RefreshGraft{ID: f.ID, Status: f.Status, Reason: f.Reason, Start: f.StartedAt, End: f.EndedAt, Percent: int64(f.Percentage), Left: int64(f.InstancesLeft), Version: f.Template.Version}
	}
	return out
}

// refreshes restarts the refreshes in progress. Machines that they have already replaced match.
func (m *maker) refreshes(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(m.seen.Refreshes)) {
		f := m.seen.Refreshes[name]
		if _, there := m.seen.Groups[name]; !there || !f.Moving() || f.Template == (observed.TemplateRef{}) {
			continue
		}
		if _, err := m.execute(ctx, "instance refresh of "+name, step.StartRefresh{Group: name, Template: f.Template, MixedInstancesPolicy: f.MixedInstancesPolicy, Preferences: f.Preferences}); err != nil {
			return err
		}
	}
	return nil
}

// nodegroup makes a nodegroup. Its nodes then start.
func (m *maker) nodegroup(ctx context.Context, n observed.Nodegroup) error {
	n.Tags = own(n.Tags)
	n.Version, n.ReleaseVersion = "", ""
	_, err := m.execute(ctx, "nodegroup "+n.String(), step.CreateNodegroup{Nodegroup: n})
	return err
}

// convergeAll waits until nodegroups exist, and then restores their recorded properties.
func (m *maker) convergeAll(ctx context.Context) error {
	if len(m.seen.Nodegroups) == 0 {
		return nil
	}
	for at, due := m.srv.NextDue(); due && at.Before(m.now); at, due = m.srv.NextDue() {
		m.clock.Set(at)
	}
	var grafts []eks.NodegroupGraft
	needs := observed.Needs{}
	for name, n := range m.seen.Nodegroups {
		grafts = append(grafts, eks.NodegroupGraft{Cluster: name.Cluster, Name: name.Name, Version: n.Version, Release: n.ReleaseVersion, Created: n.CreatedAt})
		needs.Nodegroups = append(needs.Nodegroups, name)
	}
	if err := m.graft(awsemu.Graft{Nodegroups: grafts}); err != nil {
		return err
	}
	needs.Sort()
	made, err := m.cloud.Fill(ctx, observed.State{}, needs)
	if err != nil {
		return err
	}
	for _, name := range needs.Nodegroups { // restores own tags of the groups behind nodegroups
		was, is := m.seen.Nodegroups[name].GroupNames, made.Nodegroups[name].GroupNames
		for i := range min(len(was), len(is)) {
			tags := own(m.seen.Groups[was[i]].Tags)
			maps.DeleteFunc(tags, func(key string, _ observed.GroupTag) bool {
				return strings.HasPrefix(key, "eks:") || strings.HasPrefix(key, "k8s.io/cluster-autoscaler/")
			})
			if len(tags) == 0 {
				continue
			}
			if _, err := m.execute(ctx, "group of nodegroup "+name.String(), step.TagGroup{Group: is[i], Put: tags}); err != nil {
				return err
			}
		}
	}
	return nil
}
