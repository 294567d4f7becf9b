package app

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// TestGatesGoByThePresentConfiguration: a provider whose files are not there yet makes its
// gates unknown and nothing else, and a reload that names another server is asked there.
func TestGatesGoByThePresentConfiguration(t *testing.T) {
	t.Parallel()
	serve := func(value string) *httptest.Server {
		hs := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[1,%q]}}`, value)
		}))
		t.Cleanup(hs.Close)
		return hs
	}
	good, bad := serve("0"), serve("7")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	now := &currentGeneration{}
	reload := func(url string) {
		g := &generation{config: &config.Config{Interval: time.Minute}, providers: makeProviders([]config.GateProvider{{Name: "main", Type: config.Prometheus, URL: url, CAFile: ca}})}
		if before := now.Swap(g); before != nil {
			before.providers.close()
		}
		t.Cleanup(g.providers.close)
	}
	gates := newGates(clock.New(), now)
	at := time.Now()
	gates.Now = func() time.Time { return at }
	most := 1.0
	ask := func(provider string) rollout.Answer {
		at = at.Add(time.Minute)
		q := rollout.Ask{Rollout: "fleet/nodes", Gate: intent.RolloutGate{Name: "errors", Prometheus: &intent.PrometheusGate{Provider: provider, Query: "up", Max: &most}}}
		return gates.Answers(t.Context(), []rollout.Ask{q}, nil)[q.Key()]
	}
	want := func(provider string, v rollout.Verdict) {
		t.Helper()
		if got := ask(provider); got.Verdict != v {
			t.Errorf("%+v, want %s", got, v)
		}
	}
	reload(good.URL)
	want("main", rollout.Unknown)
	want("other", rollout.Unknown)
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: good.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	want("main", rollout.Pass)
	reload(bad.URL)
	want("main", rollout.Fail)
}

// TestGatesGoByTheClockOfAWS: on a machine whose clock is wrong, what owners reported just now
// is neither old nor of a time to come.
func TestGatesGoByTheClockOfAWS(t *testing.T) {
	t.Parallel()
	aws := time.Now().Add(-3 * time.Hour)
	now := &currentGeneration{}
	now.Store(&generation{config: &config.Config{Interval: time.Minute}})
	pool := rollout.Pool{ID: rollout.ID{Target: "prod", Pool: "default/web"}, Hash: "new", Machines: 1, New: 1, Facts: rollout.Facts{NodesFrom: rollout.FromNodes, Ready: 1, ReadAt: aws.Add(-time.Second)}}
	q := rollout.Ask{Rollout: "fleet/nodes", Gate: intent.RolloutGate{Name: "ready", NodesReady: &intent.NodesReadyGate{Within: time.Minute}}, Pools: []rollout.Subject{{ID: pool.ID, Hash: "new"}}, Since: aws.Add(-time.Minute)}
	if got := newGates(clock.By(func() time.Time { return aws }), now).Answers(t.Context(), []rollout.Ask{q}, []rollout.Pool{pool})[q.Key()]; got.Verdict != rollout.Pass {
		t.Errorf("%+v", got)
	}
}
