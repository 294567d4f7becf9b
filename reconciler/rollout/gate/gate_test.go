package gate_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/rollout/gate"
	"github.com/weir-gitops/weir/render/intent"
)

var (
	began = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	now   = began.Add(20 * time.Minute)
	web   = rollout.ID{Target: "prod", Pool: "default/web"}
	db    = rollout.ID{Target: "stage", Pool: "default/db"}
)

// pool is a pool of which three machines run the new version and are ready nodes.
func pool(id rollout.ID, change ...func(*rollout.Pool)) rollout.Pool {
	p := rollout.Pool{ID: id, Account: "111122223333", Region: "eu-west-1", Hash: "new", Machines: 9, New: 3,
		Facts: rollout.Facts{NodesFrom: rollout.FromNodes, Ready: 3, ReadAt: now.Add(-10 * time.Second), ActivitiesRead: now.Add(-20 * time.Second), Alarms: []rollout.Alarm{{Name: "errors", State: "OK"}, {Name: "late", State: "OK"}}}}
	for _, c := range change {
		c(&p)
	}
	return p
}

func ask(g intent.RolloutGate, ids ...rollout.ID) rollout.Ask {
	a := rollout.Ask{Rollout: "fleet/nodes", Gate: g, Since: began}
	for _, id := range ids {
		a.Pools = append(a.Pools, rollout.Subject{ID: id, Hash: "new"})
	}
	return a
}

var (
	nodes      = intent.RolloutGate{Name: "nodes", NodesReady: &intent.NodesReadyGate{Within: 10 * time.Minute}}
	required   = intent.RolloutGate{Name: "nodes", NodesReady: &intent.NodesReadyGate{Within: 10 * time.Minute, Required: true}}
	activities = intent.RolloutGate{Name: "launches", FailedActivities: &intent.FailedActivitiesGate{}}
	someFail   = intent.RolloutGate{Name: "launches", FailedActivities: &intent.FailedActivitiesGate{Max: 1}}
	alarms     = intent.RolloutGate{Name: "alarms", CloudWatchAlarms: &intent.AlarmsGate{Alarms: []string{"errors", "late"}}}
)

func waits(since time.Duration, why string) func(*rollout.Pool) {
	return func(p *rollout.Pool) {
		p.Facts.Ready--
		m := rollout.Machine{Instance: "i-1", Why: why}
		if since > 0 {
			m.Since = now.Add(-since)
		}
		p.Facts.Waiting = append(p.Facts.Waiting, m)
	}
}

func failed(at ...time.Duration) func(*rollout.Pool) {
	return func(p *rollout.Pool) {
		for _, ago := range at {
			p.Facts.Activities = append(p.Facts.Activities, rollout.Activity{At: now.Add(-ago), Cause: "InsufficientInstanceCapacity"})
		}
	}
}

func alarm(name, state string) func(*rollout.Pool) {
	return func(p *rollout.Pool) {
		for i := range p.Facts.Alarms {
			if p.Facts.Alarms[i].Name == name {
				p.Facts.Alarms[i].State = state
			}
		}
	}
}

func TestJudge(t *testing.T) {
	inService := func(p *rollout.Pool) { p.Facts.NodesFrom = rollout.FromInService }
	old := func(p *rollout.Pool) { p.Facts.ReadAt = began.Add(-time.Second) }
	for name, c := range map[string]struct {
		gate  intent.RolloutGate
		pools []rollout.Pool
		want  rollout.Verdict
		says  string
	}{
		"ready nodes":            {nodes, []rollout.Pool{pool(web), pool(db)}, rollout.Pass, "6 machines of the new version are ready"},
		"in service, said":       {nodes, []rollout.Pool{pool(web, inService), pool(db)}, rollout.Pass, "6 machines of the new version are ready; without kubeconfigFile of prod, a machine in service counts as ready"},
		"nodes are required":     {required, []rollout.Pool{pool(web, inService), pool(db)}, rollout.Unknown, "prod default/web: its nodes cannot be read, because its target has no kubeconfigFile, and the gate requires them"},
		"within its time":        {nodes, []rollout.Pool{pool(web, waits(9*time.Minute, "has not joined")), pool(db)}, rollout.Unknown, "prod default/web: 1 of 3 machines of the new version is not ready yet; each may take 10m0s: i-1 (has not joined)"},
		"beyond its time":        {nodes, []rollout.Pool{pool(web, waits(11*time.Minute, "KubeletNotReady")), pool(db)}, rollout.Fail, "prod default/web: 1 machine of the new version has had no Ready node for longer than 10m0s: i-1 (KubeletNotReady)"},
		"late since it was read": {nodes, []rollout.Pool{pool(web, waits(10*time.Minute+5*time.Second, "")), pool(db)}, rollout.Unknown, "not ready yet"},
		"nobody knows how long":  {nodes, []rollout.Pool{pool(web, waits(0, "")), pool(db)}, rollout.Unknown, "not ready yet"},
		"one fails, one is unknown": {nodes, []rollout.Pool{pool(web, waits(11*time.Minute, "")), pool(db, func(p *rollout.Pool) { p.Facts.NodesUnknown = "timeout" })},
			rollout.Fail, "prod default/web: 1 machine of the new version has had no Ready node"},
		"cluster away": {nodes, []rollout.Pool{pool(web), pool(db, func(p *rollout.Pool) {
			p.Facts.NodesFrom, p.Facts.NodesUnknown = rollout.FromInService, "connection refused"
		})}, rollout.Unknown, "stage default/db: the nodes of its cluster cannot be read: connection refused"},
		"not begun":        {nodes, []rollout.Pool{pool(web, func(p *rollout.Pool) { p.New, p.Facts.Ready = 0, 0 }), pool(db)}, rollout.Unknown, "no machine of the new version yet"},
		"an empty pool":    {nodes, []rollout.Pool{pool(web, func(p *rollout.Pool) { p.Machines, p.New, p.Facts.Ready = 0, 0, 0 }), pool(db)}, rollout.Pass, "3 machines"},
		"not reported":     {nodes, []rollout.Pool{pool(web)}, rollout.Unknown, "stage default/db: the member that owns it has not reported on it"},
		"of another hash":  {nodes, []rollout.Pool{pool(web, func(p *rollout.Pool) { p.Hash = "other" }), pool(db)}, rollout.Unknown, "has not reported on the version of the rollout"},
		"from before":      {nodes, []rollout.Pool{pool(web, old, waits(time.Hour, "")), pool(db)}, rollout.Unknown, "weir has not read it since the share started at 2026-03-01 08:00:00 UTC"},
		"an owner is away": {nodes, []rollout.Pool{pool(web, func(p *rollout.Pool) { p.Facts.ReadAt = now.Add(-6 * time.Minute) }), pool(db)}, rollout.Unknown, "weir has not read it since 2026-03-01 08:14:00 UTC"},
		"uncounted":        {nodes, []rollout.Pool{pool(web, func(p *rollout.Pool) { p.Facts.Ready = 1 }), pool(db)}, rollout.Unknown, "2 machines of the new version are not ready yet"},

		"nothing failed":        {activities, []rollout.Pool{pool(web), pool(db)}, rollout.Pass, "no scaling activity failed since 2026-03-01 08:00:00 UTC"},
		"failed before":         {activities, []rollout.Pool{pool(web, failed(21*time.Minute)), pool(db)}, rollout.Pass, "no scaling activity failed"},
		"one failed":            {activities, []rollout.Pool{pool(web, failed(time.Minute)), pool(db)}, rollout.Fail, "1 scaling activity failed since 2026-03-01 08:00:00 UTC: prod default/web: InsufficientInstanceCapacity"},
		"one may fail":          {someFail, []rollout.Pool{pool(web, failed(time.Minute)), pool(db)}, rollout.Pass, "1 scaling activity failed since 2026-03-01 08:00:00 UTC, 1 are allowed"},
		"two of two pools":      {someFail, []rollout.Pool{pool(web, failed(time.Minute)), pool(db, failed(2*time.Minute))}, rollout.Fail, "2 scaling activities failed since 2026-03-01 08:00:00 UTC, more than 1: prod default/web: InsufficientInstanceCapacity; stage default/db:"},
		"nobody asked for them": {activities, []rollout.Pool{pool(web), pool(db, func(p *rollout.Pool) { p.Facts.ActivitiesRead = began.Add(-time.Second) })}, rollout.Unknown, "stage default/db: its scaling activities have not been read since the share began"},
		"activities are unread": {activities, []rollout.Pool{pool(web), pool(db, old)}, rollout.Unknown, "stage default/db: weir has not read"},

		"alarms are OK":     {alarms, []rollout.Pool{pool(web), pool(db)}, rollout.Pass, "OK: errors; late"},
		"one in alarm":      {alarms, []rollout.Pool{pool(web, alarm("late", "ALARM")), pool(db)}, rollout.Fail, "prod default/web: the alarm late in 111122223333 eu-west-1 is in ALARM"},
		"not enough data":   {alarms, []rollout.Pool{pool(web, alarm("late", "INSUFFICIENT_DATA")), pool(db)}, rollout.Unknown, "the alarm late in 111122223333 eu-west-1 is INSUFFICIENT_DATA"},
		"there is none":     {alarms, []rollout.Pool{pool(web), pool(db, alarm("errors", ""))}, rollout.Unknown, "stage default/db: there is no alarm errors in 111122223333 eu-west-1"},
		"nobody asked":      {alarms, []rollout.Pool{pool(web), pool(db, func(p *rollout.Pool) { p.Facts.Alarms = p.Facts.Alarms[:1] })}, rollout.Unknown, "weir did not read the alarm late"},
		"alarms are denied": {alarms, []rollout.Pool{pool(web), pool(db, func(p *rollout.Pool) { p.Facts.AlarmsUnknown = "cloudwatch:DescribeAlarms is not allowed" })}, rollout.Unknown, "the alarms of its account and region cannot be read: cloudwatch:DescribeAlarms is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := gate.Judge(ask(c.gate, web, db), c.pools, now, 5*time.Minute)
			if a.Verdict != c.want || !strings.Contains(a.What, c.says) || a.At.IsZero() || a.At.After(now) {
				t.Errorf("%+v\nwant %s: %s", a, c.want, c.says)
			}
		})
	}
	if a := gate.Judge(ask(nodes), nil, now, 0); a.Verdict != rollout.Pass {
		t.Errorf("of no pool: %+v", a)
	}
	if a := gate.Judge(ask(nodes, web), []rollout.Pool{pool(web, func(p *rollout.Pool) { p.Facts.ReadAt = now.Add(-time.Minute) })}, now, 0); !a.At.Equal(now.Add(-time.Minute)) {
		t.Errorf("the answer is of %s, and what it rests on a minute old", a.At)
	}
}

// TestNothingPassesUnseen is the promise of every gate that is judged by facts: it passes
// only if each pool was read since the share began, about the version that is rolled out,
// and shows neither a sign of failure nor a machine that is not ready.
func TestNothingPassesUnseen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom([]intent.RolloutGate{nodes, required, activities, someFail, alarms}).Draw(t, "gate")
		sound, pools := true, []rollout.Pool{}
		for _, id := range []rollout.ID{web, db} {
			if rapid.IntRange(0, 9).Draw(t, "reported") == 0 {
				sound = false
				continue
			}
			p := pool(id)
			p.Hash = rapid.SampledFrom([]string{"new", "new", "other"}).Draw(t, "hash")
			p.New = rapid.Int32Range(0, 3).Draw(t, "new")
			p.Facts.Ready = rapid.Int32Range(0, p.New).Draw(t, "ready")
			p.Facts.ReadAt = now.Add(-time.Duration(rapid.IntRange(0, 25).Draw(t, "age")) * time.Minute)
			p.Facts.NodesFrom = rapid.SampledFrom([]string{rollout.FromNodes, rollout.FromInService, ""}).Draw(t, "from")
			p.Facts.Alarms[0].State = rapid.SampledFrom([]string{"OK", "OK", "ALARM", "INSUFFICIENT_DATA", ""}).Draw(t, "state")
			p.Facts.ActivitiesRead = p.Facts.ReadAt.Add(-time.Duration(rapid.IntRange(0, 1).Draw(t, "earlier")) * time.Minute)
			sound = sound && p.Hash == "new" && !p.Facts.ReadAt.Before(began)
			switch {
			case g.NodesReady != nil:
				sound = sound && p.Facts.Ready == p.New && p.New > 0 && (!g.NodesReady.Required || p.Facts.NodesFrom == rollout.FromNodes)
			case g.FailedActivities != nil:
				sound = sound && !p.Facts.ActivitiesRead.Before(began)
			case g.CloudWatchAlarms != nil:
				sound = sound && p.Facts.Alarms[0].State == "OK"
			}
			pools = append(pools, p)
		}
		a := gate.Judge(ask(g, web, db), pools, now, 0)
		if (a.Verdict == rollout.Pass) != sound || a.What == "" || a.At.IsZero() {
			t.Fatalf("%+v of %+v", a, pools)
		}
	})
}

func TestWithin(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for name, c := range map[string]struct {
		least, most *float64
		values      []float64
		want        rollout.Verdict
		says        string
	}{
		"at its bound":      {nil, f(0.05), []float64{0.05}, rollout.Pass, "0.05 of a, at most 0.05"},
		"over it":           {nil, f(0.05), []float64{0.01, 0.06}, rollout.Fail, "0.06 of b is not at most 0.05"},
		"under it":          {f(0.99), nil, []float64{0.98}, rollout.Fail, "0.98 of a is not at least 0.99"},
		"between":           {f(1), f(3), []float64{1, 2, 3}, rollout.Pass, "from 1 to 3"},
		"infinite":          {f(0), nil, []float64{math.Inf(1)}, rollout.Pass, "+Inf"},
		"no value":          {nil, f(1), nil, rollout.Unknown, "or vector(0)"},
		"no number":         {nil, f(1), []float64{math.NaN(), 0}, rollout.Unknown, "NaN of a"},
		"no number and bad": {nil, f(1), []float64{math.NaN(), 2}, rollout.Fail, "2 of b"},
		"many":              {nil, f(0), []float64{1, 2, 3, 4, 5}, rollout.Fail, "3 of c is not at most 0; and 2 more"},
	} {
		var samples []gate.Sample
		for i, v := range c.values {
			samples = append(samples, gate.Sample{Of: string(rune('a' + i)), Value: v})
		}
		a := gate.Within(&intent.PrometheusGate{Provider: "main", Min: c.least, Max: c.most}, samples)
		if a.Verdict != c.want || !strings.Contains(a.What, c.says) {
			t.Errorf("%s: %+v, want %s: %s", name, a, c.want, c.says)
		}
	}
}

// provider counts what it is asked.
type provider struct {
	asked atomic.Int64
	value float64
	err   error
	block bool
}

func (p *provider) Query(ctx context.Context, _ string) ([]gate.Sample, error) {
	p.asked.Add(1)
	if p.block {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []gate.Sample{{Value: p.value}}, p.err
}

func TestProvidersAreAskedOnceEach(t *testing.T) {
	main, at := &provider{}, now
	a := &gate.Asker{Now: func() time.Time { return at }, Provider: func(name string) gate.Provider {
		if name == "main" {
			return main
		}
		return nil
	}}
	most := 1.0
	question := func(rollouts, name, query string) rollout.Ask {
		q := ask(intent.RolloutGate{Name: name, Prometheus: &intent.PrometheusGate{Provider: "main", Query: query, Max: &most}}, web)
		q.Rollout = rollouts
		return q
	}
	asks := []rollout.Ask{question("a", "errors", "up"), question("b", "errors", "up"), question("b", "more", "down"), ask(nodes, web)}
	step := func(d time.Duration, want int64, verdict rollout.Verdict) {
		t.Helper()
		at = at.Add(d)
		got := a.Answers(t.Context(), asks, []rollout.Pool{pool(web, func(p *rollout.Pool) { p.Facts.ReadAt = at })})
		if len(got) != 4 || got["a|errors"].Verdict != verdict || got["b|more"].Verdict != verdict || got["b|nodes"].Verdict != "" || got["fleet/nodes|nodes"].Verdict != rollout.Pass {
			t.Errorf("%+v", got)
		}
		if n := main.asked.Load(); n != want {
			t.Errorf("asked %d times, want %d", n, want)
		}
	}
	step(0, 2, rollout.Pass)
	main.value = 2
	step(9*time.Second, 2, rollout.Pass) // of a moment ago
	step(time.Second, 4, rollout.Fail)
	main.err = errors.New("main is away")
	step(10*time.Second, 6, rollout.Unknown)
	main.err = nil
	step(time.Second, 6, rollout.Unknown)
	asks[0].Since, asks[2].Since = at.Add(time.Second), at.Add(time.Second) // a share that began since
	step(time.Second, 8, rollout.Fail)

	asks = []rollout.Ask{question("a", "errors", "up")}
	asks[0].Gate.Prometheus.Provider = "gone"
	if got := a.Answers(t.Context(), asks, nil)["a|errors"]; got.Verdict != rollout.Unknown || got.What != "gone has not answered: the configuration has no gate provider gone" {
		t.Errorf("%+v", got)
	}
	main.block, at = true, at.Add(time.Minute)
	asks[0].Gate.Prometheus.Provider = "main"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := a.Answers(ctx, asks, nil)["a|errors"]; got.Verdict != rollout.Unknown || !strings.Contains(got.What, "main has not answered") {
		t.Errorf("%+v", got)
	}
}
