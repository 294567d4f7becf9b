package metrics

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-gitops/weir/status/members"
)

func TestCoordination(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1")
	if n, err := testutil.GatherAndCount(reg, "weir_coordination_members", "weir_coordination_moves_total"); err != nil || n != 0 {
		t.Errorf("a daemon that is alone has %d figures of others, %v", n, err)
	}
	behind, began, refused := -7.5, time.Now(), atomic.Bool{}
	m.Coordination(func() members.View {
		engine := members.Engine{Kind: "etcd", Lag: 0.5}
		if refused.Load() {
			engine.Refused, engine.RefusedSince = "its quota is used up", began.Add(-90*time.Second)
		}
		return members.View{
			Engine:  engine,
			Members: []members.Member{{Name: "one", Answers: true, Scopes: 2, Sources: 1}, {Name: "two", Scopes: 9, Clock: &behind}},
			Owned:   []members.Owned{{Kind: members.Scope, Owner: "two"}, {Kind: members.Scope, Since: time.Now().Add(-time.Hour)}},
		}
	}, func() time.Duration { return 8 * time.Second })
	if n := figure(t, reg, "weir_coordination_writes_refused_seconds"); n != 0 {
		t.Errorf("refused for %v s though the engine takes writes", n)
	}
	refused.Store(true)
	if n := figure(t, reg, "weir_coordination_writes_refused_seconds"); n < 90 || n > 600 {
		t.Errorf("refused for %v s, not for 90 s and what this test took", n)
	}
	m.Move(members.Scope, members.TakenOver)
	m.EngineCall("Renew", "success", 3*time.Millisecond)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP weir_coordination_clock_difference_seconds The largest difference in seconds between this member's clock and the clock of another member.
# TYPE weir_coordination_clock_difference_seconds gauge
weir_coordination_clock_difference_seconds 7.5
# HELP weir_coordination_lag_seconds Seconds since this member last read the records.
# TYPE weir_coordination_lag_seconds gauge
weir_coordination_lag_seconds 0.5
# HELP weir_coordination_lease_left_seconds Seconds left of this member's lease, 0 without a lease.
# TYPE weir_coordination_lease_left_seconds gauge
weir_coordination_lease_left_seconds 8
# HELP weir_coordination_members Number of live members, as this member sees them.
# TYPE weir_coordination_members gauge
weir_coordination_members 2
# HELP weir_coordination_owned Number of scopes and sources that this member owns, by kind (scope or source).
# TYPE weir_coordination_owned gauge
weir_coordination_owned{kind="scope"} 2
weir_coordination_owned{kind="source"} 1
# HELP weir_coordination_unowned Number of scopes and sources without an owner, by kind (scope or source).
# TYPE weir_coordination_unowned gauge
weir_coordination_unowned{kind="scope"} 1
weir_coordination_unowned{kind="source"} 0
# HELP weir_coordination_engine_calls_total Calls to the engine by operation and result: success, refused (by the rules of leases and records) or error.
# TYPE weir_coordination_engine_calls_total counter
weir_coordination_engine_calls_total{operation="Renew",result="success"} 1
`), "weir_coordination_clock_difference_seconds", "weir_coordination_lag_seconds", "weir_coordination_lease_left_seconds", "weir_coordination_members", "weir_coordination_owned", "weir_coordination_unowned", "weir_coordination_engine_calls_total"); err != nil {
		t.Error(err)
	}
	if got := testutil.ToFloat64(m.coordination.moves.WithLabelValues(members.Scope, members.TakenOver)); got != 1 {
		t.Errorf("taken over: %v", got)
	}
}

// figure is the value of a gauge without labels.
func figure(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name && len(f.GetMetric()) == 1 {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}
