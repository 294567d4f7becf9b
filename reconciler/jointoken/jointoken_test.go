package jointoken_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/render/diag"
	"pgregory.net/rapid"
)

func TestTokenIsMadeAndKept(t *testing.T) {
	w := newWorld(t, "a", "b")
	r := w.keep(t)
	if len(r.Diagnostics) > 0 || r.Writes != 4 || len(r.Until) != 2 {
		t.Fatalf("%+v", r)
	}
	w.sound(t)
	for name, s := range w.server.Secrets() {
		want := map[string]string{"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true", "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token"}
		for k, v := range want {
			if s[k] != v {
				t.Errorf("%s: %s is %q", name, k, s[k])
			}
		}
	}
	p := w.store.params["/weir/prod/demo/default/a"]
	if p.Tags["weir.dev/pool"] != "default/a" || p.Tags["weir.dev/source"] != "0123456789ab" {
		t.Errorf("tags %v", p.Tags)
	}
	if token := strings.Fields(p.Value)[0]; strings.Contains(p.Description, token[7:]) || !strings.Contains(p.Description, token[:6]) {
		t.Errorf("description %q", p.Description)
	}
	// At rest nothing is asked before the next check, and nothing is written then.
	calls := w.store.calls
	w.server.Log()
	if again := w.keep(t); again.Writes != 0 || len(again.Until) != 2 || w.store.calls != calls || len(w.server.Log()) != 0 {
		t.Errorf("at rest: %+v, %d calls", again, w.store.calls-calls)
	}
	w.now = w.now.Add(6 * time.Minute)
	if again := w.keep(t); again.Writes != 0 || w.store.calls != calls+1 || len(w.server.Log()) != 2 {
		t.Errorf("the next check: %+v, %d calls", again, w.store.calls-calls)
	}
	w.restart()
	if again := w.keep(t); again.Writes != 0 || len(again.Until) != 2 {
		t.Errorf("after a restart: %+v", again)
	}
}

func TestTokenIsRenewedInTime(t *testing.T) {
	w := newWorld(t, "a")
	w.keep(t)
	first := strings.Fields(w.store.params["/weir/prod/demo/default/a"].Value)[0]
	w.now = w.now.Add(jointoken.Life/2 + time.Minute)
	if r := w.keep(t); r.Writes != 2 || len(r.Diagnostics) > 0 {
		t.Fatalf("%+v", r)
	}
	w.sound(t)
	second := strings.Fields(w.store.params["/weir/prod/demo/default/a"].Value)[0]
	if first == second || len(w.server.Secrets()) != 2 {
		t.Errorf("%d tokens while both hold", len(w.server.Secrets()))
	}
	w.now = w.now.Add(jointoken.Life / 2)
	if r := w.keep(t); r.Writes != 3 { // the first is deleted, a third is made
		t.Errorf("%+v", r)
	}
	w.sound(t)
	if len(w.server.Secrets()) != 2 {
		t.Errorf("%d tokens", len(w.server.Secrets()))
	}
}

func TestWhatIsNotOursStays(t *testing.T) {
	w := newWorld(t, "a")
	expired := map[string]string{"token-id": "foreig", "token-secret": "0123456789abcdef", "expiration": "2020-01-01T00:00:00Z"}
	w.server.AddSecret("kube-system", "bootstrap-token-foreig", "bootstrap.kubernetes.io/token", nil, expired)
	w.server.AddSecret("kube-system", "other", "Opaque", map[string]string{"app.kubernetes.io/managed-by": "weir", "weir.dev/owner": "prod", "weir.dev/target": "demo"}, nil)
	w.server.AddSecret("kube-system", "bootstrap-token-elsewh", "bootstrap.kubernetes.io/token", map[string]string{"app.kubernetes.io/managed-by": "weir", "weir.dev/owner": "other", "weir.dev/target": "demo"}, expired)
	w.store.params["/weir/prod/demo/default/a"] = jointoken.Write{Value: "theirs"}
	w.store.params["/weir/other/demo/default/z"] = jointoken.Write{Value: "theirs", Tags: map[string]string{"weir.dev/owner": "other", "weir.dev/target": "demo"}}
	w.req.Prune = true
	r := w.keep(t)
	if len(r.Diagnostics) != 1 || r.Diagnostics[0].Code != "join-token-conflict" || len(r.Until) != 0 {
		t.Errorf("%+v", r)
	}
	if w.store.params["/weir/prod/demo/default/a"].Value != "theirs" || w.store.params["/weir/other/demo/default/z"].Value != "theirs" {
		t.Error("a foreign parameter was changed")
	}
	for _, name := range []string{"bootstrap-token-foreig", "other", "bootstrap-token-elsewh"} {
		if w.server.Secrets()["kube-system/"+name] == nil {
			t.Errorf("Secret %s is gone", name)
		}
	}
}

func TestTokenGoesWithItsPool(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.keep(t)
	w.req.Wanted = w.req.Wanted[:1]
	w.req.Standing["default/b"] = true
	w.req.Prune = true
	// While its machines may start, its token is kept and renewed.
	for range 3 {
		w.now = w.now.Add(jointoken.Life/2 + time.Minute)
		if r := w.keep(t); len(r.Diagnostics) > 0 {
			t.Fatal(r.Diagnostics)
		}
		w.req.Wanted = append(w.req.Wanted, wanted("b"))
		w.sound(t)
		w.req.Wanted = w.req.Wanted[:1]
	}
	delete(w.req.Standing, "default/b")
	w.req.Prune = false
	if w.keep(t); w.store.params["/weir/prod/demo/default/b"].Value == "" {
		t.Error("deleted without pruning")
	}
	w.req.Prune = true
	w.keep(t)
	if _, stays := w.store.params["/weir/prod/demo/default/b"]; stays {
		t.Error("the parameter is still there")
	}
	for name, s := range w.server.Secrets() {
		if strings.Contains(s["description"], "default/b") {
			t.Errorf("Secret %s is still there", name)
		}
	}
	w.sound(t)
	// The last pool goes too.
	w.req.Wanted = nil
	w.keep(t)
	if len(w.store.params)+len(w.server.Secrets()) != 0 {
		t.Errorf("left %v and %v", w.store.params, w.server.Secrets())
	}
}

// TestNothingIsLostWhereverItStops fails each call of each side in turn, before
// and after its effect, restarts, and wants the same state as without a fault.
// TestPrefixesThatReadLikeWhatFollows has the owner's and the target's name in the
// prefix too: which pool a parameter is for can be told nevertheless.
func TestPrefixesThatReadLikeWhatFollows(t *testing.T) {
	for _, prefix := range []string{"/weir", "/prod/demo", "/a/prod/demo/prod", "/prod/demo/prod/demo"} {
		for _, key := range []string{"default/b", "launch-config/default/b", "demo/b"} {
			w := newWorld(t)
			parameter := prefix + "/prod/demo/" + key
			w.req.Wanted = []jointoken.Pool{{Key: key, Parameter: parameter}}
			w.keep(t)
			w.req.Wanted, w.req.Prune, w.req.Standing[key] = nil, true, true
			for range 2 {
				w.now = w.now.Add(jointoken.Life/2 + time.Minute)
				w.keep(t)
			}
			w.req.Wanted = []jointoken.Pool{{Key: key, Parameter: parameter}}
			w.sound(t)
			w.req.Wanted, w.req.Standing = nil, map[string]bool{}
			if w.keep(t); len(w.store.params)+len(w.server.Secrets()) != 0 {
				t.Errorf("%s: left %v and %v", parameter, w.store.params, w.server.Secrets())
			}
		}
	}
}

func TestNothingIsLostWhereverItStops(t *testing.T) {
	for _, after := range []bool{false, true} {
		for call := 1; call <= 12; call++ {
			for _, inCluster := range []bool{false, true} {
				t.Run(fmt.Sprint("after ", after, " call ", call, " cluster ", inCluster), func(t *testing.T) {
					w := newWorld(t, "a", "b")
					if inCluster {
						// The cluster's requests are told apart by their count alone.
						w.server.FailAt(call, workloadtest.Fault{After: after})
					} else {
						w.store.failAt, w.store.after = call, after
					}
					w.keep(t)
					w.server.Heal()
					w.store.failAt = 0
					w.restart()
					w.keep(t)
					w.sound(t)
					if len(w.server.Secrets()) != 2 || len(w.store.params) != 2 {
						t.Errorf("%d tokens and %d parameters", len(w.server.Secrets()), len(w.store.params))
					}
					if r := w.keep(t); r.Writes != 0 {
						t.Errorf("%d writes at rest", r.Writes)
					}
					w.req.Wanted, w.req.Prune = w.req.Wanted[:1], true
					if inCluster {
						w.server.FailAt(call, workloadtest.Fault{After: after})
					} else {
						w.store.failAt, w.store.after = w.store.calls+call, after
					}
					w.keep(t)
					w.server.Heal()
					w.store.failAt = 0
					w.restart()
					w.keep(t)
					w.sound(t)
					if len(w.server.Secrets()) != 1 || len(w.store.params) != 1 {
						t.Errorf("after a pool is gone: %d tokens and %d parameters", len(w.server.Secrets()), len(w.store.params))
					}
				})
			}
		}
	}
}

func TestNoErrorHoldsAToken(t *testing.T) {
	w := newWorld(t, "a")
	w.store.failAt = 2 // the first writing of the parameter
	r := w.keep(t)
	if len(r.Diagnostics) != 1 || r.Diagnostics[0].Severity != diag.Error {
		t.Fatalf("%+v", r)
	}
	text := fmt.Sprintf("%v %+v %#v", r.Diagnostics, r, r)
	for _, s := range w.server.Secrets() {
		if strings.Contains(text, s["token-secret"]) {
			t.Errorf("the token is in %s", text)
		}
	}
	if !strings.Contains(text, "scripted (redacted)") {
		t.Errorf("said %s", text)
	}
}

func TestClusterIsAway(t *testing.T) {
	w := newWorld(t, "a")
	for _, status := range []int{0, 401, 403, 500, 503} {
		w.server.Fail(workloadtest.Fault{Status: status})
		w.now = w.now.Add(2 * time.Minute)
		r := w.keep(t)
		if len(r.Diagnostics) != 1 || r.Diagnostics[0].Code != "join-token-failed" || r.Diagnostics[0].Severity != diag.Error || len(r.Until) != 0 {
			t.Errorf("status %d without a token: %+v", status, r)
		}
		w.server.Heal()
	}
	w.now = w.now.Add(2 * time.Minute)
	if r := w.keep(t); len(r.Diagnostics) != 0 || len(r.Until) != 1 {
		t.Fatalf("%+v", r)
	}
	// With a token that holds it is a warning, also for a new process.
	w.restart()
	w.server.Fail(workloadtest.Fault{Status: 503})
	if r := w.keep(t); len(r.Diagnostics) != 1 || r.Diagnostics[0].Severity != diag.Warning || len(r.Until) != 1 {
		t.Errorf("%+v", r)
	}
	// And where Systems Manager is away, what was known holds until its time.
	w.store.failAt = w.store.calls + 1
	w.now = w.now.Add(2 * time.Minute)
	if r := w.keep(t); len(r.Diagnostics) != 1 || r.Diagnostics[0].Severity != diag.Warning || len(r.Until) != 1 {
		t.Errorf("%+v", r)
	}
	w.now = w.now.Add(jointoken.Life)
	w.store.failAt = w.store.calls + 1
	if r := w.keep(t); len(r.Diagnostics) != 1 || r.Diagnostics[0].Severity != diag.Error || len(r.Until) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestManyPoolsAreMadeInTurns(t *testing.T) {
	var pools []string
	for i := range 50 {
		pools = append(pools, fmt.Sprintf("p%02d", i))
	}
	w := newWorld(t, pools...)
	passes := 0
	for len(w.keep(t).Until) < 50 {
		if passes++; passes > 5 {
			t.Fatal("not all pools get a token")
		}
	}
	if passes != 2 {
		t.Errorf("%d passes before the last", passes)
	}
	w.sound(t)
}

// TestTokensFollowWhateverHappens lets time pass, pools come and go, processes
// restart, two of them at once, and people delete things: afterwards one pass
// makes all sound.
func TestTokensFollowWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.req.Prune = true
		other := &jointoken.Keeper{Parameters: w.store, Cluster: w.cluster, Now: func() time.Time { return w.now }}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"time", "pools", "restart", "other", "fail", "parameter", "secrets"}).Draw(rt, "step") {
			case "time":
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 30*60).Draw(rt, "minutes")) * time.Minute)
			case "pools":
				w.req.Wanted = nil
				for _, p := range []string{"a", "b", "c"} {
					if rapid.Bool().Draw(rt, p) {
						w.req.Wanted = append(w.req.Wanted, wanted(p))
					}
				}
			case "restart":
				w.restart()
			case "other":
				other.Keep(t.Context(), w.req)
			case "fail":
				w.store.failAt, w.store.after = w.store.calls+rapid.IntRange(1, 4).Draw(rt, "call"), rapid.Bool().Draw(rt, "after")
			case "parameter":
				delete(w.store.params, "/weir/prod/demo/default/a")
			case "secrets":
				for name := range w.server.Secrets() {
					w.server.RemoveSecret(name)
				}
			}
			w.keep(t)
		}
		w.store.failAt = 0
		w.restart()
		w.keep(t)
		w.sound(rt)
		if len(w.store.params) != len(w.req.Wanted) {
			rt.Errorf("%d parameters for %d pools", len(w.store.params), len(w.req.Wanted))
		}
		if r := w.keep(t); r.Writes != 0 {
			rt.Errorf("%d writes at rest", r.Writes)
		}
	})
}
