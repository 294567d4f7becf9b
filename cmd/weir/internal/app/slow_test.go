package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
)

// silent is the address of an endpoint that takes connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			open = append(open, c)
		}
		for _, c := range open {
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// regions are different ones, each a scope of its own.
var regions = []string{"us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1", "ap-south-1", "ap-southeast-2"}

// stuck has targets stuck-0, stuck-1… beside prod, at an endpoint that never answers.
func (w *world) stuck(n int, endpoint string) map[string]string {
	w.t.Helper()
	names := []string{}
	for i := range n {
		name := fmt.Sprintf("stuck-%d", i)
		names = append(names, name)
		w.extra += fmt.Sprintf("- {name: %s, path: overlays/%s, region: %s, endpointURL: %q}\n", name, name, regions[i], endpoint)
	}
	return fleetOf("m5.large", names...)
}

func (w *world) get(a *App, path string) (int, string) {
	w.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(a.PageURL() + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestAnEndpointThatDoesNotAnswerHoldsUpItself: one, and eight of them.
func TestAnEndpointThatDoesNotAnswerHoldsUpItself(t *testing.T) {
	for _, n := range []int{1, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quickAWS())
			w.repo.Write(w.stuck(n, silent(t)))
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			first := w.repo.Commit("first")
			next := w.config()
			a, end := w.startWith(func() (*config.Config, error) { return next, nil })
			stop := sync.OnceFunc(end)
			defer stop()
			converged(t, a, first, 1)
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
			second := w.repo.Commit("second")
			converged(t, a, second, 1)

			if code, text := w.get(a, "/healthz"); code != http.StatusOK {
				t.Errorf("health: %d %s", code, text)
			}

			eventually(t, "what does not answer is told", func() string {
				if _, text := w.get(a, "/readyz"); strings.Count(text, "AWS has not answered since") != n {
					return text
				}
				return ""
			})

			// A reload does not wait for them, nor does the end.
			next = w.config()
			next.Targets[0].Suspend = true
			a.reloadDue.send()
			eventually(t, "the reload", func() string {
				if s, _ := a.current.Targets.Find("prod"); s.Last == nil || !s.Last.Suspended {
					return "not suspended"
				}
				return ""
			})
			began := time.Now()
			stop()
			if took := time.Since(began); took > stopWithin {
				t.Errorf("the stop took %s", took)
			}
			if got := w.deletes(); len(got) > 0 {
				t.Errorf("deleted: %v", got)
			}
		})
	}
}

// door is another endpoint of the world's AWS. Ahead of each request it calls before.
func (w *world) door(before func(body string)) string {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		before(string(body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.aws.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	return server.URL
}

// TestAWriteThatIsNotAnswered holds up neither a reload nor other scopes. Its pass goes
// on with the old wishes no further, and a stop leaves it as a lost answer.
func TestAWriteThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	called, answer := make(chan struct{}, 8), make(chan struct{})
	door := w.door(func(body string) {
		if strings.Contains(body, "Action=CreateAutoScalingGroup") {
			called <- struct{}{}
			<-answer
		}
	})
	t.Cleanup(func() { close(answer) }) // before the server closes
	w.repo.Write(w.stuck(1, door))
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	next := w.config()
	a := w.open(w.config(), func() (*config.Config, error) { return next, nil })
	a.Start(t.Context())
	<-called
	converged(t, a, first, 1)

	// It comes under another endpoint, and waits there for the end of the pass that is
	// under way here.
	other := w.door(func(string) {})
	next = w.config()
	next.Targets[1].EndpointURL = other
	old := a.gen.Load()
	a.reloadDue.send()
	eventually(t, "the target is held", func() string {
		s, _ := a.current.Targets.Find("stuck-0")
		if s.Last == nil || s.Last.Plan == nil || len(s.Last.Plan.Steps) == 0 {
			return "no plan yet"
		}
		for _, st := range s.Last.Plan.Steps {
			if st.Held != "waiting" {
				return fmt.Sprintf("%s %s is held by %q", st.Verb, st.Name, st.Held)
			}
		}
		return ""
	})
	if a.gen.Load() == old {
		t.Error("the reload waits")
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	converged(t, a, w.repo.Commit("second"), 1)

	began := time.Now()
	stop, cancel := context.WithTimeout(t.Context(), stopWithin)
	defer cancel()
	if err := a.Stop(stop); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < reconciler.LastCall/2 || took > stopWithin {
		t.Errorf("the stop took %s: the call in flight has %s", took, reconciler.LastCall)
	}
	if got := w.writes(); slices.Contains(got, "CreateAutoScalingGroup") && strings.Count(strings.Join(got, " "), "CreateAutoScalingGroup") > 1 {
		t.Errorf("written twice: %v", got)
	}
}

// TestAPlanThatAWSDoesNotAnswerHoldsUpItself: pull requests of the same source, also
// those that are opened meanwhile, have their plans before it is given up, and a stop
// does not wait for it.
func TestAPlanThatAWSDoesNotAnswerHoldsUpItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(w.stuck(1, silent(t)))
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, end := w.start()
	stop := sync.OnceFunc(end)
	defer stop()
	converged(t, a, first, 1)
	state := func(sha, want string) func() string {
		return func() string {
			if got, text := w.forge.last(sha, "fleet/plan"); got != want {
				return got + " " + text
			}
			return ""
		}
	}
	stuck := w.propose(1, map[string]string{"overlays/stuck-0/pool.yaml": pool("stuck-0", "m5.large", 5)})
	eventually(t, "the plan is begun", state(stuck, "pending"))
	for n := 2; n <= 4; n++ {
		head := w.propose(n, overlay(map[string]string{"web": pool("web", "m5.large", 3+n)}))
		eventually(t, "another plan", state(head, "success"))
	}
	if got := state(stuck, "pending")(); got != "" {
		t.Errorf("the others waited for it: %s", got)
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > stopWithin {
		t.Errorf("the stop took %s", took)
	}
}
