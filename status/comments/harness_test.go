package comments

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

// memoryPulls is a forge with comments in memory.
type memoryPulls struct {
	*statustest.Forge
	comments []forge.Comment
	next     int64
	calls    []string
	// refuse has calls fail, before their effect; forget loses answers of what was done.
	refuse, forget func(call, body string) error
}

func newMemoryPulls() *memoryPulls { return &memoryPulls{Forge: statustest.NewForge(), next: 100} }

func (f *memoryPulls) Profile() forge.Profile { return forge.ProfileOf(forge.Gitea) }

func (f *memoryPulls) do(call, body string, effect func() error) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.calls = append(f.calls, call)
	if f.refuse != nil {
		if err := f.refuse(call, body); err != nil {
			return err
		}
	}
	if err := effect(); err != nil {
		return err
	}
	if f.forget != nil {
		return f.forget(call, body)
	}
	return nil
}

func (f *memoryPulls) Self(context.Context) (name string, err error) {
	return "weir", f.do("login", "", func() error { return nil })
}

func (f *memoryPulls) Comments(context.Context, int64, time.Time) (out []forge.Comment, err error) {
	err = f.do("list", "", func() error { out = slices.Clone(f.comments); return nil })
	return out, err
}

func (f *memoryPulls) CreateComment(_ context.Context, _ int64, body string) (c forge.Comment, err error) {
	err = f.do("create", body, func() error {
		f.next++
		c = forge.Comment{ID: f.next, Number: 12, Author: "weir", Body: body, CreatedAt: time.Now(), UpdatedAt: time.Now()}
		f.comments = append(f.comments, c)
		return nil
	})
	return c, err
}

func (f *memoryPulls) at(id int64, change func(i int)) error {
	i := slices.IndexFunc(f.comments, func(c forge.Comment) bool { return c.ID == id })
	if i < 0 {
		return refusal(404, forgehttp.FaultMissing, "no such comment")
	}
	change(i)
	return nil
}

func (f *memoryPulls) EditComment(_ context.Context, _, id int64, body string) (c forge.Comment, err error) {
	err = f.do("edit", body, func() error {
		return f.at(id, func(i int) {
			f.comments[i].Body, f.comments[i].UpdatedAt = body, time.Now()
			c = f.comments[i]
		})
	})
	return c, err
}

func (f *memoryPulls) DeleteComment(_ context.Context, _, id int64) error {
	return f.do("delete", "", func() error { return f.at(id, func(i int) { f.comments = slices.Delete(f.comments, i, i+1) }) })
}

func refusal(code int, fault forgehttp.Fault, text string) error {
	return &forgehttp.Error{Forge: "memory", Status: code, Fault: fault, Message: text}
}

// leads are the first lines of the comments that weir made.
func (f *memoryPulls) leads() (out []string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, c := range f.comments {
		if c.Author == "weir" && strings.HasPrefix(c.Body, report.PullMarker("weir", "fleet")) {
			out = append(out, strings.Split(c.Body, "\n")[1])
		}
	}
	return out
}

// took are the calls since it was asked last.
func (f *memoryPulls) took() string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	out := strings.Join(f.calls, " ")
	f.calls = nil
	return out
}

type pullProcess struct {
	*Comments
	kill func()
}

func startPulls(t *testing.T, dir string, f PullForge, change ...func(*Options)) *pullProcess {
	t.Helper()
	o := Options{Instance: "weir", PageURL: "https://weir.example.com/", Forges: map[string]PullForge{"fleet": f}, Store: statustest.StoreIn(t, dir), Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }()
	out := &pullProcess{Comments: p, kill: func() { cancel(); <-ended }}
	t.Cleanup(out.kill)
	return out
}

func (p *pullProcess) stop(t *testing.T) error {
	t.Helper()
	p.kill()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return p.Close(ctx)
}

// small is a pull request with one target.
func small(state report.PullState, reason string) report.Pull {
	p := report.Pull{Source: "fleet", Number: 12, HeadSHA: statustest.ShaNew, BaseRef: "main", BaseSHA: statustest.ShaOld, State: state, Reason: reason, Unaffected: 3}
	if state == report.PullPlanned {
		r := statustest.Report("prod")
		r.Plan.Steps = []step.Step{statustest.StepFor(step.Create, step.AutoScalingGroup, "default/web", "prod-web")}
		r.Plan.Summary.Create = 1
		p.Reports, p.Digest = []*plan.Report{r}, strings.Repeat("ab", 32)
	}
	return p
}

const (
	planLead   = "**Merging this changes 1 of 4 targets:** web in prod is created."
	planStatus = "success: 1 of 4 targets changes: web in prod is created"
)
