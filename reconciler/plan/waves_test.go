package plan

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

func TestWavesFollowOneAnother(t *testing.T) {
	report := func(change ...func(*Report)) *Report {
		r := &Report{Target: "canary", Source: "s", Revision: "2", Wanted: "w", Seq: 7, Plan: &Plan{}}
		for _, c := range change {
			c(r)
		}
		return r
	}
	at := func(revision string) func(*Report) { return func(r *Report) { r.Revision = revision } }
	seq := func(n int64) func(*Report) { return func(r *Report) { r.Seq = n } }
	of := func(source string) func(*Report) { return func(r *Report) { r.Source = source } }
	wants := func(sum string) func(*Report) { return func(r *Report) { r.Wanted = sum } }
	level := func(id string) func(*Report) { return func(r *Report) { r.Levels = []model.Level{{ID: id}} } }
	fault := func(code, object string) func(*Report) {
		return func(r *Report) { r.Diagnostics = diag.List{{Severity: diag.Error, Code: code, Object: object}} }
	}
	rolling := func(r *Report) { r.Pools = []PoolStatus{{Rollout: &RolloutStatus{}}} }
	scaling := func(r *Report) { r.Pools = []PoolStatus{{}} }
	left := func(r *Report) {
		r.Pools = []PoolStatus{{Namespace: "x", Name: "web", Conditions: []Condition{{Type: conditionReady, Status: "False", Severity: "Warning", Reason: "RolloutIncomplete", Message: "1 instance is left"}}}}
	}
	steps := func(r *Report) { r.Plan = &Plan{Steps: []step.Step{{Verb: step.Update}}} }
	held := func(h step.Hold, reason string) func(*Report) {
		return func(r *Report) { r.Plan = &Plan{Steps: []step.Step{{Held: h, HeldReason: reason, Pool: "x/web"}}} }
	}
	refused := func(r *Report) {
		r.Outcomes = []step.Outcome{{Status: step.Failed, Parked: true, Step: step.Step{Pool: "x/web"}, Err: &observed.Error{Operation: "CreateAutoScalingGroup", Code: "ValidationError"}}}
	}
	const again = ", or weir reconcile canary --retry"
	for name, tc := range map[string]struct {
		passes []*Report
		want   string // after "waits for the target canary, which "
	}{
		"unknown":                      {nil, "has not been observed yet"},
		"done":                         {[]*Report{report()}, ""},
		"no pools":                     {[]*Report{report(func(r *Report) { r.Pools = nil })}, ""},
		"done, a newer image is next":  {[]*Report{report(func(r *Report) { r.Plan.pools = model.PoolPlans{{Behind: true}} })}, "has not yet moved to a newer image that it follows"},
		"done before":                  {[]*Report{report(at("1"))}, "is not at 2 yet"},
		"ahead":                        {[]*Report{report(at("3"))}, "is not at 2 yet"},
		"another source":               {[]*Report{report(of("other"), at("7"))}, ""},
		"another configuration":        {[]*Report{report(wants("v"))}, "has not been observed since its desired state changed"},
		"failed":                       {[]*Report{report(fault("rollout-failed", "AWSMachinePool x/web"))}, "failed: rollout-failed for AWSMachinePool x/web; released by: a commit that changes the pool" + again},
		"failed later":                 {[]*Report{report(), report(fault("no-subnets", ""))}, "failed: no-subnets"},
		"broken":                       {[]*Report{report(), report(fault("unknown-field", ""), func(r *Report) { r.Plan = nil })}, "failed: unknown-field; released by: a commit that fixes it"},
		"refused":                      {[]*Report{report(steps, refused)}, "failed: CreateAutoScalingGroup: ValidationError for x/web; released by: a commit that changes it" + again},
		"rolling":                      {[]*Report{report(at("1")), report(rolling)}, "rolls out"},
		"rolling again":                {[]*Report{report(), report(rolling)}, "rolls out"},
		"scaling, never seen done":     {[]*Report{report(at("1")), report(scaling)}, "has not converged yet"},
		"scaling, seen done":           {[]*Report{report(), report(scaling)}, ""},
		"scaling, done elsewhere":      {[]*Report{report(wants("v")), report(scaling)}, "has not converged yet"},
		"before a commit came back":    {[]*Report{report(seq(6))}, "has not been observed since its desired state changed"},
		"since a later one came back":  {[]*Report{report(seq(8))}, ""},
		"scaling, done before that":    {[]*Report{report(seq(6)), report(scaling)}, "has not converged yet"},
		"scaling, done with the image": {[]*Report{report(level("ami-1")), report(level("ami-1"), scaling)}, ""},
		"scaling, a newer image":       {[]*Report{report(level("ami-1")), report(level("ami-2"), scaling)}, "has not converged yet"},
		"machines left, a newer image": {[]*Report{report(level("ami-1")), report(level("ami-2"), left)}, "has not converged yet: x/web: 1 instance is left"},
		"with steps, seen done":        {[]*Report{report(), report(steps)}, "has not converged yet"},
		"suspended":                    {[]*Report{report(held(step.HeldSuspended, "suspended by ann"))}, "is held (suspended): suspended by ann"},
		"suspended by configuration":   {[]*Report{report(held(step.HeldSuspended, ""))}, "is held (suspended): by its configuration"},
		"suspended, nothing to do":     {[]*Report{report(func(r *Report) { r.Suspended = true })}, ""},
		"in report mode":               {[]*Report{report(held(step.HeldSuspended, "x"), func(r *Report) { r.ReportOnly = true })}, "is in report mode: it changes nothing until its configuration sets mode: correct"},
		"paused":                       {[]*Report{report(held(step.HeldPaused, ""))}, "is held (paused): the pool x/web, until a commit removes the pause"},
		"not approved":                 {[]*Report{report(held(step.HeldApproval, "weir approve abc"))}, "is held (approval): weir approve abc"},
		"its source cannot be read":    {[]*Report{report(), report(func(r *Report) { r.Err = errors.New("away") })}, "failed: its source or its account cannot be reached"},
	} {
		var s Standing
		for _, r := range tc.passes {
			s = s.After(r)
		}
		want := tc.want
		if want != "" {
			want = "waits for the target canary, which " + want
		}
		if got := WaitFor("s", "2", "canary", "w", 7, s); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestThoseThatComeAfterAreToldOfChangesAlone(t *testing.T) {
	done := &Report{Revision: "1", Plan: &Plan{}, Levels: []model.Level{{ID: "ami-1"}}}
	fresh := *done
	fresh.Fresh = time.Unix(1, 0)
	back := *done
	back.Seq = 2
	moved := *done
	moved.Levels = []model.Level{{ID: "ami-2"}}
	busy := *done
	busy.Plan = &Plan{Steps: []step.Step{{}}}
	for name, tc := range map[string]struct {
		before, after *Report
		want          bool
	}{
		"the same":          {done, done, false},
		"asked anew":        {done, &fresh, true},
		"asked before":      {&fresh, done, false},
		"another image":     {done, &moved, true},
		"the commit back":   {done, &back, true},
		"done after work":   {&busy, done, true},
		"work after done":   {done, &busy, false},
		"still with work":   {&busy, &busy, false},
		"seen for the once": {nil, done, true},
	} {
		var s Standing
		if tc.before != nil {
			s = s.After(tc.before)
		}
		if got := s.After(tc.after).Opens(s); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// eksImageOf is what EKS calls an image of a day.
func eksImageOf(day string) string { return "amazon-eks-node-al2023-x86_64-standard-1.33-v" + day }

// TestWhatMovesGoesThroughEarlierTargetsFirst has a pool whose image has moved without
// a commit, after targets that had converged before it did.
func TestWhatMovesGoesThroughEarlierTargetsFirst(t *testing.T) {
	t0 := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	lookup := intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.33"}
	now := model.Level{ID: "ami-new", Name: eksImageOf("20261101"), Since: t0}
	dev := func(account, region string, fresh time.Time, levels ...model.Level) model.Earlier {
		return model.Earlier{Target: "dev", Account: account, Region: region, Fresh: fresh, Levels: levels}
	}
	const unaware = "waits for the target dev, which has not yet looked for the EKS image AmazonLinux2023 for Kubernetes 1.33 and instance type (none)"
	older := model.Level{ID: "ami-old", Name: eksImageOf("20261001")}
	golden := model.Level{ID: "ami-own", Name: "golden-2026-10"}
	for name, tc := range map[string]struct {
		earlier model.Earlier
		want    string
	}{
		"asked before":                      {dev("1", "eu-west-1", t0.Add(-1), older), unaware},
		"never asked since it was known":    {dev("1", "eu-west-1", time.Time{}, older), unaware},
		"has the very image":                {dev("1", "eu-west-1", time.Time{}, model.Level{ID: "ami-new"}), ""},
		"has the name elsewhere":            {dev("1", "us-east-1", time.Time{}, model.Level{ID: "ami-x", Name: now.Name}), ""},
		"has the name in another account":   {dev("2", "eu-west-1", time.Time{}, model.Level{ID: "ami-x", Name: now.Name}), ""},
		"has the name, of another image":    {dev("1", "eu-west-1", time.Time{}, model.Level{ID: "ami-x", Name: now.Name}), unaware},
		"asked since, its own images":       {dev("2", "us-east-1", t0, golden), ""},
		"asked since, not published there":  {dev("1", "us-east-1", t0, older), "waits for the target dev, which has " + older.Name + ": AWS has not yet published " + now.Name + " in us-east-1"},
		"asked since, published later ones": {dev("1", "us-east-1", t0, model.Level{ID: "ami-x", Name: eksImageOf("20261201")}), ""},
		"asked since, another kind":         {dev("1", "us-east-1", t0, model.Level{ID: "ami-x", Name: "amazon-eks-node-1.33-v20261001"}), ""},
		"follows nothing":                   {dev("1", "us-east-1", time.Time{}), ""},
	} {
		m := newModel()
		pool := groupPool("web", "m5.large", 2)
		converge(t, m, testInput(pool))
		in := testInput(pool)
		changed := groupPool("web", "m5.xlarge", 2)
		changed.LaunchTemplate.Image = lookup
		size := groupPool("api", "m5.large", 2)
		size.LaunchTemplate.Image = lookup
		in.Set.Pools = []intent.Pool{changed}
		in.Policy.Account, in.Policy.Region = "1", "eu-west-1"
		in.Answers = observed.Answers{}
		for l, a := range testInput(pool).Answers {
			in.Answers[l] = a
		}
		in.Answers[lookup] = observed.Answer{Image: &observed.Image{ID: now.ID, Name: now.Name, Architecture: "x86_64", RootDevice: "/dev/xvda"}}
		in.Levels = map[intent.Lookup]model.Level{lookup: now}
		in.Policy.Gates.Earlier = []model.Earlier{tc.earlier}
		p, _ := m.pass(t, in)
		if len(p.Steps) < 2 {
			t.Fatalf("%s: steps %v, %v", name, verbs(p), p.Diagnostics)
		}
		for _, s := range p.Steps {
			if s.HeldReason != tc.want || (s.Held == step.HeldWave) != (tc.want != "") {
				t.Errorf("%s: %s %s: held %q, %q, want %q", name, s.Verb, s.Resource, s.Held, s.HeldReason, tc.want)
			}
		}
	}
}

// TestAnImageThatIsNotTakenHoldsNothing has a pool whose machines go back to the version
// that it wants, while a newer image is published that an earlier target has not looked for.
func TestAnImageThatIsNotTakenHoldsNothing(t *testing.T) {
	lookup := intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.33"}
	published := func(in model.Input, id string) model.Input {
		in.Answers = maps.Clone(in.Answers)
		in.Answers[lookup] = observed.Answer{Image: &observed.Image{ID: id, Architecture: "x86_64", RootDevice: "/dev/xvda"}}
		return in
	}
	for follows, want := range map[bool]step.Hold{false: "", true: step.HeldWave} {
		m, pool := newModel(), groupPool("web", "m5.large", 2)
		pool.LaunchTemplate.Image, pool.FollowImages = lookup, follows
		other := groupPool("web", "m5.xlarge", 2)
		other.LaunchTemplate.Image = lookup
		converge(t, m, published(testInput(other), "ami-1"))
		in := published(testInput(pool), "ami-1")
		converge(t, m, in)
		delete(m.state.Refreshes, "web")
		g := m.state.Groups["web"]
		g.Instances = slices.Clone(g.Instances)
		g.Instances[0].Template.Version = "1"
		m.state.Groups["web"] = g
		in = published(in, "ami-2")
		in.Levels = map[intent.Lookup]model.Level{lookup: {ID: "ami-2", Since: in.Now}}
		in.Policy.Gates.Earlier = []model.Earlier{{Target: "dev", Fresh: in.Now.Add(-time.Hour), Levels: []model.Level{{ID: "ami-1"}}}}
		p, _ := m.pass(t, in)
		if len(p.Steps) == 0 {
			t.Fatalf("follows %v: no step, %v", follows, p.Diagnostics)
		}
		for _, s := range p.Steps {
			if s.Held != want {
				t.Errorf("follows %v: %s %s is held %q: %s", follows, s.Verb, s.Resource, s.Held, s.HeldReason)
			}
		}
	}
}

func TestLevels(t *testing.T) {
	for name, tc := range map[string]struct {
		lookup intent.Lookup
		answer observed.Answer
		want   model.Level
		none   bool
	}{
		"an image that EKS publishes":   {lookup: intent.Lookup{Kind: intent.ImageForEKS}, answer: observed.Answer{Image: &observed.Image{ID: "ami-1", Name: "n"}}, want: model.Level{ID: "ami-1", Name: "n"}},
		"one that Git names":            {lookup: intent.Lookup{Kind: intent.ImageByID}, answer: observed.Answer{Image: &observed.Image{ID: "ami-1"}}, none: true},
		"no image":                      {lookup: intent.Lookup{Kind: intent.ImageByName}, answer: observed.Answer{Problem: "none"}, none: true},
		"a version of a template":       {lookup: intent.Lookup{Kind: intent.TemplateByName}, answer: observed.Answer{Template: &observed.ForeignTemplate{ID: "lt-1", Version: 7}}, want: model.Level{ID: "lt-1:7"}},
		"the version of control planes": {lookup: intent.Lookup{Kind: intent.EKSCluster}, answer: observed.Answer{Cluster: &observed.EKSCluster{Name: "prod", Version: "1.33"}}, want: model.Level{ID: "Kubernetes 1.33", Name: "Kubernetes 1.33"}},
		"subnets":                       {lookup: intent.Lookup{Kind: intent.Subnets}, answer: observed.Answer{Subnets: []string{"subnet-1"}}, none: true},
	} {
		if got, ok := LevelOf(tc.lookup, tc.answer); got != tc.want || ok == tc.none {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

// TestDriftIsPutBackWhileAWaveHolds has pools that had converged differ from Git, which
// has not changed, while an earlier target has not converged.
func TestDriftIsPutBackWhileAWaveHolds(t *testing.T) {
	made := func(t *testing.T) (*fakeAWS, model.Input) {
		m, in := newModel(), testInput(groupPool("web", "m5.large", 3), nodegroupPool("ng", 2))
		converge(t, m, testInput(groupPool("web", "m5.xlarge", 3), nodegroupPool("ng", 2)))
		m.behind()
		converge(t, m, in)
		m.behind()
		converge(t, m, in)
		p, full := m.pass(t, in)
		in.Memory.Converged = map[string]model.LastConverged{}
		RememberConverged(in.Memory.Converged, nil, full, p, Statuses(full, p))
		if len(in.Memory.Converged) != 2 {
			t.Fatalf("settled: %v", in.Memory.Converged)
		}
		return m, in
	}
	size := func(m *fakeAWS) {
		g := m.state.Groups["web"]
		g.MaxSize++
		m.state.Groups["web"] = g
	}
	others := func(m *fakeAWS, _ *model.Input) {
		g := m.state.Groups["web"]
		g.Instances = slices.Clone(g.Instances)
		delete(m.state.Refreshes, "web")
		g.Instances[0].Template.Version = "1"
		m.state.Groups["web"] = g
	}
	newer := func(in *model.Input) {
		in.Answers = maps.Clone(in.Answers)
		in.Answers[imageLookup] = observed.Answer{Image: &observed.Image{ID: "ami-2", RootDevice: "/dev/sda1", RootSize: 8}}
	}
	for name, tc := range map[string]struct {
		change func(m *fakeAWS, in *model.Input)
		want   []string
	}{
		"a size":                     {func(m *fakeAWS, _ *model.Input) { size(m) }, []string{"update:"}},
		"the group is gone":          {func(m *fakeAWS, _ *model.Input) { delete(m.state.Groups, "web") }, []string{"create:"}},
		"machines of another kind":   {others, []string{"rollout:wave"}},
		"a size, and Git changed":    {func(m *fakeAWS, in *model.Input) { size(m); in.Set.Pools[1] = groupPool("web", "m5.large", 2) }, []string{"update:wave"}},
		"a size, and a newer image":  {func(m *fakeAWS, in *model.Input) { size(m); newer(in) }, []string{"update:wave"}},
		"a size, after a restart":    {func(m *fakeAWS, in *model.Input) { size(m); in.Memory.Converged = nil }, []string{"update:wave"}},
		"a size, while windows hold": {func(m *fakeAWS, in *model.Input) { size(m); in.Policy.Gates.Window = "x" }, []string{"update:"}},
		"a size, not approved":       {func(m *fakeAWS, in *model.Input) { size(m); in.Policy.Gates.AsReviewed = true }, []string{"update:approval"}},
	} {
		m, in := made(t)
		in.Policy.Gates.Wave = "waits for dev"
		tc.change(m, &in)
		p, _ := m.pass(t, in)
		if d := cmp.Diff(tc.want, heldOf(p)); d != "" {
			t.Errorf("%s (-want +got):\n%s%v", name, d, p.Diagnostics)
		}
	}
}
