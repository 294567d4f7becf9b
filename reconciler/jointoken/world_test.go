package jointoken_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

// store is a parameter store that fails on request.
type store struct {
	params map[string]jointoken.Write
	calls  int
	// failAt is the call that fails, from 1; before or after its effect.
	failAt int
	after  bool
	say    string
}

func (s *store) call(effect func()) error {
	s.calls++
	if s.calls != s.failAt {
		effect()
		return nil
	}
	if s.after {
		effect()
	}
	return errors.New("ssm: scripted " + s.say)
}

func (s *store) TaggedParameters(_ context.Context, tags map[string]string) (out []jointoken.Parameter, err error) {
	err = s.call(func() {
		for _, name := range slices.Sorted(maps.Keys(s.params)) {
			p, matches := s.params[name], true
			for k, v := range tags {
				matches = matches && p.Tags[k] == v
			}
			if matches {
				out = append(out, jointoken.Parameter{Name: name, Description: p.Description})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *store) PutParameter(_ context.Context, w jointoken.Write) error {
	if have, ok := s.params[w.Name]; ok && have.Tags["weir.dev/owner"] != w.Tags["weir.dev/owner"] {
		return fmt.Errorf("put: %w", jointoken.ErrForeign)
	}
	s.say = w.Value // AWS quotes what it refuses
	return s.call(func() { s.params[w.Name] = w })
}

func (s *store) DeleteParameter(_ context.Context, name string) error {
	return s.call(func() { delete(s.params, name) })
}

type world struct {
	server  *workloadtest.Server
	cluster *workload.Cluster
	store   *store
	keeper  *jointoken.Keeper
	now     time.Time
	req     jointoken.Request
}

func newWorld(t *testing.T, pools ...string) *world {
	t.Helper()
	w := &world{server: workloadtest.New(t), store: &store{params: map[string]jointoken.Write{}}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.server.SetClock(func() time.Time { return w.now })
	c, err := workload.Open(w.server.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.cluster = c
	w.restart()
	w.req = jointoken.Request{Owner: "prod", Source: "0123456789ab", Target: "demo", Standing: map[string]bool{}}
	for _, p := range pools {
		w.req.Wanted = append(w.req.Wanted, wanted(p))
	}
	return w
}

func wanted(pool string) jointoken.Pool {
	return jointoken.Pool{Key: "default/" + pool, Parameter: "/weir/prod/demo/default/" + pool}
}

// restart forgets what the process knows.
func (w *world) restart() {
	w.keeper = &jointoken.Keeper{Parameters: w.store, Cluster: w.cluster, Now: func() time.Time { return w.now }}
}

func (w *world) keep(t *testing.T) jointoken.Result {
	t.Helper()
	return w.keeper.Keep(t.Context(), w.req)
}

// sound checks that each wanted pool has a parameter whose token is in the
// cluster and holds for longer than half its life.
func (w *world) sound(t errorer) {
	t.Helper()
	secrets := w.server.Secrets()
	for _, p := range w.req.Wanted {
		value := strings.Fields(w.store.params[p.Parameter].Value)
		if len(value) < 3 {
			t.Errorf("parameter %s holds no token", p.Parameter)
			continue
		}
		id, part, _ := strings.Cut(value[0], ".")
		s := secrets["kube-system/bootstrap-token-"+id]
		until, err := time.Parse(time.RFC3339, s["expiration"])
		if err != nil || s["token-id"] != id || s["token-secret"] != part || until.Sub(w.now) <= jointoken.Life/2 {
			t.Errorf("the token of %s holds until %q in the cluster", p.Key, s["expiration"])
		}
		if value[1] != "api.example.org:6443" || !strings.HasPrefix(value[2], "sha256:") || len(value[2]) != 71 {
			t.Errorf("parameter %s says %v", p.Parameter, value[1:])
		}
	}
}

type errorer interface {
	Helper()
	Errorf(string, ...any)
}
