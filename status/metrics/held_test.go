package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/statustest"
)

// How a target is held is a metric as long as it is, and only by who passes over the target:
// what another member has taken over is measured there.
func TestMetricsOfAHold(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, "test")
	read := func() map[string]float64 {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			for _, one := range f.GetMetric() {
				for _, l := range one.GetLabel() {
					if f.GetName() == "weir_target_held" && l.GetName() == "to" {
						out[l.GetValue()] = one.GetGauge().GetValue()
					}
				}
			}
		}
		return out
	}
	for _, c := range []struct {
		report           *plan.Report
		earlier, nothing float64
	}{
		{statustest.Report("prod"), 0, 0},
		{statustest.HeldTo(statustest.ShaOld), 1, 0},
		{statustest.HeldTo(""), 0, 1},
		{statustest.Report("prod"), 0, 0},
		{statustest.HeldTo(statustest.ShaOld), 1, 0},
	} {
		m.Report(t.Context(), c.report)
		if got := read(); len(got) != 2 || got["earlier"] != c.earlier || got["nothing"] != c.nothing {
			t.Errorf("%+v: %v", c.report.Fallback, got)
		}
	}
	m.Elsewhere("prod")
	if got := read(); len(got) != 0 {
		t.Errorf("of what another member looks after: %v", got)
	}
}
