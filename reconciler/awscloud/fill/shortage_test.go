package fill

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Reads beside each other share what is remembered: what one has forgotten the other
// may still be told of.
func TestWhatAnotherReadHasForgotten(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	l := shortLog{began: now}
	groups := map[string]observed.Group{"web": {CreatedAt: now.Add(-time.Hour), DesiredCapacity: 1}}
	if due, _ := l.due(groups, []string{"web"}, nil, now, now); len(due) != 1 {
		t.Errorf("a process that has just started asks about %v", due)
	}
	l.due(groups, nil, nil, now, now)
	l.recordActivities("web", nil, now, now)
	l.unanswered([]string{"web"}, now)
	l.setAlone("web")
	if l.needsOwnCall("web") || len(l.launches()) != 0 {
		t.Error("something was remembered")
	}
	now = now.Add(2 * time.Minute)
	if due, _ := l.due(groups, []string{"web"}, nil, now, now); len(due) != 0 {
		t.Errorf("within the grace it asks about %v", due)
	}
}

// A gate asks which launches failed since then: of a group that lacks nothing too, each half
// a minute, and of all of them, though a later page holds the newest alone.
func TestWhatAGateAsksAbout(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	l := shortLog{began: now}
	groups := map[string]observed.Group{"web": {CreatedAt: now.Add(-time.Hour)}}
	asks := func() bool {
		due, _ := l.due(groups, nil, []string{"web"}, now, now)
		return len(due) == 1
	}
	failed := func(at time.Time) read.Activity {
		return read.Activity{Group: "web", Description: "Launching a new EC2 instance", Status: "Failed", Message: "no capacity", Started: at, Ended: at}
	}
	if !asks() {
		t.Error("it does not ask at first")
	}
	first := now.Add(-time.Second)
	l.recordActivities("web", []read.Activity{failed(first), failed(now.Add(-2 * time.Hour))}, now, now)
	if now = now.Add(gateEvery - time.Second); asks() {
		t.Error("it asks again at once")
	}
	if now = now.Add(time.Second); !asks() {
		t.Error("it does not ask again")
	}
	l.recordActivities("web", []read.Activity{failed(now)}, now, now)
	got := l.launches()["web"]
	if len(got.Failed) != 2 || !got.Failed[0].At.Equal(now) || !got.Failed[1].At.Equal(first) || got.Failure != got.Failed[0] || !got.Read.Equal(now) {
		t.Errorf("%+v", got)
	}
	other := func(at time.Time) []read.Activity { return []read.Activity{{Group: "api", Started: at}} }
	if l.nothingSince("web", other(now.Add(-time.Second))) || !l.nothingSince("web", other(now.Add(-time.Hour))) {
		t.Error("a page of others' activities says something else than how far it goes back")
	}
	for n := range 2 * observed.MostFailed {
		l.recordActivities("web", []read.Activity{failed(now.Add(time.Duration(n) * time.Millisecond))}, now, now)
	}
	if n := len(l.launches()["web"].Failed); n != observed.MostFailed {
		t.Errorf("%d are remembered", n)
	}
	if now = now.Add(2 * time.Hour); !asks() {
		t.Error("it does not ask any more")
	}
	if l.recordActivities("web", nil, now, now); len(l.launches()["web"].Failed) > 0 {
		t.Error("what failed hours ago is still told")
	}
}
