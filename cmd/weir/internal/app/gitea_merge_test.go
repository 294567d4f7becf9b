package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// relay stands between Gitea's webhooks and a daemon, and hands them on when it is told.
type relay struct {
	t      *testing.T
	server *httptest.Server

	mu   sync.Mutex
	url  string // the daemon's
	held bool
	kept []delivery
}

// delivery is a webhook, with its event and action or branch, such as "pull_request
// closed" and "push main".
type delivery struct {
	event  string
	header http.Header
	body   []byte
}

// newRelay hands on what it is given until it is told to hold it.
func newRelay(t *testing.T, a *App) *relay {
	r := &relay{t: t}
	r.to(a)
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var of struct {
			Action, Ref string
		}
		_ = json.Unmarshal(body, &of) // what is not JSON has neither
		d := delivery{strings.TrimSpace(req.Header.Get("X-Gitea-Event") + " " + of.Action + strings.TrimPrefix(of.Ref, "refs/heads/")), req.Header, body}
		r.mu.Lock()
		held := r.held
		if held {
			r.kept = append(r.kept, d)
		}
		r.mu.Unlock()
		if !held {
			r.send(d)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(r.server.Close)
	return r
}

func (r *relay) send(d delivery) {
	r.mu.Lock()
	url := r.url
	r.mu.Unlock()
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(d.body)) //nolint:noctx // it outlives no test: the server is closed
	if err != nil {
		r.t.Error(err)
		return
	}
	req.Header = d.header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Log("relay:", err) // the daemon may have ended
		return
	}
	_ = resp.Body.Close()
}

// to has what comes handed to a daemon.
func (r *relay) to(a *App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.url = "http://" + a.Addr() + "/hooks/pools"
}

// hold keeps what comes from now on.
func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.kept = true, nil
}

// give hands on what is kept of an event, once it has come.
func (r *relay) give(event string) {
	r.t.Helper()
	var out []delivery
	eventually(r.t, "the webhook "+event, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, d := range r.kept {
			if d.event == event {
				out = append(out, d)
			}
		}
		r.kept = slices.DeleteFunc(r.kept, func(d delivery) bool { return d.event == event })
		if out == nil {
			return "it has not come"
		}
		return ""
	})
	for _, d := range out {
		r.send(d)
	}
}

// came waits until an event is kept.
func (r *relay) came(event string) {
	r.t.Helper()
	eventually(r.t, "the webhook "+event, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.ContainsFunc(r.kept, func(d delivery) bool { return d.event == event }) {
			return "it has not come"
		}
		return ""
	})
}

// drop loses what is kept, and hands on what comes.
func (r *relay) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.kept = false, nil
}

// newRelayed is a world whose webhooks go through a relay.
func newRelayed(t *testing.T, s *giteatest.Server, owner string, change func(*config.Config)) (*reviewed, *relay) {
	r := newReviewed(t, s, owner, change)
	var hooks []struct {
		ID int64 `json:"id"`
	}
	r.repo.Owner.Must(http.MethodGet, r.repo.Path("/hooks"), nil, &hooks)
	for _, h := range hooks {
		r.repo.Owner.Must(http.MethodDelete, r.repo.Path(fmt.Sprintf("/hooks/%d", h.ID)), nil, nil)
	}
	between := newRelay(t, r.app)
	r.repo.Hook(between.server.URL, hookSecret, "push", "pull_request", "issue_comment", "status")
	return r, between
}

// planned opens a pull request from main for a pool of another size, and waits for its
// plan.
func (r *reviewed) planned(branch string, maxSize int) (number int64, head string) {
	r.t.Helper()
	r.main = r.tip()
	head = r.propose(branch, maxSize)
	number = r.repo.Open(r.owner, branch, "Another size")
	r.finally(head, "fleet/plan", "success", "1 of 1 target")
	r.comment(number, "maxSize", "digest")
	return number, head
}

// asReviewed waits for the verdict on a merge, and fails if it ever was another one.
func (r *reviewed) asReviewed(number int64) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("the verdict on %d", number), func() string {
		for _, p := range r.app.current.Pulls.All() {
			switch {
			case p.Number != number:
			case len(p.Differs)+len(p.Uncompared) > 0:
				r.t.Fatalf("%d is %s: %q %q", number, p.State, p.Differs, p.Uncompared)
			case p.State == report.PullUnaffected || p.State == report.PullConflict:
				r.t.Fatalf("%d is %s: %s", number, p.State, p.Reason)
			case p.State == report.PullMerged && p.Compared:
				return ""
			default:
				return fmt.Sprintf("%s, compared %t", p.State, p.Compared)
			}
		}
		return "it is not known"
	})
	r.comment(number, "Merged as", "The plan of the merge matches the reviewed plan")
}

// TestGiteaMergesInAnyOrder merges pull requests on a real Gitea whose webhooks come
// early, late, in another order and not at all: none of them is told of as anything but
// what was reviewed.
func TestGiteaMergesInAnyOrder(t *testing.T) {
	s := giteatest.New(t)
	styles := []string{"merge", "squash", "rebase", "fast-forward-only"}
	const closed = "pull_request closed"
	var c *config.Config
	r, hooks := newRelayed(t, s, "dora", func(made *config.Config) { c = made })
	size := 3
	next := func() int { size++; return size }
	applied := func(r *reviewed) { r.finally(r.tip(), "fleet/apply", "success") }
	for order, tc := range map[string]struct {
		styles []string
		do     func()
	}{
		"early": {styles, func() { hooks.give(closed); time.Sleep(time.Second); hooks.give("push main"); applied(r) }},
		"late":  {styles, func() { hooks.give("push main"); applied(r); time.Sleep(time.Second); hooks.give(closed) }},
		// Each takes half a minute.
		"missing": {styles[:2], func() { hooks.give("push main"); applied(r) }},
	} {
		for _, style := range tc.styles {
			t.Run(order+", "+style, func(t *testing.T) {
				number, _ := r.planned(strings.ReplaceAll(order+"-"+style, " ", "-"), next())
				hooks.hold()
				r.repo.Merge(r.owner, number, style)
				tc.do()
				r.asReviewed(number)
				hooks.drop()
			})
		}
	}
	t.Run("out of order", func(t *testing.T) {
		number, head := r.planned("out-of-order", next())
		hooks.hold()
		r.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", next())}))
		later := r.clone.Push("out-of-order", "right before the merge")
		hooks.came("pull_request synchronized") // Gitea reports no push that it processes after the merge
		r.repo.Merge(r.owner, number, "squash")
		hooks.give(closed)
		hooks.give("push main")
		applied(r)
		hooks.give("pull_request synchronized")
		r.comment(number, "Merged as", "not everything is applied as reviewed", wording.Short(later)+" was not planned before the merge", "the plan of "+wording.Short(head), "the plan is not the reviewed one")
		hooks.drop()
	})
	t.Run("merged by hand", func(t *testing.T) {
		number, head := r.planned("by-hand", next())
		r.clone.Git("switch", "--quiet", "--detach", r.main)
		r.clone.Git("merge", "--quiet", "--no-ff", "--message", "by hand", head)
		r.clone.Git("push", "--quiet", "origin", "HEAD:refs/heads/main")
		applied(r)
		r.owner.Do(http.MethodPatch, r.repo.Path(fmt.Sprintf("/pulls/%d", number)), map[string]any{"state": "closed"}, nil) // where Gitea has not seen it
		r.asReviewed(number)
	})
	t.Run("a push without a pull request", func(t *testing.T) {
		number, _ := r.planned("bystander", next())
		before := r.comment(number)
		r.clone.Git("switch", "--quiet", "--detach", r.main)
		r.clone.Write(map[string]string{"README.md": "Pools.\n"})
		r.clone.Push("main", "docs")
		applied(r)
		if after := r.comment(number); after.Body != before.Body {
			t.Errorf("a pull request that was not merged: %s", after.Body)
		}
	})

	polled, none := newRelayed(t, s, "erin", func(c *config.Config) { c.Sources[0].Interval = 2 * time.Second })
	for _, style := range styles {
		t.Run("no webhook at all, "+style, func(t *testing.T) {
			number, _ := polled.planned("polled-"+style, next())
			none.hold()
			polled.repo.Merge(polled.owner, number, style)
			polled.asReviewed(number)
		})
	}

	t.Run("restarted before it is reported", func(t *testing.T) {
		number, _ := r.planned("restarted", next())
		hooks.hold()
		r.repo.Merge(r.owner, number, "squash")
		hooks.give("push main")
		applied(r)
		if err := r.app.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.app = r.run(c)
		hooks.to(r.app)
		hooks.give(closed)
		r.asReviewed(number)
		hooks.drop()
	})

	waits, late := newRelayed(t, s, "finn", func(c *config.Config) { c.Targets[0].Apply = targetspec.AsReviewed })
	for _, approved := range []bool{true, false} {
		t.Run(fmt.Sprintf("as reviewed, approved %t", approved), func(t *testing.T) {
			number, _ := waits.planned(fmt.Sprintf("approved-%t", approved), next())
			writes := len(waits.writes())
			if approved {
				waits.marked(waits.approve(number), "+1")
			}
			late.hold()
			waits.repo.Merge(waits.owner, number, "squash")
			late.give("push main")
			if approved {
				applied(waits)
			} else {
				waits.finally(waits.tip(), "fleet/apply", "pending", "approval")
			}
			late.give(closed)
			waits.asReviewed(number)
			if n := len(waits.writes()) - writes; (n > 0) != approved {
				t.Errorf("the merge led to %d writes", n)
			}
			late.drop()
		})
	}
}
